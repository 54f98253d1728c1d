//! What a durable push costs the disk: writes and flushes that reach it while pushes come one after the other.

use std::fs;
use std::io;

use millpond::store::LogStore;
use millpond::{Builder, Durability};
use millpond_testkit::block_device::device::Device;
use millpond_testkit::block_device::mount::{FileSystem, Mount};
use millpond_testkit::block_device::sandbox::Sandbox;
use millpond_testkit::block_device::write_log::{Entry, WriteLog};

use crate::record::QUEUE;

const BYTES: u64 = 32 << 20;
const PAYLOAD: usize = 300;
/// Pushes until spares are made and the first segments were changed.
const WARM_UP: u64 = 1000;
/// Pushes that are counted; several changes of segment are among them.
const PUSHES: u64 = 5000;
/// Most of either for each push.
const BAR: f64 = 1.1;

/// What was counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) pushes: u64,
    writes: u64,
    flushes: u64,
}

impl Cost {
    pub(crate) fn writes(&self) -> f64 {
        each(self.writes, self.pushes)
    }

    pub(crate) fn flushes(&self) -> f64 {
        each(self.flushes, self.pushes)
    }

    pub(crate) fn holds(&self) -> bool {
        // Fewer flushes than pushes would be pushes that were not made durable.
        self.flushes >= self.pushes && self.writes() <= BAR && self.flushes() <= BAR
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of thousands")]
fn each(count: u64, pushes: u64) -> f64 {
    count as f64 / pushes as f64
}

/// Pushes to a log on a fresh file system.
pub(crate) fn count(kind: FileSystem, durability: Durability, sandbox: &Sandbox) -> io::Result<Cost> {
    let folder = sandbox.folder()?;
    let image = folder.join("image");
    kind.make(&image, BYTES)?;
    let device = Device::start(&image, &folder)?;
    let mount = Mount::image(device.disk(), kind, &folder.join("recorded"))?;
    let place = || fs::metadata(device.recording()).map(|found| found.len());
    let (from, to) = {
        let store = LogStore::open(mount.path().join(QUEUE)).map_err(io::Error::other)?;
        let builder = Builder::new(store).capacity(1 << 20).durability(durability);
        let queue = builder.open().map_err(io::Error::other)?;
        let push = |count| -> io::Result<u64> {
            for _ in 0..count {
                queue.push([7; PAYLOAD]).map_err(io::Error::other)?;
            }
            place()
        };
        (push(WARM_UP)?, push(PUSHES)?)
    };
    mount.unmount()?;
    let recording = device.recording().to_owned();
    device.stop()?;
    let log = WriteLog::open(&recording)?;
    let counted = &log.entries[log.first_after(from)..log.first_after(to)];
    let number = |is: fn(&Entry) -> bool| counted.iter().filter(|entry| is(entry)).count() as u64;
    let cost = Cost { pushes: PUSHES, writes: number(Entry::writes), flushes: number(|entry| entry.flushes) };
    fs::remove_dir_all(&folder)?;
    Ok(cost)
}
