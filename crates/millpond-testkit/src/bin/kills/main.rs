//! kill -9 of the process that pushes and acks, on the log: `kills KILLS`.
//!
//! One part of them at every system call that the process makes (strace: the first time, the second, and so on until it
//! ends without having got so far, at most 60), the rest at random moments, some through the addon in Node. Each is
//! followed by an open, a drain and a judgement. Prints `not run: REASON` and ends with 77 where strace is missing.

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

use crate::rounds::{Job, Outcome};
use crate::victim::Victim;

/// What a process ends with that did not try anything.
const NOT_RUN: u8 = 77;
const DURABILITIES: [&str; 3] = ["sync", "group", "none"];
/// Kills of one job at random moments.
const SHARE: u64 = 20;
/// The longest life in microseconds: in Rust, and in Node, which takes most of it to start.
const LIFE: u64 = 30_000;
const ADDON_LIFE: u64 = 400_000;
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
    let calls = at_calls(&mut random, folder.path()).expect("a process that is traced");
    let (calls, mut holds) = report("at every system call", calls, &mut random, folder.path());
    let left = wanted.saturating_sub(calls);
    let addon = left / ADDON;
    let (rust, well) =
        report("at random moments", at_random(false, left - addon), &mut random, folder.path());
    holds &= well;
    let (node, well) =
        report("at random moments, in Node", at_random(true, addon), &mut random, folder.path());
    holds &= well;
    println!("kills: {} in all", calls + rust + node);
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every system call that a process makes on a fresh directory, or on one that is there.
fn at_calls(random: &mut Random, folder: &Path) -> io::Result<Vec<Job>> {
    let directory = folder.join("traced");
    let mut calls = BTreeSet::new();
    for first in [1 << 32, 2 << 32] {
        let seed = random.next_u64();
        let victim = Victim { is_addon: false, durability: "group", directory: &directory, first, seed };
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

fn at_random(is_addon: bool, kills: u64) -> Vec<Job> {
    let life = if is_addon { ADDON_LIFE } else { LIFE };
    let jobs = kills.div_ceil(SHARE);
    (0..jobs)
        .zip(DURABILITIES.iter().cycle())
        .map(|(job, durability)| {
            let kills = SHARE.min(kills - job * SHARE);
            Job::Moments { is_addon, durability, kills, life }
        })
        .collect()
}

/// Does jobs on as many threads as there are processors, and says what came out: how many kills, and whether all is well.
fn report(name: &str, jobs: Vec<Job>, random: &mut Random, folder: &Path) -> (u64, bool) {
    let started = Instant::now();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let queue =
        Mutex::new(jobs.into_iter().map(|job| (job, random.next_u64())).collect::<Vec<_>>().into_iter());
    let outcome =
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let next = || queue.lock().next();
                        let mut all = Outcome::default();
                        while let Some((job, seed)) = next() {
                            all = all.and(job.run(seed, folder).unwrap_or_else(|error| Outcome {
                                violations: vec![format!("{job:?}: {error}")],
                                ..Outcome::default()
                            }));
                        }
                        all
                    })
                })
                .collect();
            running.into_iter().fold(Outcome::default(), |all, thread| {
                all.and(thread.join().unwrap_or_else(|_| Outcome {
                    violations: vec!["a panic".to_owned()],
                    ..Outcome::default()
                }))
            })
        });
    // Processes that are killed before they did anything prove nothing.
    let works = outcome.kills == 0 || outcome.acknowledged > outcome.kills;
    let holds = outcome.violations.is_empty() && works;
    println!(
        "kill -9 {name}: kills={} acknowledged={} owed={} lost={} violations={} {:.1} s: {}",
        outcome.kills,
        outcome.acknowledged,
        outcome.owed,
        outcome.lost,
        outcome.violations.len(),
        started.elapsed().as_secs_f64(),
        match (holds, works) {
            (true, _) => "ok",
            (false, true) => "FAILED",
            (false, false) => "FAILED: too little load",
        }
    );
    for violation in outcome.violations.iter().take(20) {
        println!("    {violation}");
    }
    (outcome.kills, holds)
}
