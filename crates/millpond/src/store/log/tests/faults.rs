//! A disk that says no.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::sim::SimDisk;
use super::*;
use crate::store::FailureKind;
use crate::store::log::LogError;

fn on(disk: &SimDisk) -> LogStore {
    LogStore::open_on(Arc::new(disk.clone()), TINY).unwrap()
}

/// Waits until the thread of the store has nothing to do.
fn settle(disk: &SimDisk) {
    let mut last = u64::MAX;
    for _ in 0..200 {
        let calls = disk.0.state.lock().calls;
        if calls == last {
            return;
        }
        last = calls;
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn o08_a_failed_sync_poisons_and_is_never_tried_again() {
    let disk = SimDisk::new();
    let store = on(&disk);
    put(&store, 1, b"one");
    settle(&disk);
    disk.0.state.lock().fail_sync_in = Some(0);
    let error = store.commit(&[Op::Put(&key::entry(2), b"two")], true).unwrap_err();
    assert_eq!(store.classify(&error), FailureKind::Unknown);
    assert_eq!(store.io_details(&error).unwrap().operation, "fdatasync");
    for _ in 0..3 {
        let error = store.commit(&[Op::Put(&key::entry(3), b"three")], true).unwrap_err();
        assert!(
            matches!(error, LogError::Poisoned { operation: "fdatasync", errno: Some(_), .. }),
            "{error}"
        );
        assert!(store.try_commit(&[Op::Put(&key::entry(3), b"three")]).is_err());
        assert!(store.commit(&[], true).is_err());
    }
    assert_eq!(ids(&store), [1], "reading goes on, and what failed is not visible");
    assert!(store.close().is_err());
    assert_eq!(disk.0.state.lock().syncs_after_failure(), 0);
    // The next open reads the disk, not the cache.
    let store = on(&disk);
    assert_eq!(ids(&store), [1]);
    put(&store, 4, b"four");
    drop(store);
    assert_eq!(ids(&on(&disk)), [1, 4]);
}

#[test]
fn a_failed_sync_of_the_directory_poisons() {
    let disk = SimDisk::new();
    let store = on(&disk);
    // Of a first commit: the spare's file, then the directory.
    disk.0.state.lock().fail_sync_in = Some(1);
    let error = store.commit(&[Op::Put(&key::entry(1), b"x")], true).unwrap_err();
    assert_eq!(store.classify(&error), FailureKind::Unknown);
    assert!(matches!(store.commit(&[], true), Err(LogError::Poisoned { operation: "fsync", .. })));
}

#[test]
fn a_commit_that_was_under_way_gets_no_file_after_a_failed_sync() {
    let disk = SimDisk::new();
    let store = on(&disk);
    disk.0.state.lock().fail_sync_in = Some(1);
    assert!(store.commit(&[Op::Put(&key::entry(1), b"x")], true).is_err());
    settle(&disk);
    let calls = disk.0.state.lock().calls;
    // What a commit does that had passed the check before the failure.
    assert!(matches!(store.core().pool.take(store.core(), 1, false), Err(LogError::Poisoned { .. })));
    settle(&disk);
    assert_eq!(disk.0.state.lock().calls, calls, "nothing is made, and no directory is synced again");
}

#[test]
fn o06_a_full_disk_refuses_and_accepts_again() {
    let disk = SimDisk::new();
    let store = on(&disk);
    let mut kept = Vec::new();
    for id in 1..=20 {
        put(&store, id, &value(id, 1000));
        kept.push(id);
    }
    settle(&disk);
    for round in 0..6_u64 {
        disk.0.state.lock().room = Some(round * 700);
        let mut refused = 0;
        for id in 0..12 {
            let id = 100 + round * 100 + id;
            match store.commit(&[Op::Put(&key::entry(id), &value(id, 1000))], true) {
                Ok(()) => kept.push(id),
                Err(error) => {
                    assert_eq!(store.classify(&error), FailureKind::NoSpace, "{error}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0);
        disk.0.state.lock().room = None;
        let id = 100 + round * 100 + 50;
        put(&store, id, &value(id, 1000));
        kept.push(id);
        assert_eq!(ids(&store), kept);
    }
    drop(store);
    let store = on(&disk);
    assert_eq!(ids(&store), kept, "{:?}", store.recovery());
    assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
    store.close().unwrap();
}

#[test]
fn a_full_disk_does_not_stop_a_close() {
    let disk = SimDisk::new();
    let store = on(&disk);
    put(&store, 1, b"one");
    settle(&disk);
    disk.0.state.lock().room = Some(3);
    assert!(store.commit(&[Op::Put(&key::entry(2), b"two")], true).is_err());
    disk.0.state.lock().room = Some(0);
    store.close().unwrap();
    disk.0.state.lock().room = None;
    let store = on(&disk);
    assert!(!store.recovery().clean && store.recovery().damage.is_empty());
    assert_eq!(ids(&store), [1]);
}
