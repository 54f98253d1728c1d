//! Cuts the power at every flush of a recording and at random moments between, opens what is left, and judges it.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use millpond_testkit::block_device::image::{Crash, Replay};
use millpond_testkit::block_device::mount::{FileSystem, Mount};
use millpond_testkit::block_device::sandbox::Sandbox;
use millpond_testkit::journal::Placed;
use millpond_testkit::oracle::Verdict;
use millpond_testkit::random::Random;

use crate::checker::Checker;
use crate::record::{QUEUE, Recording};
use crate::subject::Subject;

/// What is tried, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    pub(crate) subject: Subject,
    pub(crate) kind: FileSystem,
    /// The fewest images.
    pub(crate) images: usize,
    /// Right before and right after every flush of every recording, and half as often at random; else so many of them as are asked for.
    pub(crate) is_whole: bool,
}

/// A moment at which the power goes: so many entries have reached the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    entries: usize,
    /// `None` when the operating system ends and the power stays.
    power: Option<u64>,
}

/// What came out of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) recordings: usize,
    pub(crate) images: usize,
    /// Images of a moment right after or right before a flush.
    pub(crate) at_flushes: usize,
    /// Images after which the device's cache was lost.
    pub(crate) power_cuts: usize,
    /// Entries that were acknowledged when the power went, in all images.
    pub(crate) owed: u64,
    pub(crate) lost: u64,
    pub(crate) violations: Vec<String>,
    pub(crate) bad_images: usize,
    pub(crate) seconds_recording: f64,
    pub(crate) seconds_judging: f64,
}

/// Makes recordings until there were enough images, and judges each of these.
pub(crate) fn run(experiment: &Experiment, seed: u64, sandbox: &Sandbox) -> io::Result<Outcome> {
    let mut random = Random::new(seed);
    let mut outcome = Outcome::default();
    while outcome.images < experiment.images {
        let folder = sandbox.folder()?;
        let started = Instant::now();
        let recording = Recording::make(&experiment.subject, experiment.kind, &mut random, &folder)?;
        outcome.seconds_recording += started.elapsed().as_secs_f64();
        outcome.recordings += 1;
        let started = Instant::now();
        // At least two recordings share a run that is not whole.
        let quota = (experiment.images - outcome.images).min(experiment.images.div_ceil(2));
        let cuts = choose(&recording, (!experiment.is_whole).then_some(quota), &mut random);
        judge_all(experiment, &recording, &cuts, &folder, &mut outcome)?;
        outcome.seconds_judging += started.elapsed().as_secs_f64();
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(outcome)
}

/// The moments after each flush, before it with the cache lost, and half as many at random; in order.
fn choose(recording: &Recording, quota: Option<usize>, random: &mut Random) -> Vec<Cut> {
    let entries = &recording.log.entries;
    let mut cuts = BTreeSet::new();
    for index in (recording.first..entries.len()).filter(|index| entries[*index].flushes) {
        cuts.insert(Cut { entries: index + 1, power: Some(random.next_u64()) });
        cuts.insert(Cut { entries: index, power: Some(random.next_u64()) });
    }
    let between = |random: &mut Random| {
        let span = (entries.len() - recording.first) as u64 + 1;
        let entries = recording.first + usize::try_from(random.below(span)).unwrap_or_default();
        let power = random.next_u64();
        Cut { entries, power: (random.below(4) != 0).then_some(power) }
    };
    let mut cuts: Vec<Cut> = cuts.into_iter().collect();
    if let Some(quota) = quota {
        while cuts.len() > quota / 2 {
            let any = usize::try_from(random.below(cuts.len() as u64)).unwrap_or_default();
            cuts.swap_remove(any);
        }
    }
    let images = quota.unwrap_or(cuts.len() + cuts.len() / 2);
    while cuts.len() < images {
        cuts.push(between(random));
    }
    cuts.sort_unstable();
    cuts
}

/// Opens the image of each cut, on as many threads as there are processors.
fn judge_all(
    experiment: &Experiment,
    recording: &Recording,
    cuts: &[Cut],
    folder: &Path,
    outcome: &mut Outcome,
) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let judged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (folder, judged) = (folder.join(number.to_string()), &judged);
                let cuts = cuts.iter().skip(number).step_by(threads);
                scope.spawn(move || -> io::Result<()> {
                    std::fs::create_dir(&folder)?;
                    let mut checker = Checker::new(&experiment.subject);
                    let mut replay = Replay::new(&recording.log, recording.begin.clone());
                    for cut in cuts {
                        replay.advance(cut.entries)?;
                        let verdict = judge_one(experiment, recording, &replay, *cut, &mut checker, &folder)?;
                        judged
                            .lock()
                            .map_err(|_| io::Error::other("a thread panicked"))?
                            .push((*cut, verdict));
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| io::Error::other("a panic"))?)
    })?;
    let mut judged = judged.into_inner().map_err(|_| io::Error::other("a thread panicked"))?;
    judged.sort_unstable_by_key(|(cut, _)| *cut);
    for (cut, (owed, verdict)) in judged {
        let entries = &recording.log.entries;
        let is_flush = |index: usize| entries.get(index).is_some_and(|entry| entry.flushes);
        outcome.images += 1;
        outcome.at_flushes +=
            usize::from(is_flush(cut.entries) || cut.entries > 0 && is_flush(cut.entries - 1));
        outcome.power_cuts += usize::from(cut.power.is_some());
        outcome.owed += owed;
        outcome.lost += verdict.lost;
        outcome.bad_images += usize::from(!verdict.violations.is_empty());
        let round = outcome.recordings;
        let named = verdict.violations.iter().map(|what| format!("recording {round}, {cut:?}: {what}"));
        outcome.violations.extend(named);
    }
    Ok(())
}

/// How many entries the image owes, and what is wrong with it.
fn judge_one(
    experiment: &Experiment,
    recording: &Recording,
    replay: &Replay<'_>,
    cut: Cut,
    checker: &mut Checker<'_>,
    folder: &Path,
) -> io::Result<(u64, Verdict)> {
    let crash = cut.power.map_or(Crash::OperatingSystem, |seed| Crash::Power { seed });
    let image = folder.join("image");
    replay.crash(crash)?.write(&image)?;
    let end = recording.log.entries[..cut.entries].last().map_or(0, |entry| entry.end);
    let journal = Placed::journal_at(&recording.events, end);
    let owed = journal.pushed.keys().filter(|id| !journal.acks.contains(id)).count() as u64;
    let broken = |what: String| Ok((owed, Verdict { violations: vec![what], ..Verdict::default() }));
    let mount = match Mount::image(&image, experiment.kind, &folder.join("mounted")) {
        Ok(mount) => mount,
        Err(error) => return broken(format!("the file system cannot be mounted: {error}")),
    };
    let seen = checker.look(&mount.path().join(QUEUE))?;
    mount.unmount()?;
    match seen {
        Ok(drained) => Ok((owed, drained.judge(&journal))),
        Err(what) => broken(what),
    }
}
