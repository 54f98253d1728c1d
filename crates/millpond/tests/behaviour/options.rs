use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use millpond::store::{FailureKind, MemStore};
use millpond::{Builder, Durability, OpenError, PushError, Queue, TryPushError};

use crate::fault_store::{Disk, FaultStore};

/// A queue that takes `bytes` bytes of values: each payload counts one byte more than its length.
fn limited(bytes: u64) -> Queue {
    Builder::new(MemStore::new()).capacity_bytes(bytes).durability(Durability::Group).open().unwrap()
}

#[test]
fn a_byte_limit_of_0_is_refused() {
    let error = Builder::new(MemStore::new()).capacity_bytes(0).open().unwrap_err();
    assert!(matches!(error, OpenError::ZeroCapacity));
}

#[test]
fn bytes_are_given_back_by_every_kind_of_ack() {
    let queue = limited(30);
    for _ in 0..20 {
        let ids = queue.push_many(&[[7; 9]; 3]).unwrap();
        assert!(matches!(queue.try_push(b""), Err(TryPushError::Full)));
        queue.reserve().unwrap().unwrap().ack().unwrap();
        queue.try_push([7; 9]).unwrap();
        assert!(queue.ack(ids[1]).unwrap(), "never delivered");
        queue.try_push([7; 9]).unwrap();
        let detached = queue.reserve().unwrap().unwrap().detach();
        assert!(queue.ack(detached.id).unwrap(), "delivered, acked by id");
        queue.try_push([7; 9]).unwrap();
        assert!(matches!(queue.try_push(b""), Err(TryPushError::Full)));
        let rest: Vec<u64> = queue.iter().map(|entry| entry.unwrap().id).collect();
        assert_eq!(queue.ack_many(&rest).unwrap(), 3);
    }
}

#[test]
fn an_oversized_push_waits_for_an_empty_queue() {
    let queue = limited(10);
    assert_eq!(queue.push([0; 100]).unwrap(), 1);
    assert!(matches!(queue.try_push(b""), Err(TryPushError::Full)));
    queue.reserve().unwrap().unwrap().ack().unwrap();
    queue.push(b"small").unwrap();
    assert!(matches!(queue.try_push([0; 100]), Err(TryPushError::Full)));
    let clone = queue.clone();
    let waits = thread::spawn(move || clone.push([0; 100]).unwrap());
    while queue.stats().waiting_pushes == 0 {
        thread::yield_now();
    }
    let behind = queue.push_with(b"x", None, Some(Duration::from_millis(20)));
    assert!(matches!(behind, Err(PushError::Timeout)), "served in order");
    queue.reserve().unwrap().unwrap().ack().unwrap();
    assert_eq!(waits.join().unwrap(), 3);
    assert_eq!(queue.reserve_timeout(Duration::from_secs(20)).unwrap().unwrap().len(), 100);
}

#[test]
fn a_failed_push_gives_its_bytes_back_and_a_store_that_holds_more_opens() {
    let disk = Disk::new();
    let open = |bytes| {
        let builder = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group);
        builder.capacity_bytes(bytes).open().unwrap()
    };
    let queue = open(20);
    queue.push([1; 9]).unwrap();
    disk.fail(FailureKind::NoSpace, true);
    queue.push([2; 9]).unwrap_err();
    queue.try_push([3; 9]).unwrap();
    drop(queue);
    let queue = open(5);
    assert_eq!(queue.len(), 2);
    assert!(matches!(queue.try_push(b""), Err(TryPushError::Full)));
    queue.ack(1).unwrap();
    assert!(matches!(queue.try_push(b""), Err(TryPushError::Full)));
    queue.reserve().unwrap().unwrap().ack().unwrap();
    queue.try_push(b"1234").unwrap();
}

#[test]
fn acks_that_need_not_be_durable_cost_no_fsync_and_lose_no_push() {
    for (inline, durability) in [
        (false, Durability::Group),
        (true, Durability::Group),
        (false, Durability::Sync),
        (true, Durability::Sync),
    ] {
        let disk = Disk::new();
        disk.inline.store(inline, Ordering::SeqCst);
        let builder = Builder::new(FaultStore(Arc::clone(&disk))).durability(durability);
        let queue = builder.durable_acks(false).open().unwrap();
        queue.push_many(&[b"a", b"b", b"c"]).unwrap();
        let before = disk.durable_commits.load(Ordering::SeqCst);
        assert!(queue.reserve().unwrap().unwrap().ack().unwrap());
        assert!(queue.ack(2).unwrap());
        assert_eq!(disk.durable_commits.load(Ordering::SeqCst), before);
        assert_eq!(queue.len(), 1);
        let cut = disk.snapshot();
        assert_eq!(cut.keys().filter(|key| key.len() == 9).count(), 3, "a power cut redelivers");
        queue.push(b"d").unwrap();
        let cut = disk.snapshot();
        assert_eq!(cut.keys().filter(|key| key.len() == 9).count(), 2, "the next durable push carries them");
    }
}
