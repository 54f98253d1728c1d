//! Models with more threads than loom can finish: shuttle runs each under schedules chosen at random, half of them with
//! few changes of priority, which find rare orders sooner. It reports a deadlock, a lost wake-up or a wrong count with the
//! schedule that shows it. `just shuttle`; `MILLPOND_SCHEDULES` sets how many, `MILLPOND_SEED` repeats them.
#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a failed model is a panic")]

#[path = "../loom/store.rs"]
mod store;

use std::collections::BTreeSet;
use std::sync::Arc;

use millpond::store::FailureKind;
use millpond::{Builder, Durability, ErrorCode, PushError, Queue, TryPushError};
// The store takes its lock from whichever checker there is.
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, sync, thread};
use store::{Disk, ModelStore};

const THREADS: u64 = 8;
/// Changes of priority in a schedule: a bug that needs so many orderings is found with a known probability.
const CHANGES: usize = 3;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn check(name: &str, model: fn()) {
    let schedules = usize::try_from(number("MILLPOND_SCHEDULES").unwrap_or(2_000)).unwrap();
    let seed = number("MILLPOND_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("shuttle {name}: MILLPOND_SEED={seed}");
    let half = schedules.div_ceil(2);
    let random = Runner::new(RandomScheduler::new_from_seed(seed, half), Config::default()).run(model);
    let few = Runner::new(PctScheduler::new_from_seed(seed, CHANGES, half), Config::default()).run(model);
    println!("shuttle {name}: {} schedules", random + few);
}

fn open(disk: &Arc<Disk>, durability: Durability, capacity: u64) -> Queue {
    let builder = Builder::new(ModelStore(Arc::clone(disk))).durability(durability);
    builder.capacity(capacity).open().unwrap()
}

/// Runs `each` on so many threads and returns what they return.
fn on_threads<R: Send + 'static>(
    queue: &Queue,
    each: impl Fn(Queue, u64) -> R + Clone + Send + 'static,
) -> Vec<R> {
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            let (queue, each) = (queue.clone(), each.clone());
            thread::spawn(move || each(queue, n))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// What a queue says of itself agrees with its store, and it ends.
fn end(queue: Queue, disk: &Disk) {
    let stats = queue.stats();
    assert_eq!((stats.length, stats.claimed, stats.waiting_pushes), (disk.entries(), 0, 0));
    assert_eq!((stats.in_flight, stats.ready), (0, stats.length));
    drop(queue);
}

#[test]
fn eight_threads_push_take_and_ack() {
    check("eight_threads_push_take_and_ack", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 100);
        let done = on_threads(&queue, |queue, _| {
            let (mut pushed, mut acked) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                pushed.push(queue.push(b"x").unwrap());
                if let Some(item) = queue.reserve().unwrap() {
                    acked.push(item.seq());
                    assert!(item.ack().unwrap(), "handed out to one only");
                }
            }
            assert!(pushed.is_sorted());
            (pushed, acked)
        });
        let pushed: BTreeSet<u64> = done.iter().flat_map(|(pushed, _)| pushed).copied().collect();
        let acked: Vec<u64> = done.iter().flat_map(|(_, acked)| acked).copied().collect();
        assert_eq!(pushed, (1..=3 * THREADS).collect());
        assert_eq!(acked.iter().collect::<BTreeSet<_>>().len(), acked.len(), "acked twice");
        assert_eq!(queue.len(), pushed.len() as u64 - acked.len() as u64);
        end(queue, &disk);
    });
}

#[test]
fn pushes_that_wait_for_room_all_get_in() {
    check("pushes_that_wait_for_room_all_get_in", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 2);
        let done = on_threads(&queue, |queue, n| {
            if n % 2 == 0 {
                for _ in 0..3 {
                    queue.push(b"x").unwrap();
                }
                return 0;
            }
            let mut taken = 0;
            while taken < 3 {
                match queue.reserve().unwrap() {
                    Some(item) => taken += u64::from(item.ack().unwrap()),
                    None => thread::yield_now(),
                }
            }
            taken
        });
        assert_eq!(done.iter().sum::<u64>(), 3 * THREADS / 2);
        assert!(queue.is_empty());
        end(queue, &disk);
    });
}

#[test]
fn a_leader_that_fails_for_lack_of_room_fails_its_batch_alone() {
    check("a_leader_that_fails_for_lack_of_room_fails_its_batch_alone", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 100);
        queue.push(b"takes the lease").unwrap();
        disk.fail(FailureKind::NoSpace);
        let outcomes =
            on_threads(&queue, |queue, _| [queue.push(b"x"), queue.push(b"y")]).into_iter().flatten();
        let (stored, failed): (Vec<_>, Vec<_>) = outcomes.partition(Result::is_ok);
        assert!(!failed.is_empty() && stored.len() >= THREADS as usize, "one try fails once");
        for outcome in failed {
            assert_eq!(outcome.unwrap_err().code(), ErrorCode::NoSpace);
        }
        assert_eq!(disk.entries(), 1 + stored.len() as u64);
        end(queue, &disk);
    });
}

#[test]
fn a_poisoned_commit_ends_every_push() {
    check("a_poisoned_commit_ends_every_push", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 100);
        queue.push(b"takes the lease").unwrap();
        let clone = Arc::clone(&disk);
        let outcomes = on_threads(&queue, move |queue, n| {
            if n == 3 {
                clone.fail(FailureKind::Unknown);
            }
            [queue.push(b"x"), queue.push(b"y"), queue.push(b"z")]
        });
        let stored = outcomes.iter().flatten().filter(|outcome| outcome.is_ok()).count() as u64;
        for outcome in outcomes.into_iter().flatten().filter_map(Result::err) {
            assert!([ErrorCode::Io, ErrorCode::Poisoned].contains(&outcome.code()), "{outcome}");
        }
        assert_eq!(disk.entries(), 1 + stored);
        assert_eq!(queue.push(b"late").unwrap_err().code(), ErrorCode::Poisoned);
        assert!(queue.reserve().unwrap().is_some(), "reading goes on");
        drop(queue);
    });
}

#[test]
fn a_close_ends_pushes_and_takers() {
    check("a_close_ends_pushes_and_takers", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 2);
        let stored: u64 = on_threads(&queue, |queue, n| match n {
            0 => {
                queue.close();
                0
            }
            1 | 2 => {
                while let Some(item) = queue.reserve().unwrap() {
                    drop(item);
                    thread::yield_now();
                    if matches!(queue.try_push(b""), Err(TryPushError::Closed)) {
                        break;
                    }
                }
                0
            }
            _ => match (queue.push(b"x"), queue.push(b"y")) {
                (Ok(_), Ok(_)) => 2,
                (Ok(_), Err(PushError::Closed)) => 1,
                (Err(PushError::Closed), Err(PushError::Closed)) => 0,
                other => panic!("{other:?}"),
            },
        })
        .into_iter()
        .sum();
        assert!(disk.entries() >= stored && disk.entries() <= 2);
        assert!(matches!(queue.push(b"late"), Err(PushError::Closed)));
        end(queue, &disk);
    });
}
