//! What a store is: its clauses, sizes, order of keys, locks, formats.

use std::fs;

use super::*;
use crate::store::log::segment;
use crate::store::log::{LogError, batch};
use crate::store::{FailureKind, MemStore};

#[test]
fn entries_come_back_in_order_before_and_after_a_reopen() {
    let dir = directory();
    for round in 0..3 {
        let store = open(dir.path());
        assert!(store.recovery().clean, "round {round}");
        assert_eq!(ids(&store), (0..round * 10).collect::<Vec<_>>());
        for id in round * 10..(round + 1) * 10 {
            put(&store, id, &value(id, usize::try_from(id).unwrap()));
        }
        let all = contents(&store);
        assert!(all.iter().zip(0..).all(|((_, found), id)| *found == value(id, found.len())));
        let summary = store.summary().unwrap();
        assert_eq!(
            (summary.count, summary.first, summary.last),
            ((round + 1) * 10, Some(0), Some(round * 10 + 9))
        );
        store.close().unwrap();
        assert!(matches!(store.get(&key::entry(1)), Err(LogError::Closed)));
        assert!(matches!(store.commit(&[], true), Err(LogError::Closed)));
        assert!(matches!(store.close(), Err(LogError::Closed)));
    }
}

#[test]
fn put_delete_put_again_across_reopens() {
    let dir = directory();
    for round in 0..6_u64 {
        let store = open(dir.path());
        let last = store.get(&key::entry(7)).unwrap();
        assert_eq!(last, if round == 0 { None } else { Some(value(round - 1, 300)) });
        let (key, wrong) = (key::entry(7), value(99, 5));
        let right = value(round, 300);
        let ops = [
            Op::Put(&key, &wrong),
            Op::Delete(&key),
            Op::Delete(&key),
            Op::Put(&key, &wrong),
            Op::Put(&key, &right),
        ];
        store.commit(&ops[..usize::try_from(round).unwrap().clamp(2, 4)], round % 2 == 0).unwrap();
        if round % 2 == 1 {
            delete(&store, 7);
            assert_eq!(store.get(&key).unwrap(), None);
        }
        store.commit(&ops, round % 2 == 0).unwrap();
        assert_eq!(store.get(&key).unwrap(), Some(right));
        assert_eq!(store.summary().unwrap().count, 1);
        if round % 3 == 0 { store.close().unwrap() } else { drop(store) }
    }
}

#[test]
fn a_put_behind_its_delete_in_one_commit_stays() {
    let dir = directory();
    let store = open(dir.path());
    put(&store, 1, b"old");
    let key = key::entry(1);
    store.commit(&[Op::Delete(&key), Op::Put(&key, b"new")], true).unwrap();
    assert_eq!(store.get(&key).unwrap().unwrap(), b"new");
    store.commit(&[Op::Put(&key, b"newer"), Op::Delete(&key)], true).unwrap();
    assert_eq!(store.get(&key).unwrap(), None);
    drop(store);
    assert!(ids(&open(dir.path())).is_empty());
}

#[test]
fn every_kind_of_key_walks_like_an_ordered_map() {
    let dir = directory();
    let store = open(dir.path());
    let model = MemStore::new();
    let mut keys: Vec<Vec<u8>> = vec![vec![0], vec![4], vec![4, 0], vec![4, 255, 255]];
    for id in [0, 1, 63, 64, 65, 1000, u64::MAX - 1, u64::MAX] {
        for kind in 1..=3 {
            let mut key = key::entry(id).to_vec();
            key[0] = kind;
            keys.push(key);
        }
    }
    for (at, key) in keys.iter().enumerate() {
        let bytes = value(at as u64, at);
        store.commit(&[Op::Put(key, &bytes)], at % 2 == 0).unwrap();
        model.commit(&[Op::Put(key, &bytes)], true).unwrap();
    }
    let check = |store: &LogStore| {
        let mut probes: Vec<Vec<u8>> =
            vec![vec![], vec![1], vec![1, 0], vec![1, 0, 0, 0, 0, 0, 0, 0], vec![9], vec![255; 12]];
        for key in &keys {
            probes.push(key.clone());
            let mut longer = key.clone();
            longer.push(0);
            probes.push(longer);
            probes.push(key[..key.len() - 1].to_vec());
            let mut next = key.clone();
            *next.last_mut().unwrap() = next.last().unwrap().wrapping_sub(1);
            probes.push(next);
        }
        for probe in &probes {
            assert_eq!(store.get(probe).unwrap(), model.get(probe).unwrap(), "get {probe:?}");
            assert_eq!(store.seek(probe).unwrap(), model.seek(probe).unwrap(), "seek {probe:?}");
            assert_eq!(
                store.seek_back(probe).unwrap(),
                model.seek_back(probe).unwrap(),
                "seek_back {probe:?}"
            );
            assert_eq!(store.next_key(probe).unwrap(), model.next_key(probe).unwrap(), "next_key {probe:?}");
        }
        assert_eq!(store.summary().unwrap(), model.summary().unwrap());
    };
    check(&store);
    store.close().unwrap();
    let store = open(dir.path());
    check(&store);
    for key in &keys {
        store.commit(&[Op::Delete(key)], false).unwrap();
    }
    drop(store);
    assert_eq!(contents(&open(dir.path())).len(), 0);
}

#[test]
fn o_16_sizes_at_the_boundary_of_a_segment() {
    let dir = directory();
    let mut id = 0;
    let mut store = open(dir.path());
    let mut check = |store: &LogStore, length: usize| {
        let bytes = value(id, length);
        put(store, id, &bytes);
        assert_eq!(store.get(&key::entry(id)).unwrap().unwrap(), bytes);
        id += 1;
    };
    for length in [0, 1, 7, 8, 255, 256, 65_535, 65_536, 200_000, 3 << 20] {
        check(&store, length);
    }
    // In a fresh segment of 64 KiB the frames begin at 12 KiB and some; the sizes around what is left.
    for length in (65_536 - 12_288 - 1200..65_536 - 12_288 + 64).step_by(8) {
        check(&store, 40_000);
        check(&store, length - 40_000);
        check(&store, length);
    }
    let before = contents(&store);
    store.close().unwrap();
    store = open(dir.path());
    assert!(store.recovery().clean && store.recovery().damage.is_empty());
    assert_eq!(contents(&store), before);
}

#[test]
fn an_unknown_key_is_refused_before_anything_is_written() {
    let dir = directory();
    let store = open(dir.path());
    let good = key::entry(1);
    let error = store.commit(&[Op::Put(&good, b"x"), Op::Put(&[9, 9], b"y")], true).unwrap_err();
    assert_eq!(store.classify(&error), FailureKind::NotWritten);
    assert_eq!(contents(&store).len(), 0);
    put(&store, 1, b"x");
    assert!(batch::check(&[Op::Delete(&[])]).is_err());
}

/// O-12: two handles on one directory in one process.
#[test]
fn a_second_owner_is_refused_and_disturbs_nothing() {
    let dir = directory();
    let store = open(dir.path());
    put(&store, 1, b"x");
    for _ in 0..3 {
        let error = LogStore::open(dir.path()).unwrap_err();
        assert!(
            matches!(error, LogError::Locked { pid: Some(pid), .. } if pid == std::process::id()),
            "{error}"
        );
    }
    put(&store, 2, b"y");
    drop(store);
    assert_eq!(ids(&open(dir.path())), [1, 2]);
}

#[test]
fn the_process_that_holds_the_lock_is_named() {
    let dir = directory();
    open(dir.path()).close().unwrap();
    let file = fs::File::open(dir.path().join("LOCK")).unwrap();
    file.lock().unwrap();
    let error = LogStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, LogError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    drop(file);
    open(dir.path()).close().unwrap();
}

#[test]
fn what_is_no_directory_is_refused() {
    let dir = directory();
    let file = dir.path().join("file");
    fs::write(&file, b"x").unwrap();
    for path in [file.clone(), file.join("below")] {
        assert!(matches!(LogStore::open(&path), Err(LogError::NotADirectory { .. })), "{path:?}");
    }
    open(&dir.path().join("a/b/c")).close().unwrap();
}

#[test]
fn o_13_a_newer_format_is_refused_and_nothing_changes() {
    let dir = directory();
    let store = open(dir.path());
    put(&store, 1, b"x");
    store.close().unwrap();
    let file = segments(dir.path()).pop().unwrap();
    let original = fs::read(&file).unwrap();
    for (offset, ignorable) in [(8, false), (11, false), (12, false), (16, true)] {
        let mut bytes = original.clone();
        for start in [0, segment::BLOCK_BYTES] {
            bytes[start + offset] += 1;
            let sum = crc32c::crc32c(&bytes[start..start + 64]).to_le_bytes();
            bytes[start + 64..start + 68].copy_from_slice(&sum);
        }
        fs::write(&file, &bytes).unwrap();
        let before = tree(dir.path());
        let result = LogStore::open(dir.path());
        assert_eq!(tree(dir.path()), before);
        match result {
            Ok(store) => assert!(ignorable && ids(&store) == [1]),
            Err(LogError::NewerFormat { .. } | LogError::UnknownFeature { .. }) => assert!(!ignorable),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn an_open_changes_nothing_on_disk() {
    let dir = directory();
    let store = open(dir.path());
    for id in 0..200 {
        put(&store, id, &value(id, 1000));
    }
    drop(store);
    let before = tree(dir.path());
    for _ in 0..2 {
        let store = open(dir.path());
        assert_eq!(ids(&store).len(), 200);
        assert_eq!(tree(dir.path()), before);
        assert!(!store.recovery().clean);
    }
    open(dir.path()).close().unwrap();
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn try_commit_takes_what_needs_no_waiting() {
    let dir = directory();
    let store = open(dir.path());
    let key = key::entry(1);
    assert!(!store.try_commit(&[Op::Put(&key, b"x")]).unwrap(), "there is no segment yet");
    put(&store, 0, b"first");
    assert!(store.try_commit(&[Op::Put(&key, b"x"), Op::Put(&[0], b"meta")]).unwrap());
    assert_eq!(store.get(&key).unwrap().unwrap(), b"x");
    assert!(!store.try_commit(&[Op::Put(&key, &value(1, 70_000))]).unwrap(), "it does not fit");
    let syncs = store.stats().syncs;
    store.commit(&[], true).unwrap();
    store.commit(&[], true).unwrap();
    assert_eq!(store.stats().syncs, syncs + 1);
    drop(store);
    assert_eq!(ids(&open(dir.path())), [0, 1]);
}
