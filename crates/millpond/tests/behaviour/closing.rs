use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use millpond::store::MemStore;
use millpond::{AckError, Builder, Durability, ErrorCode, PushError, TryPushError};

use crate::fault_store::{Disk, FaultStore};

#[test]
fn close_refuses_pushes_and_lets_the_consumer_drain() {
    let queue = Builder::new(MemStore::new()).open().unwrap();
    queue.push_many(&[b"a", b"b"]).unwrap();
    queue.close();
    queue.close();
    assert!(queue.is_closed());
    assert!(matches!(queue.push(b"c"), Err(PushError::Closed)));
    assert!(matches!(queue.try_push(b"c"), Err(TryPushError::Closed)));
    for payload in [b"a", b"b"] {
        let item = queue.reserve_timeout(Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!(&*item, payload);
        item.ack().unwrap();
    }
    assert!(queue.reserve_timeout(Duration::from_mins(1)).unwrap().is_none());
}

#[test]
fn close_wakes_everybody_who_waits() {
    let empty = Builder::new(MemStore::new()).open().unwrap();
    let full = Builder::new(MemStore::new()).capacity(2).open().unwrap();
    full.push_many(&[b"a", b"b"]).unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        let reserves: Vec<_> =
            (0..3).map(|_| scope.spawn(|| empty.reserve_timeout(Duration::from_mins(1)).unwrap())).collect();
        let pushes: Vec<_> = (0..50).map(|_| scope.spawn(|| full.push(b"x"))).collect();
        while full.stats().waiting_pushes < 50 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        empty.close();
        full.close();
        assert!(reserves.into_iter().all(|reserve| reserve.join().unwrap().is_none()));
        assert!(pushes.into_iter().all(|push| matches!(push.join().unwrap(), Err(PushError::Closed))));
    });
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(full.len(), 2);
}

#[test]
fn finish_commits_what_has_an_id_and_then_everything_says_closed() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group).open().unwrap();
    queue.push(b"a").unwrap();
    let item = queue.reserve().unwrap().unwrap();
    disk.hold();
    thread::scope(|scope| {
        let attempts = disk.count(&disk.attempts);
        let push = scope.spawn(|| queue.push(b"b"));
        while disk.count(&disk.attempts) == attempts {
            thread::yield_now();
        }
        let finish = scope.spawn(|| queue.finish());
        while !queue.is_closed() {
            thread::yield_now();
        }
        disk.release();
        assert_eq!(push.join().unwrap().unwrap(), 2);
        finish.join().unwrap().unwrap();
    });
    assert!(matches!(item.ack(), Err(AckError::Closed)));
    assert!(!item.nack().unwrap() || queue.len() == 2);
    assert_eq!(queue.reserve().unwrap_err().code(), ErrorCode::Closed);
    assert!(queue.reserve_timeout(Duration::from_mins(1)).unwrap().is_none());
    assert!(matches!(queue.push(b"c"), Err(PushError::Closed)));
    queue.finish().unwrap();
    drop((item, queue));
    let queue = Builder::new(FaultStore(disk)).open().unwrap();
    assert_eq!(queue.iter().map(|entry| entry.unwrap().id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(queue.push(b"c").unwrap(), 3, "a clean close shrinks the lease");
}

#[test]
fn a_queue_that_was_only_opened_writes_nothing() {
    let disk = Disk::new();
    for _ in 0..50 {
        drop(Builder::new(FaultStore(Arc::clone(&disk))).open().unwrap());
    }
    assert_eq!(disk.count(&disk.attempts), 0);
}

#[test]
fn a_push_that_only_waits_for_its_first_ids_is_taken_in_before_the_end() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).capacity(3).open().unwrap();
    disk.hold();
    thread::scope(|scope| {
        // Three have room and wait for the lease, which is held in the store; two wait for room.
        let pushes: Vec<_> = (0..5).map(|_| scope.spawn(|| queue.push(b"x"))).collect();
        while queue.stats().waiting_pushes < 5 {
            thread::yield_now();
        }
        let finish = scope.spawn(|| queue.finish());
        while !queue.is_closed() {
            thread::yield_now();
        }
        disk.release();
        let stored = pushes.into_iter().map(|push| push.join().unwrap());
        let (stored, refused): (Vec<_>, Vec<_>) = stored.partition(Result::is_ok);
        assert_eq!((stored.len(), refused.len()), (3, 2));
        assert!(refused.iter().all(|push| matches!(push, Err(PushError::Closed))));
        finish.join().unwrap().unwrap();
    });
    drop(queue);
    assert_eq!(Builder::new(FaultStore(disk)).open().unwrap().len(), 3);
}
