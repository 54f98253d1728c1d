//! Makes a recording: several lives of a worker on one queue, on a fresh file system.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use millpond_testkit::block_device::device::Device;
use millpond_testkit::block_device::image::Image;
use millpond_testkit::block_device::mount::{FileSystem, Mount};
use millpond_testkit::block_device::write_log::WriteLog;
use millpond_testkit::journal::Placed;
use millpond_testkit::random::Random;

use crate::subject::{LIMIT, Subject};

/// Lives of a worker in one recording, and answers of each.
const LIVES: u64 = 4;
const ANSWERS: u64 = 100;

/// Where the queue is in the file system.
pub(crate) const QUEUE: &str = "queue";

/// A recording, and what was answered in it.
pub(crate) struct Recording {
    /// The disk when the daemon began to serve it.
    pub(crate) begin: Image,
    pub(crate) log: WriteLog,
    /// The first entry behind the mount.
    pub(crate) first: usize,
    pub(crate) events: Vec<Placed>,
}

impl Recording {
    /// Makes one in `folder`.
    pub(crate) fn make(
        subject: &Subject,
        kind: FileSystem,
        random: &mut Random,
        folder: &Path,
    ) -> io::Result<Self> {
        let image = folder.join("image");
        kind.make(&image, disk_bytes(subject, kind))?;
        let begin = Image::read(&image)?;
        let device = Device::start(&image, folder)?;
        let mount = Mount::image(device.disk(), kind, &folder.join("recorded"))?;
        let start = fs::metadata(device.recording())?.len();
        let mut events = Vec::new();
        for life in 0..LIVES {
            let answers = 1 + random.below(2 * ANSWERS);
            // Now and then a life ends with the process.
            let end = if random.below(2) == 0 { "kill" } else { "close" };
            let words = [life.wrapping_add(1) << 32, random.next_u64(), answers].map(|word| word.to_string());
            let recording = device.recording().display().to_string();
            let words: Vec<String> = words.into_iter().chain([end.to_owned(), recording]).collect();
            let started = Instant::now();
            let mut worker =
                subject.worker(&mount.path().join(QUEUE), &words)?.stdout(Stdio::piped()).spawn()?;
            let mut text = String::new();
            if let Some(mut out) = worker.stdout.take() {
                out.read_to_string(&mut text)?;
            }
            let status = worker.wait()?;
            if started.elapsed() >= LIMIT {
                return Err(io::Error::other("the worker hangs"));
            }
            if end == "close" && !status.success() {
                return Err(io::Error::other(format!("the worker failed: {status}")));
            }
            // A last line without its end was cut by the kill.
            let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            let said = events.len();
            events.extend(lines.filter_map(|line| line.parse::<Placed>().ok()));
            if events.len() == said {
                return Err(io::Error::other(format!("the worker did nothing: {status}")));
            }
        }
        mount.unmount()?;
        let recording = device.recording().to_owned();
        device.stop()?;
        let log = WriteLog::open(&recording)?;
        let first = log.first_after(start);
        Ok(Self { begin, log, first, events })
    }
}

/// Bytes of a disk for this subject and file system.
pub(crate) fn disk_bytes(subject: &Subject, kind: FileSystem) -> u64 {
    match kind {
        FileSystem::Ext4 => subject.disk_bytes(),
        FileSystem::Xfs => 300 << 20,
    }
}
