use std::sync::Arc;

use millpond::limits::{ID_MAX, LEASE_IDS};
use millpond::store::{MemStore, Op, Store};
use millpond::{Builder, Durability, ErrorCode, Queue, key};

use crate::fault_store::{Disk, FaultStore};

fn open(disk: &Arc<Disk>, durability: Durability) -> Queue {
    Builder::new(FaultStore(Arc::clone(disk))).durability(durability).open().unwrap()
}

/// Ends the process in miniature: nothing of the queue runs on, and what was not durable is gone.
fn crash(queue: Queue, disk: &Disk) {
    let copy = disk.snapshot();
    drop(queue);
    disk.restore(copy);
}

#[test]
fn ids_start_at_1_and_go_on_after_the_queue_ran_empty() {
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let disk = Disk::new();
        let queue = open(&disk, durability);
        let ids = queue.push_many(&[b"a", b"b", b"c"]).unwrap();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(queue.ack_many(&ids).unwrap(), 3);
        drop(queue);
        for _ in 0..50 {
            drop(open(&disk, durability));
        }
        let queue = open(&disk, durability);
        assert_eq!(queue.push(b"d").unwrap(), 4);
        assert!(!queue.ack(3).unwrap(), "an old id removes nothing");
        assert_eq!(queue.len(), 1);
    }
}

#[test]
fn ids_never_repeat_after_a_crash_whatever_the_policy() {
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let disk = Disk::new();
        let mut last = 0;
        for _ in 0..20 {
            let queue = open(&disk, durability);
            for _ in 0..3 {
                let id = queue.push(b"x").unwrap();
                assert!(id > last, "{id} after {last} under {durability:?}");
                last = id;
            }
            queue.ack_many(&[last - 1, last]).unwrap();
            crash(queue, &disk);
        }
    }
}

#[test]
fn a_lease_is_extended_before_it_is_used_up() {
    let store = MemStore::new();
    let capacity = 4 * LEASE_IDS;
    let queue = Builder::new(store).capacity(capacity).durability(Durability::Group).open().unwrap();
    // One push alone is more than half of a lease, so each of these needs an extension of its own.
    let many = vec![b""; usize::try_from(LEASE_IDS / 2 + 2).unwrap()];
    let mut last = 0;
    for _ in 0..3 {
        let ids = queue.push_many(&many).unwrap();
        assert_eq!(ids[0], last + 1);
        last = ids[ids.len() - 1];
    }
    assert_eq!(queue.push(b"x").unwrap(), last + 1);
}

#[test]
fn o_31_ids_end_with_an_error_at_the_largest_exact_number() {
    let store = MemStore::new();
    store.commit(&[Op::Put(&key::entry(ID_MAX - 2), &[0x10, 7])], true).unwrap();
    let queue = Builder::new(store).durability(Durability::Group).open().unwrap();
    assert_eq!(queue.push(b"a").unwrap(), ID_MAX - 1);
    assert_eq!(queue.push(b"b").unwrap(), ID_MAX);
    let error = queue.push(b"c").unwrap_err();
    assert_eq!(error.code(), ErrorCode::IdsExhausted);
    assert_eq!(queue.push_many(&[b"d", b"e"]).unwrap_err().code(), ErrorCode::IdsExhausted);
    assert_eq!(queue.ack_many(&[ID_MAX - 1]).unwrap(), 1);
    assert_eq!(queue.iter().map(|entry| entry.unwrap().id).collect::<Vec<_>>(), [ID_MAX - 2, ID_MAX]);
}

#[test]
fn another_codec_and_newer_formats_are_refused_and_nothing_changes() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).codec("json").open().unwrap();
    queue.push(b"{}").unwrap();
    drop(queue);
    let attempts = disk.count(&disk.attempts);
    let error = Builder::new(FaultStore(Arc::clone(&disk))).codec("cbor").open().unwrap_err();
    assert_eq!(error.code(), ErrorCode::CodecMismatch);
    assert_eq!(error.to_string(), r#"the queue was written with codec "json", not "cbor""#);
    assert_eq!(disk.count(&disk.attempts), attempts);

    let store = FaultStore(Arc::clone(&disk));
    let mut meta = store.get(&key::META_KEY).unwrap().unwrap();
    meta[0] += 1;
    store.commit(&[Op::Put(&key::META_KEY, &meta)], true).unwrap();
    let error = Builder::new(store).codec("json").open().unwrap_err();
    assert_eq!(error.code(), ErrorCode::NewerFormat);
}
