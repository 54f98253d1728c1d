use std::sync::Arc;
use std::thread;

use millpond::store::{FailureKind, MemStore};
use millpond::{AckError, Builder, Durability, ErrorCode, Outcome};

use crate::fault_store::{Disk, FaultStore};

#[test]
fn acks_by_id_are_idempotent() {
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let queue = Builder::new(MemStore::new()).durability(durability).open().unwrap();
        queue.push_many(&[b"a", b"b", b"c"]).unwrap();
        assert!(queue.ack(2).unwrap());
        assert!(!queue.ack(2).unwrap());
        assert!(!queue.ack(99).unwrap());
        assert_eq!(queue.ack_many(&[1, 1, 2, 77]).unwrap(), 1);
        assert_eq!(queue.ack_many(&[]).unwrap(), 0);
        assert_eq!((queue.len(), queue.ready_len(), queue.in_flight().len()), (1, 1, 0));
        assert_eq!(queue.reserve().unwrap().unwrap().seq(), 3);
    }
}

#[test]
fn an_ack_by_id_settles_the_delivery() {
    let queue = Builder::new(MemStore::new()).open().unwrap();
    queue.push(b"a").unwrap();
    let item = queue.reserve().unwrap().unwrap();
    assert!(queue.ack(item.seq()).unwrap());
    assert!(!item.ack().unwrap() && !item.nack().unwrap());
    drop(item);
    assert!(queue.reserve().unwrap().is_none());
}

#[test]
fn an_acking_item_is_neither_ready_nor_nackable() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group).open().unwrap();
    queue.push(b"a").unwrap();
    let item = queue.reserve().unwrap().unwrap();
    disk.hold();
    thread::scope(|scope| {
        let attempts = disk.count(&disk.attempts);
        let ack = scope.spawn(|| item.ack().unwrap());
        while disk.count(&disk.attempts) == attempts {
            thread::yield_now();
        }
        assert!(!item.nack().unwrap() && !queue.nack(1));
        assert!(queue.reserve().unwrap().is_none());
        assert_eq!((queue.len(), queue.ready_len()), (1, 0), "the count falls at the commit");
        disk.release();
        assert!(ack.join().unwrap());
    });
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_failed_ack_leaves_the_item_in_flight_on_its_handle() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group).open().unwrap();
    queue.push(b"a").unwrap();
    let item = queue.reserve().unwrap().unwrap();
    disk.fail(FailureKind::NoSpace, true);
    let error = item.ack().unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoSpace);
    assert!(matches!(&error, AckError::Store(failure) if failure.outcome() == Outcome::Unknown));
    assert!(queue.reserve().unwrap().is_none());
    assert_eq!((queue.len(), queue.in_flight().len()), (1, 1));
    assert!(item.ack().unwrap());
    assert_eq!(queue.len(), 0);
}

#[test]
fn an_item_whose_handle_went_away_during_a_failing_ack_comes_back() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group).open().unwrap();
    queue.push(b"a").unwrap();
    let item = queue.reserve().unwrap().unwrap();
    disk.hold();
    disk.fail(FailureKind::NoSpace, true);
    drop(item.ack_async());
    drop(item);
    assert!(queue.reserve().unwrap().is_none());
    disk.release();
    let again = queue.reserve_timeout(std::time::Duration::from_secs(10)).unwrap().unwrap();
    assert_eq!(again.deliveries(), 2);
}

#[test]
fn a_failed_ack_by_id_of_a_waiting_entry_leaves_it_ready() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group).open().unwrap();
    queue.push_many(&[b"a", b"b"]).unwrap();
    disk.fail(FailureKind::NoSpace, true);
    assert_eq!(queue.ack(1).unwrap_err().code(), ErrorCode::NoSpace);
    assert_eq!(queue.reserve().unwrap().unwrap().seq(), 1);
}
