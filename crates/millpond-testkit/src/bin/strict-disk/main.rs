//! The addon in Node on the strict file system: pushes and acks, cut off at any call, opened again, and judged.
//!
//! - `strict-disk CYCLES`: so many crashes, and first the controls, which must lose something
//!
//! `MILLPOND_PLANTED_ADDON` is the file of an addon in which faults can be planted; without it the disk alone plays
//! the builds that do not sync. Prints `not run: REASON` and ends with 77 where it cannot be mounted.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failure ends the process, which fails the test; results are shown"
)]

mod cycle;
mod lane;
mod worker;

use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use millpond_testkit::block_device::sandbox::{self, Sandbox};
use millpond_testkit::random::Random;
use millpond_testkit::strict_disk::Deaf;

use crate::lane::{Lane, Outcome};
use crate::worker::Addon;

/// What a process ends with that did not try anything.
const NOT_RUN: u8 = 77;
/// A control goes on by so many crashes until it loses something, and gives up after [`MOST`].
const BATCH: u64 = 60;
const MOST: u64 = 1500;

/// What a disk needs that is served by this program.
const DEVICES: [&str; 1] = ["/dev/fuse"];
const PROGRAMS: [(&str, &str); 2] = [("mount", "mount"), ("node", "nodejs")];

fn main() -> ExitCode {
    let cycles = std::env::args().nth(1).and_then(|count| count.parse().ok()).expect("strict-disk CYCLES");
    if let Some(reason) = sandbox::obstacle(&DEVICES, &PROGRAMS) {
        println!("not run: {reason}");
        return ExitCode::from(NOT_RUN);
    }
    let sandbox = sandbox::enter().expect("namespaces of its own");
    let (mut random, seed) = Random::from_environment();
    println!("strict-disk: MILLPOND_SEED={seed}");
    let mut holds = true;
    for (name, addon, deaf) in controls() {
        let mut outcome = Outcome::default();
        while outcome.lost == 0 && !outcome.is_broken && outcome.cycles < MOST {
            outcome = outcome.and(run(&addon, deaf, BATCH, &mut random, &sandbox));
        }
        holds &= report(&name, &outcome, true);
    }
    let outcome = run(&Addon::default(), Deaf::No, cycles, &mut random, &sandbox);
    holds &= report("addon", &outcome, false);
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Builds that do not sync: the rig that loses nothing with them is blind.
fn controls() -> Vec<(String, Addon, Deaf)> {
    let mut controls = vec![
        ("control: no file is synced".to_owned(), Addon::default(), Deaf::Files),
        ("control: no directory is synced".to_owned(), Addon::default(), Deaf::Directories),
    ];
    if let Some(file) = std::env::var_os("MILLPOND_PLANTED_ADDON") {
        for fault in ["skip-data-sync", "skip-directory-sync"] {
            let addon = Addon { file: Some(file.clone()), planted: Some(fault) };
            controls.push((format!("control: addon with {fault}"), addon, Deaf::No));
        }
    }
    controls
}

/// Shares the cycles between as many lanes as there are processors.
fn run(addon: &Addon, deaf: Deaf, cycles: u64, random: &mut Random, sandbox: &Sandbox) -> Outcome {
    let started = Instant::now();
    let lanes = thread::available_parallelism().map_or(1, usize::from) as u64;
    let mut outcome = thread::scope(|scope| {
        let running: Vec<_> = (0..lanes)
            .map(|lane| {
                let (seed, share) = (random.next_u64(), cycles / lanes + u64::from(lane < cycles % lanes));
                scope.spawn(move || {
                    Lane::start(addon, deaf, seed, &sandbox.folder()?).and_then(|lane| lane.run(share))
                })
            })
            .collect();
        running.into_iter().fold(Outcome::default(), |all, lane| match lane.join() {
            Ok(Ok(outcome)) => all.and(outcome),
            Ok(Err(error)) => all.and(Outcome::broken(&error.to_string())),
            Err(_) => all.and(Outcome::broken("a panic")),
        })
    });
    outcome.seconds = started.elapsed().as_secs_f64();
    outcome
}

/// One line for what came out. Whether it is as it must be.
fn report(name: &str, outcome: &Outcome, must_lose: bool) -> bool {
    let holds =
        if must_lose { outcome.lost > 0 && !outcome.is_broken } else { outcome.violations.is_empty() };
    let end = match (holds, must_lose) {
        (true, true) => "ok, it must lose",
        (true, false) => "ok",
        (false, true) => "FAILED: the rig is blind",
        (false, false) => "FAILED",
    };
    println!("{name}: {outcome}: {end}");
    if !must_lose || !holds {
        for violation in outcome.violations.iter().take(20) {
            println!("    {violation}");
        }
    }
    holds
}
