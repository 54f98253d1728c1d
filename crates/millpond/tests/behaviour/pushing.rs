use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use millpond::store::MemStore;
use millpond::{Builder, Durability, ErrorCode, PushError, Queue};

use crate::fault_store::{Disk, FaultStore};

fn queue(durability: Durability) -> Queue {
    Builder::new(MemStore::new()).durability(durability).open().unwrap()
}

#[test]
fn pushed_entries_come_out_in_order_with_their_bytes() {
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let queue = queue(durability);
        let ids: Vec<u64> = (0..100u8).map(|byte| queue.push([byte; 3]).unwrap()).collect();
        assert_eq!(ids, (1..=100).collect::<Vec<_>>());
        assert_eq!((queue.len(), queue.ready_len()), (100, 100));
        for byte in 0..100u8 {
            let item = queue.reserve().unwrap().unwrap();
            assert_eq!((item.seq(), &*item, item.deliveries()), (u64::from(byte) + 1, &[byte; 3][..], 1));
            assert!(item.ack().unwrap());
        }
        assert!(queue.reserve().unwrap().is_none());
        assert_eq!((queue.len(), queue.ready_len()), (0, 0));
    }
}

#[test]
fn an_empty_payload_is_an_entry() {
    let queue = queue(Durability::Group);
    let id = queue.push(b"").unwrap();
    assert_eq!(queue.get(id).unwrap(), Some(Vec::new()));
    assert_eq!(queue.reserve().unwrap().unwrap().len(), 0);
}

#[test]
fn a_payload_above_the_limit_uses_neither_id_nor_slot() {
    let queue = queue(Durability::Group);
    let large = vec![0; millpond::limits::PAYLOAD_BYTES_MAX + 1];
    let error = queue.push(&large).unwrap_err();
    assert!(matches!(error, PushError::TooLarge { .. }), "{error}");
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert_eq!(queue.push(b"next").unwrap(), 1);
    assert_eq!(queue.len(), 1);
}

#[test]
fn push_many_is_one_commit_with_consecutive_ids() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Sync).open().unwrap();
    queue.push(b"takes the lease").unwrap();
    let before = disk.count(&disk.commits);
    assert_eq!(queue.push_many(&[b"a", b"b", b"c"]).unwrap(), [2, 3, 4]);
    assert_eq!(disk.count(&disk.commits) - before, 1);
    assert_eq!(queue.push_many::<&[u8]>(&[]).unwrap(), Vec::<u64>::new());
    let error = queue.push_many(&vec![b"x"; 1025]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert_eq!(queue.len(), 4);
}

#[test]
fn sync_gives_every_push_a_commit_of_its_own_and_group_shares_them() {
    let run = |durability| {
        let disk = Disk::new();
        let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(durability).open().unwrap();
        queue.push(b"takes the lease").unwrap();
        disk.hold();
        let attempts = disk.count(&disk.attempts);
        thread::scope(|scope| {
            // One leads and is held in the store; the other fifteen are in the line when it goes on.
            scope.spawn(|| queue.push(b"x").unwrap());
            while disk.count(&disk.attempts) == attempts {
                thread::yield_now();
            }
            for _ in 1..16 {
                scope.spawn(|| queue.push(b"x").unwrap());
            }
            while queue_line(&queue) < 17 {
                thread::yield_now();
            }
            disk.release();
        });
        disk.count(&disk.attempts) - attempts
    };
    assert_eq!(run(Durability::Sync), 16);
    assert_eq!(run(Durability::Group), 2);
}

/// Ids given out so far: every push that is stored or in the line has one.
fn queue_line(queue: &Queue) -> u64 {
    // A push that has no room waits; the id of the last one tells how many were taken in.
    queue.stats().length + queue.stats().claimed
}

#[test]
fn sixteen_producers_lose_nothing() {
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let queue = Builder::new(MemStore::new()).capacity(8).durability(durability).open().unwrap();
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut seen = Vec::new();
                while let Some(item) = queue.reserve_timeout(Duration::from_secs(20)).unwrap() {
                    seen.push((item[0], item[1]));
                    item.ack().unwrap();
                    if seen.len() == 16 * 50 {
                        break;
                    }
                }
                seen
            })
        };
        thread::scope(|scope| {
            for producer in 0..16u8 {
                let queue = &queue;
                scope.spawn(move || (0..50u8).for_each(|n| assert!(queue.push([producer, n]).is_ok())));
            }
        });
        let seen = consumer.join().unwrap();
        for producer in 0..16u8 {
            let own: Vec<u8> = seen.iter().filter(|(from, _)| *from == producer).map(|(_, n)| *n).collect();
            assert_eq!(own, (0..50).collect::<Vec<u8>>(), "order of producer {producer}");
        }
        assert_eq!(queue.len(), 0);
    }
}

#[test]
fn durability_per_push_is_never_weaker_than_asked() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::None).open().unwrap();
    queue.push(b"kept by luck").unwrap();
    let before = disk.durable_commits.load(Ordering::SeqCst);
    queue.push_with(b"kept", Some(Durability::Sync), None).unwrap();
    assert_eq!(disk.durable_commits.load(Ordering::SeqCst) - before, 1);
    queue.push(b"lost").unwrap();
    disk.crash();
    assert_eq!(queue.iter().map(|entry| entry.unwrap().id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn flush_makes_everything_before_it_durable() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::None).open().unwrap();
    queue.push(b"a").unwrap();
    queue.flush().unwrap();
    queue.push(b"b").unwrap();
    disk.crash();
    assert_eq!(queue.iter().count(), 1);
}
