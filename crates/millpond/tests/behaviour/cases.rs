//! Known troubles of other queues, each named by its number, and faults that a queue of this design had elsewhere.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use millpond::store::{FailureKind, MemStore};
use millpond::{Builder, Durability, ErrorCode, PushError, Queue, Reserved};
use parking_lot::Mutex;

use crate::fault_store::{Disk, FaultStore};

fn open(disk: &Arc<Disk>, durability: Durability) -> Queue {
    Builder::new(FaultStore(Arc::clone(disk))).durability(durability).open().unwrap()
}

fn ids(queue: &Queue) -> BTreeSet<u64> {
    queue.iter().map(|entry| entry.unwrap().id).collect()
}

#[test]
fn o_08_an_fsync_that_fails_once_stops_the_writer() {
    for durability in [Durability::Sync, Durability::Group] {
        let disk = Disk::new();
        let queue = open(&disk, durability);
        let stored = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for n in 0..100 {
                        if n == 20 {
                            // From then on the disk works again: the error is told once and never again.
                            disk.fail(FailureKind::Unknown, true);
                        }
                        match queue.push(b"x") {
                            Ok(id) => assert!(stored.lock().insert(id)),
                            Err(error) => {
                                let codes = [ErrorCode::Io, ErrorCode::Poisoned];
                                assert!(codes.contains(&error.code()), "{error}");
                            }
                        }
                    }
                });
            }
        });
        disk.heal();
        let attempts = disk.count(&disk.attempts);
        for _ in 0..10 {
            assert_eq!(queue.push(b"y").unwrap_err().code(), ErrorCode::Poisoned);
        }
        let item = queue.reserve().unwrap().unwrap();
        assert_eq!(item.ack().unwrap_err().code(), ErrorCode::Poisoned);
        assert!(queue.get(item.seq()).unwrap().is_some() && ids(&queue).contains(&item.seq()));
        drop((item, queue));
        assert_eq!(disk.count(&disk.attempts), attempts, "no second try on that file");
        disk.crash();
        let queue = open(&disk, durability);
        let stored = stored.into_inner();
        assert!(ids(&queue).is_superset(&stored), "nothing acknowledged is missing");
        assert!(queue.push(b"z").unwrap() > *stored.last().unwrap());
    }
}

#[test]
fn o_09_followers_get_the_leaders_error() {
    for round in 0..200 {
        let kind = [FailureKind::NoSpace, FailureKind::Unknown, FailureKind::NotWritten][round % 3];
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group);
        queue.push(b"takes the lease").unwrap();
        disk.torn.store(round % 2 == 0, Ordering::SeqCst);
        disk.hold();
        let held = disk.count(&disk.attempts);
        let outcomes: Vec<Result<u64, PushError>> = thread::scope(|scope| {
            // The first one is held in the store before the others come: they are the next batch.
            let mut pushes = vec![scope.spawn(|| queue.push(b"x"))];
            while disk.count(&disk.attempts) == held {
                thread::yield_now();
            }
            pushes.extend((1..64).map(|_| scope.spawn(|| queue.push(b"x"))));
            while queue.stats().claimed < 64 {
                thread::yield_now();
            }
            disk.fail(kind, true);
            disk.release();
            pushes.into_iter().map(|push| push.join().unwrap()).collect()
        });
        let seen = ids(&queue);
        let stored: Vec<u64> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).copied().collect();
        assert!(stored.iter().all(|id| seen.contains(id)), "round {round}: told ok and absent");
        // One batch was under way and held the first push; the other batch held the rest.
        let attempts = disk.count(&disk.attempts) - held;
        if kind == FailureKind::Unknown {
            assert_eq!((stored.len(), attempts), (0, 1), "round {round}: nothing follows a poisoned commit");
        } else {
            assert_eq!(attempts, 2, "round {round}: followers do not retry alone");
            let failed = outcomes.len() - stored.len();
            assert!(failed >= 1 && !stored.is_empty(), "round {round}: {failed} failed");
        }
        assert_eq!((queue.len(), queue.stats().claimed), (seen.len() as u64, 0));
    }
}

#[test]
fn o_18_a_nacked_item_keeps_its_place_and_blocks_nobody() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push_many(&[b"a", b"b", b"c"]).unwrap();
    let take = || queue.reserve().unwrap().unwrap();
    let attempts = disk.count(&disk.attempts);
    take().nack().unwrap();
    let again = take();
    assert_eq!((&*again, again.deliveries()), (&b"a"[..], 2));
    drop(again);
    for swap in [false, true] {
        let (a, b) = (take(), take());
        let (first, second) = if swap { (a, b) } else { (b, a) };
        first.nack().unwrap();
        second.nack().unwrap();
        let (a, b) = (take(), take());
        assert_eq!((&*a, &*b), (&b"a"[..], &b"b"[..]));
    }
    for _ in 0..10_000 {
        take().nack().unwrap();
    }
    assert_eq!(disk.count(&disk.attempts), attempts, "a nack writes nothing");
    let held = take();
    assert_eq!(&*held, b"a");
    for rest in [b"b", b"c"] {
        let item = take();
        assert_eq!(&*item, rest);
        item.ack().unwrap();
    }
    drop(held);
    drop(queue);
    let queue = open(&disk, Durability::Group);
    assert_eq!((&*queue.reserve().unwrap().unwrap(), queue.len()), (&b"a"[..], 1));
}

#[test]
fn o_20_close_ends_every_wait_of_a_thread() {
    let empty = Builder::new(MemStore::new()).open().unwrap();
    let disk = Disk::new();
    let full = Builder::new(FaultStore(Arc::clone(&disk))).capacity(2).open().unwrap();
    full.push_many(&[b"a", b"b"]).unwrap();
    thread::scope(|scope| {
        let reserves = [(); 3].map(|()| scope.spawn(|| empty.reserve_timeout(Duration::MAX).unwrap()));
        let pushes: Vec<_> = (0..50).map(|_| scope.spawn(|| full.push(b"x"))).collect();
        while full.stats().waiting_pushes < 50 {
            thread::yield_now();
        }
        let started = Instant::now();
        empty.close();
        full.close();
        assert!(reserves.into_iter().all(|reserve| reserve.join().unwrap().is_none()));
        assert!(pushes.into_iter().all(|push| matches!(push.join().unwrap(), Err(PushError::Closed))));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    });
    assert_eq!(full.push(b"late").unwrap_err().code(), ErrorCode::Closed);
    let item = full.reserve().unwrap().unwrap();
    assert!(item.nack().unwrap());
    assert!(full.ack(1).unwrap());
    assert_eq!(ids(&full), BTreeSet::from([2]));
    full.finish().unwrap();
    drop(full);
    assert_eq!(open(&disk, Durability::Sync).len(), 1, "none of the fifty is on disk");
}

#[test]
fn o_21_a_receive_that_is_given_up_swallows_nothing() {
    let queue = Builder::new(MemStore::new()).durability(Durability::Group).open().unwrap();
    let mut taken = BTreeSet::new();
    let clone = queue.clone();
    let rounds = 20_000u64;
    let producer = thread::spawn(move || {
        for round in 0..rounds {
            (0..round % 97).for_each(|_| std::hint::spin_loop());
            clone.push(b"x").unwrap();
        }
    });
    let mut settle = |item: Reserved| {
        assert!(taken.insert(item.seq()), "delivered twice");
        assert!(item.ack().unwrap());
        taken.len() as u64
    };
    let mut seen = 0;
    for round in 0..rounds {
        let mut wait = queue.reserve_async();
        for _ in 0..=round % 3 {
            let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(item) = polled {
                seen = settle(item.unwrap().unwrap());
                wait = queue.reserve_async();
            }
            (0..round % 89).for_each(|_| std::hint::spin_loop());
        }
        // Given up, woken or not.
        drop(wait);
        if round % 16 == 0
            && let Some(item) = queue.reserve_timeout(Duration::from_micros(50)).unwrap()
        {
            seen = settle(item);
        }
        let stats = queue.stats();
        assert_eq!((stats.in_flight, stats.length), (0, stats.ready));
    }
    producer.join().unwrap();
    while seen < rounds {
        let item = queue.reserve().unwrap().expect("every pushed item can be reserved");
        assert_eq!(item.deliveries(), 1);
        seen = settle(item);
    }
    assert!(queue.is_empty());
}

#[test]
fn ids_do_not_start_again_after_drain_and_reopen() {
    let disk = Disk::new();
    let mut last = 0;
    for _ in 0..5 {
        let queue = open(&disk, Durability::Sync);
        assert!(queue.is_empty());
        let id = queue.push(b"x").unwrap();
        assert!(id > last);
        last = id;
        queue.reserve().unwrap().unwrap().ack().unwrap();
    }
}

#[test]
fn a_failed_push_does_not_pin_the_head() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Sync);
    queue.push(b"takes the lease").unwrap();
    queue.ack(1).unwrap();
    for _ in 0..50 {
        disk.fail(FailureKind::NoSpace, true);
        queue.push(b"fails").unwrap_err();
        let id = queue.push(b"stored").unwrap();
        let item = queue.reserve().unwrap().unwrap();
        assert_eq!(item.seq(), id, "the gap is passed");
        item.ack().unwrap();
        assert!(queue.reserve().unwrap().is_none());
    }
    assert_eq!((queue.len(), queue.ready_len()), (0, 0));
}

#[test]
fn a_failed_group_commit_is_one_try_for_all_of_it() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push(b"takes the lease").unwrap();
    disk.hold();
    disk.fail(FailureKind::NoSpace, false);
    let before = disk.count(&disk.attempts);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| assert_eq!(queue.push(b"x").unwrap_err().code(), ErrorCode::NoSpace));
        }
        while queue.stats().claimed < 64 || disk.count(&disk.attempts) == before {
            thread::yield_now();
        }
        disk.release();
    });
    assert_eq!(disk.count(&disk.attempts) - before, 2, "the batch under way and the one behind it");
    disk.heal();
    queue.push(b"accepts again").unwrap();
}
