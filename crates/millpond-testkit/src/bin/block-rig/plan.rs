//! Which combinations are tried, and the lines that tell what came out.

use std::io;
use std::time::Instant;

use millpond::Durability;
use millpond_testkit::block_device::mount::FileSystem;
use millpond_testkit::block_device::sandbox::Sandbox;
use millpond_testkit::random::Random;

use crate::cost;
use crate::disk_error::{self, Site};
use crate::power_cut;
use crate::subject::Subject;

const KINDS: [FileSystem; 2] = [FileSystem::Ext4, FileSystem::Xfs];
const SITES: [Site; 3] = [Site::Data, Site::Journal, Site::Flush];

/// Stores of this build.
const STORES: &[&str] = &[
    "log",
    #[cfg(feature = "redb")]
    "redb",
    #[cfg(feature = "sled")]
    "sled",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
];

fn subject(name: &str, durability: &str) -> Subject {
    Subject { name: name.to_owned(), durability: durability.to_owned(), skips_sync: false }
}

/// All combinations of one run.
#[derive(Default)]
struct Plan {
    /// Whether the cost of a push is counted.
    counts: bool,
    cuts: Vec<power_cut::Experiment>,
    errors: Vec<disk_error::Experiment>,
}

impl Plan {
    fn cut(&mut self, subject: Subject, kind: FileSystem, images: usize, is_whole: bool) {
        self.cuts.push(power_cut::Experiment { subject, kind, images, is_whole });
    }

    fn fail(&mut self, name: &str, cases: usize) {
        for kind in KINDS {
            for site in SITES {
                for durability in ["sync", "group"] {
                    let subject = subject(name, durability);
                    self.errors.push(disk_error::Experiment { subject, kind, site, cases });
                }
            }
        }
    }

    /// A worker without its fsyncs: the rig that reports nothing for it is blind.
    fn control(&mut self, images: usize) {
        for kind in KINDS {
            let subject = Subject { skips_sync: true, ..subject("log", "sync") };
            self.cut(subject, kind, images, false);
        }
    }

    /// About a minute.
    fn slice() -> Self {
        let mut plan = Self { counts: true, ..Self::default() };
        plan.control(20);
        plan.cut(subject("log", "group"), FileSystem::Ext4, 120, false);
        plan.cut(subject("redb", "sync"), FileSystem::Ext4, 60, false);
        plan.cut(subject("addon", "group"), FileSystem::Ext4, 120, false);
        plan.cut(subject("addon", "sync"), FileSystem::Xfs, 30, false);
        plan.fail("log", 1);
        plan.fail("redb", 1);
        plan
    }

    /// Rows R4, R5 and R9.
    fn full() -> Self {
        let mut plan = Self { counts: true, ..Self::default() };
        plan.control(50);
        for store in STORES {
            for durability in ["sync", "group"] {
                plan.cut(subject(store, durability), FileSystem::Ext4, 300, *store == "log");
            }
        }
        for durability in ["sync", "group"] {
            plan.cut(subject("addon", durability), FileSystem::Ext4, 1000, false);
            plan.cut(subject("addon", durability), FileSystem::Xfs, 100, false);
        }
        for store in STORES {
            plan.fail(store, if *store == "log" { 10 } else { 2 });
        }
        plan
    }

    fn of(task: &str, arguments: &[String]) -> Self {
        let mut plan = Self::default();
        let kind = |name: &String| FileSystem::named(name).expect("ext4 or xfs");
        let count = |number: &String| number.parse().expect("a number");
        match (task, arguments) {
            ("slice", []) => plan = Self::slice(),
            ("full", []) => plan = Self::full(),
            ("cost", []) => plan.counts = true,
            ("power-cut", [name, durability, file_system, images]) => {
                plan.cut(subject(name, durability), kind(file_system), count(images), false);
            }
            ("disk-error", [name, cases]) => plan.fail(name, count(cases)),
            ("control", [images]) => plan.control(count(images)),
            _ => panic!("no such task: {task} {arguments:?}"),
        }
        plan
    }
}

/// Tries what was asked for. Whether everything came out as it must.
pub(crate) fn run(task: &str, arguments: &[String], sandbox: &Sandbox) -> bool {
    let plan = Plan::of(task, arguments);
    let (_, seed) = Random::from_environment();
    println!("block-rig {task}: MILLPOND_SEED={seed}");
    // All of them, so that one run shows everything that is wrong.
    let mut failed = 0;
    if plan.counts {
        for durability in [Durability::Sync, Durability::Group] {
            failed += usize::from(!count(durability, sandbox));
        }
    }
    for experiment in &plan.cuts {
        failed += usize::from(!cut(experiment, seed, sandbox));
    }
    for experiment in &plan.errors {
        failed += usize::from(!fail(experiment, seed, sandbox));
    }
    failed == 0
}

/// On ext4, where a commit of the journal would show.
fn count(durability: Durability, sandbox: &Sandbox) -> bool {
    let cost = match cost::count(FileSystem::Ext4, durability, sandbox) {
        Ok(cost) => cost,
        Err(error) => return broken("cost of a push", &error),
    };
    println!(
        "cost of a push, log {durability:?} ext4: pushes={} writes={:.3} flushes={:.3} for each: {}",
        cost.pushes,
        cost.writes(),
        cost.flushes(),
        if cost.holds() { "ok" } else { "FAILED" }
    );
    cost.holds()
}

fn cut(experiment: &power_cut::Experiment, seed: u64, sandbox: &Sandbox) -> bool {
    let power_cut::Experiment { subject, kind, .. } = experiment;
    let outcome = match power_cut::run(experiment, seed, sandbox) {
        Ok(outcome) => outcome,
        Err(error) => return broken(&format!("power cut, {subject:?} {kind:?}"), &error),
    };
    let holds = if subject.skips_sync { outcome.lost > 0 } else { outcome.bad_images == 0 };
    let end = match (holds, subject.skips_sync) {
        (true, true) => "ok, it must lose",
        (true, false) => "ok",
        (false, true) => "FAILED: the rig is blind",
        (false, false) => "FAILED",
    };
    println!(
        "power cut, {} {} {}{}: images={} (at flushes {}, cache lost {}) recordings={} owed={} lost={} bad-images={} \
         {:.1}+{:.1} s: {end}",
        subject.name,
        subject.durability,
        kind.name(),
        if subject.skips_sync { " without fsync" } else { "" },
        outcome.images,
        outcome.at_flushes,
        outcome.power_cuts,
        outcome.recordings,
        outcome.owed,
        outcome.lost,
        outcome.bad_images,
        outcome.seconds_recording,
        outcome.seconds_judging,
    );
    if !subject.skips_sync {
        tell(&outcome.violations);
    }
    holds
}

fn fail(experiment: &disk_error::Experiment, seed: u64, sandbox: &Sandbox) -> bool {
    let disk_error::Experiment { subject, kind, site, cases } = experiment;
    let started = Instant::now();
    let outcome = match disk_error::run(experiment, seed, sandbox) {
        Ok(outcome) => outcome,
        Err(error) => return broken(&format!("disk error, {subject:?} {kind:?} {site:?}"), &error),
    };
    let holds = outcome.violations.is_empty();
    println!(
        "disk error, {} {} {} {site:?}: cases={cases} hit={} late-refused={} reopened={} owed={} lost={} {:.1} s: {}",
        subject.name,
        subject.durability,
        kind.name(),
        outcome.hit,
        outcome.late,
        outcome.reopened,
        outcome.owed,
        outcome.lost,
        started.elapsed().as_secs_f64(),
        if holds { "ok" } else { "FAILED" },
    );
    tell(&outcome.violations);
    holds
}

/// The rig itself, or a worker, did not do what it must.
fn broken(what: &str, error: &io::Error) -> bool {
    println!("{what}: FAILED: {error}");
    false
}

/// The first of what is wrong.
fn tell(violations: &[String]) {
    for violation in violations.iter().take(20) {
        println!("    {violation}");
    }
}
