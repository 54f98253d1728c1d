//! Kills on one directory after the other, each judged.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use millpond::Builder;
use millpond_testkit::journal::Journal;
use millpond_testkit::oracle;
use millpond_testkit::random::Random;
use millpond_testkit::subjects::{Log, Subject};
use tempfile::TempDir;

use crate::victim::{Ended, Moment, STARTING, Victim};

/// Kills of one directory before a fresh one is taken.
const LIVES: u64 = 10;
/// The most lines that a process says before it is killed, and the most microseconds between the last of them and the kill.
const LINES: u64 = 150;
const PAUSE: u64 = 2000;
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
    /// The rig did not do what it must.
    pub(crate) is_broken: bool,
    pub(crate) seconds: f64,
}

impl Outcome {
    pub(crate) fn broken(what: String) -> Self {
        Self { violations: vec![what], is_broken: true, ..Self::default() }
    }

    /// Both together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.kills += other.kills;
        self.owed += other.owed;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.violations.extend(other.violations);
        self.is_broken |= other.is_broken;
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, acknowledged, owed, lost, violations, seconds, .. } = self;
        write!(f, "kills={kills} acknowledged={acknowledged} owed={owed} lost={lost} ")?;
        write!(f, "violations={} {seconds:.1} s", violations.len())
    }
}

/// Who is killed, and when.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    /// At random moments, so many times.
    Moments(Moments),
    /// At every number of one system call; on a fresh directory each time, or on one that goes on.
    Call { durability: &'static str, call: String, is_fresh: bool },
}

/// Kills at random moments.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    pub(crate) is_addon: bool,
    pub(crate) planted: Option<&'static str>,
    pub(crate) durability: &'static str,
    pub(crate) kills: u64,
    /// Microseconds that a process takes to start and to open.
    pub(crate) start: u64,
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

    /// The next process, in Rust and without a fault.
    fn victim<'a>(&'a mut self, durability: &'a str, seed: u64) -> Victim<'a> {
        self.first += 1 << 32;
        let directory = self.directory.path();
        Victim { is_addon: false, planted: None, durability, directory, first: self.first, seed }
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
            Self::Moments(ref moments) => moments.run(&mut random, folder),
            Self::Call { durability, ref call, is_fresh } => {
                self.call(durability, call, is_fresh, &mut random, folder)
            }
        }
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
            let ended = place.victim(durability, random.next_u64()).kill_at(call, number)?;
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

impl Moments {
    /// One in four while it opens, the others by what it has done, which does not depend on how busy the machine is.
    fn moment(&self, random: &mut Random) -> Moment {
        let (lines, span) =
            if random.below(4) == 0 { (0, 2 * self.start) } else { (1 + random.below(LINES), PAUSE) };
        Moment { lines, pause: Duration::from_micros(random.below(span)) }
    }

    fn run(&self, random: &mut Random, folder: &Path) -> io::Result<Outcome> {
        let (mut outcome, mut place) = (Outcome::default(), Place::new(folder)?);
        for number in 0..self.kills {
            if number % LIVES == 0 {
                place = Place::new(folder)?;
            }
            let moment = self.moment(random);
            let victim = place.victim(self.durability, random.next_u64());
            let ended =
                Victim { is_addon: self.is_addon, planted: self.planted, ..victim }.kill_after(moment)?;
            let what = format!("{self:?}, kill {number}");
            if !ended.was_killed {
                outcome.violations.push(format!("{what}: it ended by itself: {}", ended.status));
            }
            outcome.kills += 1;
            place.judge(&what, &ended, &mut outcome)?;
        }
        Ok(outcome)
    }
}
