//! kill -9 of the process that pushes and acks, on the log: `kills KILLS`.
//!
//! One part of them at every system call that the process makes (strace: the first time, the second, and so on until it
//! ends without having got so far, at most 60), the rest at random moments, some through the addon in Node. Each is
//! followed by an open, a drain and a judgement. With the feature `planted` there is a control, processes that give out ids
//! again. Prints `not run: REASON` and ends with 77 where strace is missing.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failure ends the process, which fails the test; results are shown"
)]

mod rounds;
mod victim;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use millpond_testkit::block_device::program;
use millpond_testkit::random::Random;
use parking_lot::Mutex;

use crate::rounds::{Job, Moments, Outcome};
use crate::victim::Victim;

/// What a process ends with that did not try anything.
const NOT_RUN: u8 = 77;
const DURABILITIES: [&str; 3] = ["sync", "group", "none"];
/// Kills of one job at random moments.
const SHARE: u64 = 20;
/// Microseconds until a process works: in Rust, and in Node.
const START: u64 = 5000;
const ADDON_START: u64 = 200_000;
/// A fault that shows after a kill, and kills of processes that have it.
const CONTROL_FAULT: &str = "reuse-id-after-drain";
const CONTROL: u64 = 60;
/// One in so many kills at random moments is of Node.
const ADDON: u64 = 10;

fn main() -> ExitCode {
    let wanted: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).expect("kills KILLS");
    if !program::is_there("strace") || program::run("strace", ["-o", "/dev/null", "true"]).is_err() {
        println!("not run: strace is missing or may not trace here");
        return ExitCode::from(NOT_RUN);
    }
    let (mut random, seed) = Random::from_environment();
    println!("kills: MILLPOND_SEED={seed}");
    // A kill takes nothing from the cache of the system: a file system in memory loses what any other would, and sooner.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder");
    let mut holds = true;
    if cfg!(feature = "planted") {
        let outcome = run(at_random(CONTROL, Some(CONTROL_FAULT), false), &mut random, folder.path());
        holds &= report(&format!("control with {CONTROL_FAULT}"), &outcome, true);
    }
    let calls = at_calls(&mut random, folder.path()).expect("a process that is traced");
    let calls = run(calls, &mut random, folder.path());
    holds &= report("at every system call", &calls, false);
    let left = wanted.saturating_sub(calls.kills);
    let addon = left / ADDON;
    let rust = run(at_random(left - addon, None, false), &mut random, folder.path());
    holds &= report("at random moments", &rust, false);
    let node = run(at_random(addon, None, true), &mut random, folder.path());
    holds &= report("at random moments, in Node", &node, false);
    println!("kills: {} in all", calls.kills + rust.kills + node.kills);
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every system call that a process makes on a fresh directory, or on one that is there.
fn at_calls(random: &mut Random, folder: &Path) -> io::Result<Vec<Job>> {
    let directory = folder.join("traced");
    let mut calls = BTreeSet::new();
    for first in [1 << 32, 2 << 32] {
        let seed = random.next_u64();
        let victim = Victim {
            is_addon: false,
            planted: None,
            durability: "group",
            directory: &directory,
            first,
            seed,
        };
        calls.extend(victim.calls(&folder.join("trace"))?);
    }
    let mut jobs = Vec::new();
    for durability in DURABILITIES {
        for is_fresh in [true, false] {
            jobs.extend(calls.iter().map(|call| Job::Call { durability, call: call.clone(), is_fresh }));
        }
    }
    Ok(jobs)
}

/// Kills at random moments, under each durability in turn.
fn at_random(kills: u64, planted: Option<&'static str>, is_addon: bool) -> Vec<Job> {
    let start = if is_addon { ADDON_START } else { START };
    (0..kills.div_ceil(SHARE))
        .zip(DURABILITIES.iter().cycle())
        .map(|(job, durability)| {
            let kills = SHARE.min(kills - job * SHARE);
            Job::Moments(Moments { is_addon, planted, durability, kills, start })
        })
        .collect()
}

/// Does jobs on as many threads as there are processors.
fn run(jobs: Vec<Job>, random: &mut Random, folder: &Path) -> Outcome {
    let started = Instant::now();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let jobs: Vec<_> = jobs.into_iter().map(|job| (job, random.next_u64())).collect();
    let queue = Mutex::new(jobs.into_iter());
    let work = || {
        let next = || queue.lock().next();
        let mut all = Outcome::default();
        while let Some((job, seed)) = next() {
            let done = job.run(seed, folder);
            all = all.and(done.unwrap_or_else(|error| Outcome::broken(format!("{job:?}: {error}"))));
        }
        all
    };
    let mut outcome = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = running.into_iter().map(thread::ScopedJoinHandle::join);
        done.fold(Outcome::default(), |all, one| {
            all.and(one.unwrap_or_else(|_| Outcome::broken("a panic".to_owned())))
        })
    });
    outcome.seconds = started.elapsed().as_secs_f64();
    outcome
}

/// One line for what came out. Whether it is as it must be.
fn report(name: &str, outcome: &Outcome, must_fail: bool) -> bool {
    // Processes that are killed before they did anything prove nothing.
    let works = !outcome.is_broken && (outcome.kills == 0 || outcome.acknowledged > outcome.kills);
    let holds = works && outcome.violations.is_empty() != must_fail;
    let end = match (holds, works, must_fail) {
        (true, _, true) => "ok, it must fail",
        (true, _, false) => "ok",
        (false, true, true) => "FAILED: the rig is blind",
        (false, true, false) => "FAILED",
        (false, false, _) => "FAILED: it did not work",
    };
    println!("kill -9 {name}: {outcome}: {end}");
    if !must_fail || !holds {
        for violation in outcome.violations.iter().take(20) {
            println!("    {violation}");
        }
    }
    holds
}
