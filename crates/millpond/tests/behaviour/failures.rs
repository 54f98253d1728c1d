use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use millpond::store::FailureKind;
use millpond::{Builder, Durability, ErrorCode, Outcome, PushError, Queue};

use crate::fault_store::{Disk, FaultStore};

fn open(disk: &Arc<Disk>) -> Queue {
    Builder::new(FaultStore(Arc::clone(disk))).durability(Durability::Group).open().unwrap()
}

fn outcome(error: &PushError) -> Outcome {
    match error {
        PushError::Store(failure) => failure.outcome(),
        _ => Outcome::NotDone,
    }
}

#[test]
fn no_space_is_told_to_everybody_in_the_batch_and_poisons_nothing() {
    let disk = Disk::new();
    let queue = open(&disk);
    queue.push(b"before").unwrap();
    disk.hold();
    disk.fail(FailureKind::NoSpace, false);
    thread::scope(|scope| {
        let pushes: Vec<_> = (0..32).map(|_| scope.spawn(|| queue.push(b"x"))).collect();
        while queue.stats().claimed < 32 {
            thread::yield_now();
        }
        disk.release();
        for push in pushes {
            let error = push.join().unwrap().unwrap_err();
            assert_eq!((error.code(), outcome(&error)), (ErrorCode::NoSpace, Outcome::Unknown));
        }
    });
    assert_eq!((queue.len(), queue.stats().claimed, queue.stats().poisoned), (1, 0, false));
    disk.heal();
    let id = queue.push(b"after").unwrap();
    assert!(id > 33, "ids of a failed batch are not used again");
    let ids: Vec<u64> =
        std::iter::from_fn(|| queue.reserve().unwrap()).map(|item| item.detach().id).collect();
    assert_eq!(ids, [1, id], "the gap does not stop the walk");
}

#[test]
fn an_unknown_failure_poisons_for_good() {
    let disk = Disk::new();
    let queue = open(&disk);
    queue.push(b"before").unwrap();
    let item = queue.reserve().unwrap().unwrap();
    disk.fail(FailureKind::Unknown, true);
    let error = queue.push(b"x").unwrap_err();
    assert_eq!((error.code(), outcome(&error)), (ErrorCode::Io, Outcome::Unknown));
    let attempts = disk.count(&disk.attempts);
    for _ in 0..10 {
        let error = queue.push(b"y").unwrap_err();
        assert_eq!((error.code(), outcome(&error)), (ErrorCode::Poisoned, Outcome::NotDone));
    }
    assert_eq!(item.ack().unwrap_err().code(), ErrorCode::Poisoned);
    assert_eq!(queue.ack(1).unwrap_err().code(), ErrorCode::Poisoned);
    assert_eq!(queue.flush().unwrap_err().code(), ErrorCode::Poisoned);
    assert_eq!(queue.get(1).unwrap().unwrap(), b"before", "reading goes on");
    assert!(item.nack().unwrap());
    assert_eq!(queue.reserve().unwrap().unwrap().seq(), 1);
    assert!(queue.stats().poisoned);
    drop((item, queue));
    assert_eq!(disk.count(&disk.attempts), attempts, "nothing reached the store after the failure");
    let queue = open(&disk);
    assert!(queue.push(b"works again").unwrap() > 2);
}

#[test]
fn poison_reaches_those_in_line_and_those_who_wait_for_room() {
    let disk = Disk::new();
    let queue =
        Builder::new(FaultStore(Arc::clone(&disk))).capacity(3).durability(Durability::Sync).open().unwrap();
    queue.push(b"a").unwrap();
    disk.hold();
    disk.fail(FailureKind::Unknown, true);
    thread::scope(|scope| {
        let pushes: Vec<_> = (0..8).map(|_| scope.spawn(|| queue.push(b"x"))).collect();
        while queue.stats().waiting_pushes + queue.stats().claimed < 8 {
            thread::yield_now();
        }
        disk.release();
        let codes: Vec<_> = pushes.into_iter().map(|push| push.join().unwrap().unwrap_err().code()).collect();
        assert_eq!(codes.iter().filter(|code| **code == ErrorCode::Io).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == ErrorCode::Poisoned).count(), 7, "{codes:?}");
    });
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_panic_in_the_store_is_an_error_for_everybody() {
    let disk = Disk::new();
    let queue = open(&disk);
    queue.push(b"a").unwrap();
    disk.panics.store(true, Ordering::SeqCst);
    assert_eq!(queue.push(b"b").unwrap_err().code(), ErrorCode::Internal);
    assert_eq!(queue.push(b"c").unwrap_err().code(), ErrorCode::Poisoned);
}

#[test]
fn counts_follow_what_a_store_that_is_not_atomic_shows() {
    let disk = Disk::new();
    let queue = open(&disk);
    queue.push(b"takes the lease").unwrap();
    disk.torn.store(true, Ordering::SeqCst);
    disk.fail(FailureKind::NoSpace, true);
    assert_eq!(queue.push_many(&[b"a", b"b", b"c", b"d"]).unwrap_err().code(), ErrorCode::NoSpace);
    assert_eq!(queue.len(), 3, "two of the four are there");
    let ids: Vec<u64> =
        std::iter::from_fn(|| queue.reserve().unwrap()).map(|item| item.detach().id).collect();
    assert_eq!(ids, [1, 2, 3]);
    disk.fail(FailureKind::NoSpace, true);
    assert!(queue.ack_many(&[1, 2]).is_err());
    assert_eq!((queue.len(), queue.in_flight().len()), (2, 2), "one of the two is gone");
    assert_eq!(queue.ack_many(&[1, 2, 3]).unwrap(), 2);
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_lease_that_fails_is_told_to_those_who_wait_for_ids() {
    let disk = Disk::new();
    let queue = open(&disk);
    disk.fail(FailureKind::NoSpace, true);
    let error = queue.push_with(b"a", None, Some(Duration::from_secs(20))).unwrap_err();
    assert_eq!((error.code(), outcome(&error)), (ErrorCode::NoSpace, Outcome::NotDone));
    assert_eq!(queue.push(b"b").unwrap(), 1);
}
