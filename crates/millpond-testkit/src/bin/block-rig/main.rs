//! The block-level rig: queues on real file systems on a disk that is recorded, cut off and broken.
//!
//! - `block-rig slice`, `block-rig full`: lists of what follows
//! - `block-rig power-cut log|redb|sled|rocksdb|addon sync|group|none ext4|xfs IMAGES`
//! - `block-rig control IMAGES`: the same on a worker without its fsyncs, which must lose something
//! - `block-rig cost`: writes and flushes that a durable push costs the disk
//! - `block-rig disk-error STORE CASES`: so many for each file system, place and durability
//!
//! Prints `not run: REASON` and ends with 77 where block devices cannot be made.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failure ends the process, which fails the test; results are shown"
)]

mod check;
mod checker;
mod cost;
mod disk_error;
mod plan;
mod power_cut;
mod record;
mod stumble;
mod subject;
mod work;

use std::process::ExitCode;

use millpond_testkit::block_device::sandbox;

/// What a process ends with that did not try anything.
const NOT_RUN: u8 = 77;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first().map(|(task, rest)| (task.as_str(), rest)) {
        Some(("check", rest)) => check::check(rest),
        Some(("stumble", rest)) => stumble::stumble(rest),
        Some(("work", rest)) => work::work(rest),
        Some((task, rest)) => {
            if let Some(reason) = sandbox::obstacle(&sandbox::DEVICES, &sandbox::PROGRAMS) {
                println!("not run: {reason}");
                return ExitCode::from(NOT_RUN);
            }
            let sandbox = sandbox::enter().expect("namespaces of its own");
            return if plan::run(task, rest, &sandbox) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        None => panic!("slice, full, power-cut, control, cost, disk-error"),
    }
    ExitCode::SUCCESS
}
