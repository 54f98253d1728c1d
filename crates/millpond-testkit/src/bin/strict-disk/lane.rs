//! Cycles one after the other, on one mount and with one process.

use std::fmt;
use std::io;
use std::path::Path;

use millpond_testkit::journal::Journal;
use millpond_testkit::ledger::Crash;
use millpond_testkit::random::Random;
use millpond_testkit::strict_disk::{Deaf, Remains, StrictDisk};

use crate::cycle::{self, Cycle, Said};
use crate::worker::{Addon, Worker};

/// Cycles of one queue before a fresh one is taken.
const LIVES: u64 = 12;

/// What came out of many cycles.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) cycles: u64,
    cuts: u64,
    power_cuts: u64,
    failed: u64,
    short: u64,
    closed: u64,
    judged: u64,
    owed: u64,
    pub(crate) lost: u64,
    pub(crate) violations: Vec<String>,
    /// The rig or the worker did not do what it must.
    pub(crate) is_broken: bool,
    pub(crate) seconds: f64,
}

impl Outcome {
    pub(crate) fn broken(what: &str) -> Self {
        Self { violations: vec![what.to_owned()], is_broken: true, ..Self::default() }
    }

    /// Both together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.cycles += other.cycles;
        self.cuts += other.cuts;
        self.power_cuts += other.power_cuts;
        self.failed += other.failed;
        self.short += other.short;
        self.closed += other.closed;
        self.judged += other.judged;
        self.owed += other.owed;
        self.lost += other.lost;
        self.violations.extend(other.violations);
        self.is_broken |= other.is_broken;
        self.seconds += other.seconds;
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cycles={} (power lost {}, cut off at a call {}, calls failed {}, short writes {}, closed {}) judged={} owed={} lost={} \
             violations={} {:.1} s",
            self.cycles,
            self.power_cuts,
            self.cuts,
            self.failed,
            self.short,
            self.closed,
            self.judged,
            self.owed,
            self.lost,
            self.violations.len(),
            self.seconds
        )
    }
}

/// One mount and one process.
pub(crate) struct Lane {
    disk: StrictDisk,
    worker: Worker,
    deaf: Deaf,
    random: Random,
    /// The cycle before, which left what this one finds.
    before: Option<Cycle>,
}

impl Lane {
    pub(crate) fn start(addon: &Addon, deaf: Deaf, seed: u64, folder: &Path) -> io::Result<Self> {
        let (disk, worker) = (StrictDisk::mount(folder)?, Worker::start(addon)?);
        Ok(Self { disk, worker, deaf, random: Random::new(seed), before: None })
    }

    pub(crate) fn run(mut self, cycles: u64) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let (mut remains, mut journal) = (Remains::default(), Journal::default());
        for number in 0..cycles {
            if number % LIVES == 0 {
                (remains, journal) = (Remains::default(), Journal::default());
            }
            remains = self.cycle(number, remains, &mut journal, &mut outcome)?;
        }
        Ok(outcome)
    }

    fn cycle(
        &mut self,
        number: u64,
        remains: Remains,
        journal: &mut Journal,
        outcome: &mut Outcome,
    ) -> io::Result<Remains> {
        let cycle = Cycle::draw(&mut self.random, self.deaf);
        let (boot, directory) = self.disk.boot(remains, cycle.plan, self.random.next_u64());
        let words = format!(
            "{} {} {} {} {} {}",
            directory.display(),
            cycle.durability,
            (number + 1) << 32,
            self.random.next_u64(),
            cycle.answers,
            if cycle.drains { "drain" } else { "keep" }
        );
        let said = Said::read(&self.worker.live(&words)?);
        let log = self.disk.log(boot).ok_or_else(|| io::Error::other("no such boot"))?;
        let before = self.before.replace(cycle.clone());
        let mut violate = |what: String| {
            outcome.violations.push(format!("cycle {number}, {cycle:?}: {what}; before: {before:?}"));
        };
        if let Some(damage) = &said.damage {
            violate(format!("damage reported: {damage}"));
        }
        // Nothing may fail by itself.
        if said.why != "enough" && !log.was_cut && log.failed == 0 {
            violate(format!("it ended with {}", said.why));
        }
        if let Some(seen) = &said.seen {
            let (owed, verdict) = cycle::judge(seen, journal);
            verdict.violations.into_iter().for_each(&mut violate);
            (outcome.judged, outcome.owed) = (outcome.judged + 1, outcome.owed + owed);
            outcome.lost += verdict.lost;
        }
        said.events.iter().for_each(|event| journal.add(*event));
        outcome.cycles += 1;
        outcome.cuts += u64::from(log.was_cut);
        outcome.failed += u64::from(log.failed > 0);
        outcome.short += log.short;
        outcome.closed += u64::from(said.why == "enough");
        outcome.power_cuts += u64::from(cycle.crash == Crash::PowerCut);
        self.disk.crash(boot, cycle.crash, &mut self.random).ok_or_else(|| io::Error::other("no such boot"))
    }
}
