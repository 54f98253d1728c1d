//! Segments that nobody needs go, and no ack is lost with them.

use std::thread;
use std::time::{Duration, Instant};

use super::*;

pub(super) fn wait_for(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_mins(1);
    while Instant::now() < until {
        if what() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_drained_queue_becomes_small_whether_durable_or_not() {
    for durable in [true, false] {
        let dir = directory();
        let store = open(dir.path());
        for id in 0..400 {
            store.commit(&[Op::Put(&key::entry(id), &value(id, 1000))], durable).unwrap();
        }
        assert!(store.stats().segments > 4);
        for id in 0..400 {
            store.commit(&[Op::Delete(&key::entry(id))], durable).unwrap();
        }
        assert!(wait_for(|| store.stats().segments == 1), "{:?}", store.stats());
        assert!(wait_for(|| segments(dir.path()).len() <= 3));
        store.close().unwrap();
        assert_eq!(segments(dir.path()).len(), 1);
        let store = open(dir.path());
        assert!(store.recovery().clean);
        assert!(ids(&store).is_empty());
    }
}

/// O-23: one old entry keeps its own segment only, and none of its acked neighbours comes back.
#[test]
fn one_old_survivor_keeps_its_acks_over_many_segments() {
    let dir = directory();
    let mut next = 1000;
    for round in 0..8 {
        let store = open(dir.path());
        assert!(store.recovery().damage.is_empty());
        if round == 0 {
            for id in 0..100 {
                put(&store, id, &value(id, 200));
            }
        } else {
            assert_eq!(ids(&store), [50], "round {round}");
        }
        // Each round settles some of the first segment's entries and fills and drains segments of its own.
        if round == 0 {
            for id in (0..100).filter(|id| *id != 50) {
                delete(&store, id);
            }
        }
        for _ in 0..200 {
            put(&store, next, &value(next, 1000));
            delete(&store, next);
            next += 1;
        }
        assert!(wait_for(|| store.stats().segments <= 3), "{:?}", store.stats());
        if round % 2 == 0 {
            store.close().unwrap();
        } else {
            drop(store);
        }
        // Where the log was not closed, frames that let segments go may have no successor yet.
        assert!(segments(dir.path()).len() <= 7, "{:?}", segments(dir.path()));
    }
}

#[test]
fn a_replaced_value_does_not_come_back() {
    let dir = directory();
    let store = open(dir.path());
    // The first segment keeps two entries; the second replaces one of them, and then goes.
    put(&store, 1, b"old");
    put(&store, 2, b"stays");
    put(&store, 3, &value(3, 60_000));
    put(&store, 1, b"new");
    put(&store, 4, &value(4, 60_000));
    delete(&store, 1);
    delete(&store, 3);
    delete(&store, 4);
    put(&store, 5, &value(5, 60_000));
    assert!(wait_for(|| store.stats().segments <= 2), "{:?}", store.stats());
    store.close().unwrap();
    assert_eq!(ids(&open(dir.path())), [2, 5]);
}

#[test]
fn other_keys_outlive_the_segments_they_were_written_in() {
    let dir = directory();
    let store = open(dir.path());
    store
        .commit(&[Op::Put(&[0], b"meta"), Op::Put(&[4, 1], b"dedupe"), Op::Put(&[4, 2], b"gone")], true)
        .unwrap();
    for id in 0..300 {
        put(&store, id, &value(id, 1000));
        delete(&store, id);
        if id == 100 {
            store.commit(&[Op::Delete(&[4, 2])], false).unwrap();
        }
    }
    drop(store);
    let store = open(dir.path());
    let left = contents(&store);
    assert_eq!(left, Contents::from([(vec![0], b"meta".to_vec()), (vec![4, 1], b"dedupe".to_vec())]));
}

#[test]
fn many_segments_need_few_descriptors() {
    let dir = directory();
    let held = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap();
        let names = all.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        names.filter(|name| name.starts_with(dir.path())).count()
    };
    for round in 0..2 {
        let store = open(dir.path());
        for id in 0..40 {
            store.commit(&[Op::Put(&key::entry(round * 100 + id), &value(id, 45_000))], false).unwrap();
        }
        assert!(store.stats().segments >= 40);
        assert_eq!(contents(&store).len() as u64, (round + 1) * 40);
        assert!(held() <= 16, "{} descriptors", held());
        drop(store);
        assert_eq!(held(), 0);
    }
}

#[test]
fn readers_see_an_entry_or_none_while_segments_go() {
    let dir = directory();
    let store = open(dir.path());
    std::thread::scope(|scope| {
        let (store, last) = (&store, 300);
        scope.spawn(move || {
            for id in 1..=last {
                put(store, id, &value(id, 9000));
                if id > 20 {
                    delete(store, id - 20);
                }
            }
        });
        scope.spawn(move || {
            while store.summary().unwrap().last != Some(last) {
                if let Some((key, bytes)) = store.seek(&[]).unwrap() {
                    let Ok(key::Key::Entry(id)) = key::Key::parse(&key) else { panic!("{key:?}") };
                    assert!(bytes == value(id, 9000));
                }
            }
        });
    });
    assert_eq!(ids(&store), (281..=300).collect::<Vec<_>>());
}

#[test]
fn an_empty_durable_commit_after_an_open_waits_for_nobody() {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=40 {
        put(&store, id, &value(id, 10_000));
    }
    let all: Vec<_> = (1..=40).map(key::entry).collect();
    let deletes: Vec<_> = all.iter().map(|key| Op::Delete(key)).collect();
    store.commit(&deletes, true).unwrap();
    // Its segments hold nothing any more, and no frame lets them go yet. Files in the making come and go meanwhile.
    let killed = directory();
    for file in segments(dir.path()) {
        let _ = fs::copy(&file, killed.path().join(file.file_name().unwrap()));
    }
    drop(store);
    let store = open(killed.path());
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || sender.send(store.commit(&[], true).is_ok()));
    assert!(receiver.recv_timeout(Duration::from_secs(20)).unwrap());
}
