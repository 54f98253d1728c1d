//! Kills on one directory after the other, each judged.

use std::io;
use std::path::Path;
use std::time::Duration;

use millpond::Builder;
use millpond_testkit::journal::Journal;
use millpond_testkit::oracle;
use millpond_testkit::random::Random;
use millpond_testkit::subjects::{Log, Subject};
use tempfile::TempDir;

use crate::victim::{Ended, STARTING, Victim};

/// Kills of one directory before a fresh one is taken.
const LIVES: u64 = 10;
/// The most numbers of one call that are tried.
const NUMBERS: u64 = 60;

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) kills: u64,
    /// Entries that were owed when the process was killed, over all kills.
    pub(crate) owed: u64,
    pub(crate) acknowledged: u64,
    pub(crate) lost: u64,
    pub(crate) violations: Vec<String>,
}

impl Outcome {
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.kills += other.kills;
        self.owed += other.owed;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.violations.extend(other.violations);
        self
    }
}

/// Who is killed, and when.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    /// At random moments, so many times; the moments are drawn from so many microseconds.
    Moments { is_addon: bool, durability: &'static str, kills: u64, life: u64 },
    /// At every number of one system call; on a fresh directory each time, or on one that goes on.
    Call { durability: &'static str, call: String, is_fresh: bool },
}

/// A queue that processes work on one after the other.
struct Place {
    directory: TempDir,
    journal: Journal,
    first: u64,
}

impl Place {
    fn new(folder: &Path) -> io::Result<Self> {
        let directory = tempfile::tempdir_in(folder)?;
        Ok(Self { directory, journal: Journal::default(), first: 0 })
    }

    fn victim<'a>(&'a mut self, is_addon: bool, durability: &'a str, seed: u64) -> Victim<'a> {
        self.first += 1 << 32;
        Victim { is_addon, durability, directory: self.directory.path(), first: self.first, seed }
    }

    /// Opens what a process left, and drains it.
    fn judge(&mut self, what: &str, ended: &Ended, outcome: &mut Outcome) -> io::Result<()> {
        let known = self.journal.pushed.len();
        ended.events.iter().for_each(|event| self.journal.add(*event));
        outcome.acknowledged += (self.journal.pushed.len() - known) as u64;
        let journal = &self.journal;
        outcome.owed += journal.pushed.keys().filter(|id| !journal.acks.contains(id)).count() as u64;
        let _no_child = STARTING.read();
        let store = Log::open(self.directory.path()).map_err(io::Error::other);
        let queue = match store.and_then(|store| Builder::new(store).open().map_err(io::Error::other)) {
            Ok(queue) => queue,
            Err(error) => {
                outcome.violations.push(format!("{what}: it does not open: {error}"));
                return Ok(());
            }
        };
        let damage = queue.recovery().damage;
        if !damage.is_empty() {
            outcome.violations.push(format!("{what}: damage reported: {damage:?}"));
        }
        // The judge's own entry is none of a producer's.
        self.journal.pushes.insert(0);
        let verdict = oracle::judge(&queue, &mut self.journal).map_err(io::Error::other)?;
        outcome.lost += verdict.lost;
        outcome.violations.extend(verdict.violations.iter().map(|wrong| format!("{what}: {wrong}")));
        Ok(())
    }
}

impl Job {
    /// Does it in `folder`.
    pub(crate) fn run(&self, seed: u64, folder: &Path) -> io::Result<Outcome> {
        let mut random = Random::new(seed);
        match *self {
            Self::Moments { is_addon, durability, kills, life } => {
                self.moments(is_addon, durability, kills, life, &mut random, folder)
            }
            Self::Call { durability, ref call, is_fresh } => {
                self.call(durability, call, is_fresh, &mut random, folder)
            }
        }
    }

    fn moments(
        &self,
        is_addon: bool,
        durability: &str,
        kills: u64,
        life: u64,
        random: &mut Random,
        folder: &Path,
    ) -> io::Result<Outcome> {
        let (mut outcome, mut place) = (Outcome::default(), Place::new(folder)?);
        for number in 0..kills {
            if number % LIVES == 0 {
                place = Place::new(folder)?;
            }
            let time = Duration::from_micros(random.below(life));
            let ended = place.victim(is_addon, durability, random.next_u64()).kill_after(time)?;
            let what = format!("{self:?}, kill {number}");
            if !ended.was_killed {
                outcome.violations.push(format!("{what}: it ended by itself: {}", ended.status));
            }
            outcome.kills += 1;
            place.judge(&what, &ended, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// Up to the number that no thread reaches.
    fn call(
        &self,
        durability: &str,
        call: &str,
        is_fresh: bool,
        random: &mut Random,
        folder: &Path,
    ) -> io::Result<Outcome> {
        let (mut outcome, mut place) = (Outcome::default(), Place::new(folder)?);
        for number in 1..=NUMBERS {
            if is_fresh {
                place = Place::new(folder)?;
            }
            let ended = place.victim(false, durability, random.next_u64()).kill_at(call, number)?;
            let what = format!("{self:?}, number {number}");
            if !ended.was_killed && !ended.status.success() {
                outcome.violations.push(format!("{what}: it ended with {}", ended.status));
            }
            place.judge(&what, &ended, &mut outcome)?;
            if !ended.was_killed {
                break;
            }
            outcome.kills += 1;
        }
        Ok(outcome)
    }
}
