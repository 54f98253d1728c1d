//! Models of the whole core, its commit thread included: loom runs each with every interleaving of its steps that needs
//! at most the given number of preemptions, and reports a deadlock, a lost wake-up or a wrong count. `just loom` runs them
//! and prints how many executions there were; `LOOM_MAX_PREEMPTIONS` overrides the number.
#![cfg(all(loom, not(shuttle)))]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed model is a panic, and counts are printed"
)]

mod delivering;
mod ending;
mod memory;
mod pushing;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond::{Builder, Durability, Queue};

// The store takes its lock from whichever checker there is.
use loom::sync;
use store::{Disk, ModelStore};

/// Preemptions that a model of three threads (the commit thread is one) explores in about a second.
const PREEMPTIONS: usize = 4;

fn check(name: &str, model: impl Fn() + Send + Sync + 'static) {
    check_with(name, PREEMPTIONS, model);
}

/// Runs a model with every interleaving that needs at most `preemptions`.
fn check_with(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 20_000;
    let bound = builder.preemption_bound.unwrap_or(preemptions);
    builder.check(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        model();
    });
    let executions = executions.load(Ordering::SeqCst);
    println!("loom {name}: {executions} executions with up to {bound} preemptions");
}

/// A queue with `entries` in it, so that its ids are leased.
fn open(disk: &Arc<Disk>, durability: Durability, capacity: u64, entries: u64) -> Queue {
    let builder = Builder::new(ModelStore(Arc::clone(disk))).durability(durability);
    let queue = builder.capacity(capacity).open().unwrap();
    for n in 1..=entries {
        assert_eq!(queue.push(b"x").unwrap(), n);
    }
    queue
}

/// What a queue says of itself agrees with its store, and it ends.
fn end(queue: Queue, disk: &Disk) {
    let stats = queue.stats();
    assert_eq!((stats.length, stats.claimed, stats.waiting_pushes), (disk.entries(), 0, 0));
    drop(queue);
}
