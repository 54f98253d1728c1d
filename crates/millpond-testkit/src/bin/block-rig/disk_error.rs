//! Fails a request of the disk under a working queue: a block of a file, of the file system's journal, or a flush. The
//! kernel then does what it does: it answers the fsync with EIO once, and with success from then on.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use millpond_testkit::block_device::device::{Device, Fault};
use millpond_testkit::block_device::extents;
use millpond_testkit::block_device::mount::{FileSystem, Mount};
use millpond_testkit::block_device::sandbox::Sandbox;
use millpond_testkit::journal::{Event, Journal, Placed};
use millpond_testkit::random::Random;

use crate::checker::Checker;
use crate::record::{QUEUE, disk_bytes};
use crate::subject::Subject;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Data,
    Journal,
    Flush,
}

/// One combination, and how often it is tried.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    pub(crate) subject: Subject,
    pub(crate) kind: FileSystem,
    pub(crate) site: Site,
    pub(crate) cases: usize,
}

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Cases in which a call failed: the others ended before the fault was met.
    pub(crate) hit: usize,
    /// Calls after the failure, all of which must fail.
    pub(crate) late: usize,
    /// Of the hit, how often the same process opened the queue again; a file system that gave up refuses.
    pub(crate) reopened: usize,
    /// Entries that were owed, in all cases.
    pub(crate) owed: u64,
    pub(crate) lost: u64,
    pub(crate) violations: Vec<String>,
}

pub(crate) fn run(experiment: &Experiment, seed: u64, sandbox: &Sandbox) -> io::Result<Outcome> {
    let mut random = Random::new(seed);
    let mut outcome = Outcome::default();
    for case in 0..experiment.cases {
        let folder = sandbox.folder()?;
        let known = outcome.violations.len();
        try_one(experiment, &mut random, &folder, &mut outcome)?;
        for violation in &mut outcome.violations[known..] {
            violation.insert_str(0, &format!("case {case}: "));
        }
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(outcome)
}

fn try_one(
    experiment: &Experiment,
    random: &mut Random,
    folder: &Path,
    outcome: &mut Outcome,
) -> io::Result<()> {
    let Experiment { subject, kind, site, .. } = experiment;
    let image = folder.join("image");
    kind.make(&image, disk_bytes(subject, *kind))?;
    let mut device = Device::start(&image, folder)?;
    let mount = Mount::image(device.disk(), *kind, &folder.join("mounted"))?;
    let directory = mount.path().join(QUEUE);
    let journal_sectors = extents::of_journal(*kind, &image)?;
    let words = [(1_u64 << 32).to_string(), random.next_u64().to_string()];
    let words: Vec<String> = words.into_iter().chain([device.recording().display().to_string()]).collect();
    let mut worker =
        subject.stumbler(&directory, &words)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut to), Some(from)) = (worker.stdin.take(), worker.stdout.take()) else {
        return Err(io::Error::other("no pipes"));
    };
    let armed_after = 1 + random.below(150);
    let (mut journal, mut answers, mut seen) = (Journal::default(), 0, Life::default());
    for line in BufReader::new(from).lines() {
        let line = line?;
        if let Ok(placed) = line.parse::<Placed>() {
            journal.add(placed.event);
            answers += u64::from(matches!(placed.event, Event::Pushed(..) | Event::Acked(_)));
            if answers == armed_after {
                device.fail(&match site {
                    Site::Flush => Fault::Flush,
                    Site::Journal => Fault::Writes(journal_sectors.clone()),
                    Site::Data => Fault::Writes(sectors_below(&directory)?),
                })?;
                // Once: the counter stands still behind the failure.
                answers += 1;
            }
        } else if line == "stopped" {
            device.mend()?;
            seen.before = journal.clone();
            to.write_all(b"\n")?;
        } else {
            seen.note(&line);
        }
    }
    let status = worker.wait()?;
    if !status.success() {
        outcome.violations.push(format!("the worker ended with {status}"));
    }
    mount.unmount()?;
    device.stop()?;
    seen.judge(outcome);
    // What the disk holds, seen by another process with nothing in its cache.
    let mount = Mount::image(&image, *kind, &folder.join("mounted"))?;
    let drained = Checker::new(subject).look(&mount.path().join(QUEUE))?;
    mount.unmount()?;
    outcome.owed += journal.pushed.keys().filter(|id| !journal.acks.contains(id)).count() as u64;
    match drained {
        Ok(drained) => {
            let verdict = drained.judge(&journal);
            outcome.lost += verdict.lost;
            outcome.violations.extend(verdict.violations);
        }
        Err(what) => outcome.violations.push(what),
    }
    Ok(())
}

/// The blocks of every file below a folder.
fn sectors_below(folder: &Path) -> io::Result<Vec<u64>> {
    let mut sectors = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sectors.extend(sectors_below(&entry.path())?);
        } else {
            // A file that was removed meanwhile has none.
            sectors.extend(extents::of_file(&entry.path()).unwrap_or_default());
        }
    }
    Ok(sectors)
}

/// What the worker said beside events.
#[derive(Debug, Default)]
struct Life {
    /// Everything up to the failure.
    before: Journal,
    has_failed: bool,
    has_reopened: bool,
    late: usize,
    there: Vec<u64>,
    breaches: Vec<String>,
}

impl Life {
    fn note(&mut self, line: &str) {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["failed", _] => self.has_failed = true,
            ["late", "refused"] => self.late += 1,
            ["reopened"] => self.has_reopened = true,
            ["there", id, nonce] if *nonce != "foreign" => self.there.extend(id.parse::<u64>()),
            // A file system that gave up takes nothing more until it is mounted again.
            ["refused" | "again", _] => {}
            // A call that was answered after the failure, damage, bytes that nobody pushed.
            _ => self.breaches.push(format!("the worker said: {line}")),
        }
    }

    fn judge(self, outcome: &mut Outcome) {
        outcome.hit += usize::from(self.has_failed);
        outcome.reopened += usize::from(self.has_failed && self.has_reopened);
        outcome.late += self.late;
        outcome.violations.extend(self.breaches);
        if self.has_reopened {
            let owed = self.before.pushed.keys().filter(|id| !self.before.acks.contains(id));
            let missing: Vec<u64> = owed.filter(|id| !self.there.contains(id)).copied().collect();
            if !missing.is_empty() {
                outcome.lost += missing.len() as u64;
                outcome.violations.push(format!("missing in the same process: {missing:?}"));
            }
        }
    }
}
