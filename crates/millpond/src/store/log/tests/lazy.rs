//! Opening by footers: the same contents as by reading everything, and no trust in a footer that does not fit.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::*;
use crate::store::log::LogError;
use crate::store::log::footer::{SEAL, Seal, seal_at};
use crate::store::log::frame;
use crate::store::log::segment::Header;

fn open_checked(path: &Path) -> LogStore {
    LogStore::open_with(path, LogOptions { verify: true, ..TINY }).unwrap()
}

/// Header, place of the seal, and the seal of a file.
fn seal_of(file: &Path) -> (Header, u64, Option<Seal>) {
    let bytes = fs::read(file).unwrap();
    let header = Header::decode(&bytes).unwrap().unwrap();
    let at = seal_at(header.size);
    let seal = bytes.get(usize::try_from(at).unwrap()..).unwrap();
    (header, at, Seal::decode(seal, header.number, header.seed(), at))
}

fn flip(file: &Path, at: u64, bit: u64) {
    let handle = OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    handle.read_exact_at(&mut byte, at).unwrap();
    handle.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
}

/// Segments with survivors, acks of entries elsewhere, other keys, and a release.
fn mixed(close: bool) -> TempDir {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=200 {
        put(&store, id, &value(id, 300 + usize::try_from(id).unwrap() * 5));
        if id % 3 == 0 {
            delete(&store, id / 2 + 1);
        }
        if id % 20 == 0 {
            let bytes = [u8::try_from(id).unwrap()];
            store.commit(&[Op::Put(&[4, bytes[0]], &bytes), Op::Delete(&[4, bytes[0] - 20])], true).unwrap();
        }
    }
    for id in 1..=60 {
        delete(&store, id);
    }
    if close {
        store.close().unwrap();
    }
    drop(store);
    dir
}

#[test]
fn footers_and_frames_say_the_same() {
    for close in [true, false] {
        let dir = mixed(close);
        let sealed = segments(dir.path()).iter().filter(|file| seal_of(file).2.is_some()).count();
        assert!(sealed >= 2, "{sealed}");
        let checked = open_checked(dir.path());
        let (all, summary) = (contents(&checked), checked.summary().unwrap());
        assert_eq!(checked.recovery().clean, close);
        drop(checked);
        let lazy = open(dir.path());
        assert_eq!(lazy.recovery().clean, close);
        assert_eq!(lazy.summary().unwrap(), summary);
        assert_eq!(contents(&lazy), all);
        // What is settled from now on is settled in either way of reading.
        for id in (61..=200).step_by(2) {
            delete(&lazy, id);
        }
        let (all, summary) = (contents(&lazy), lazy.summary().unwrap());
        drop(lazy);
        for open in [open_checked, open] {
            let store = open(dir.path());
            assert_eq!(contents(&store), all);
            assert_eq!(store.summary().unwrap(), summary);
        }
    }
}

#[test]
fn a_bad_footer_costs_time_only() {
    let dir = mixed(true);
    let all = contents(&open(dir.path()));
    let mut random = Random::new(5);
    for file in segments(dir.path()) {
        let (_, at, Some(seal)) = seal_of(&file) else { continue };
        for _ in 0..60 {
            let place = match random.below(3) {
                0 => at + random.below(SEAL as u64),
                _ => seal.offset + random.below(seal.length),
            };
            let bit = random.below(8);
            flip(&file, place, bit);
            let store = open(dir.path());
            assert!(store.recovery().damage.is_empty(), "{place}: {:?}", store.recovery());
            assert_eq!(contents(&store), all, "{place}");
            drop(store);
            flip(&file, place, bit);
        }
    }
}

#[test]
fn a_footer_of_another_life_or_number_is_none() {
    let dir = mixed(true);
    let all = contents(&open(dir.path()));
    let files = segments(dir.path());
    let sealed: Vec<_> = files.iter().filter(|file| seal_of(file).2.is_some()).collect();
    let (_, from, Some(seal)) = seal_of(sealed[0]) else { panic!("it was sealed") };
    let bytes = fs::read(sealed[0]).unwrap();
    let part =
        |at: u64, length: u64| &bytes[usize::try_from(at).unwrap()..usize::try_from(at + length).unwrap()];
    let (_, to, Some(place)) = seal_of(sealed[1]) else { panic!("it was sealed") };
    let target = OpenOptions::new().write(true).open(sealed[1]).unwrap();
    target.write_all_at(part(seal.offset, seal.length), place.offset).unwrap();
    target.write_all_at(part(from, SEAL as u64), to).unwrap();
    let store = open(dir.path());
    assert!(store.recovery().damage.is_empty());
    assert_eq!(contents(&store), all);
}

#[test]
fn a_footer_that_speaks_of_torn_frames_is_not_trusted() {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=3 {
        put(&store, id, &value(id, 20_000));
    }
    drop(store);
    let files = segments(dir.path());
    // The power went before the second segment's record was durable, and took the last entry of the first along.
    for later in &files[1..] {
        fs::remove_file(later).unwrap();
    }
    let bytes = fs::read(&files[0]).unwrap();
    let (header, _, Some(_)) = seal_of(&files[0]) else { panic!("it was sealed") };
    let second = (8192..bytes.len() - 64).step_by(8).find(|at| {
        frame::parse(&bytes[*at..], header.seed(), *at as u64)
            .is_some_and(|head| head.kind == frame::ENTRY && head.id == 2)
    });
    flip(&files[0], second.unwrap() as u64 + 100, 1);
    for round in 0..3 {
        let store = open(dir.path());
        assert_eq!(store.get(&key::entry(1)).unwrap().unwrap(), value(1, 20_000), "round {round}");
        assert_eq!(store.get(&key::entry(2)).unwrap(), None, "round {round}");
        assert!(store.recovery().damage.is_empty());
        put(&store, 10 + round, b"more");
    }
}

#[test]
fn a_payload_is_checked_when_it_is_read() {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=12 {
        put(&store, id, &value(id, 20_000));
    }
    store.close().unwrap();
    let first = segments(dir.path())[0].clone();
    flip(&first, 12_288 + 600 + 20_000, 3);
    let store = open(dir.path());
    assert!(store.recovery().damage.is_empty(), "a footer was enough");
    let lost: Vec<u64> = (1..=12).filter(|id| store.get(&key::entry(*id)).unwrap().is_none()).collect();
    assert_eq!(lost.len(), 1);
    let damage = store.recovery().damage;
    assert_eq!((damage.len(), damage[0].first_id), (1, Some(lost[0])));
    drop(store);
    assert!(open_checked(dir.path()).recovery().damage.is_empty());
}

#[test]
fn a_closing_batch_that_is_gone_makes_the_footer_void() {
    let dir = mixed(true);
    let all = contents(&open(dir.path()));
    let last = segments(dir.path()).pop().unwrap();
    let (_, _, Some(seal)) = seal_of(&last) else { panic!("it was sealed") };
    flip(&last, seal.offset - 20, 1);
    let store = open(dir.path());
    assert!(!store.recovery().clean);
    assert_eq!(contents(&store), all);
}

#[test]
fn reads_in_any_order_find_what_a_sealed_segment_holds() {
    let dir = directory();
    let options = LogOptions { segment_bytes: 4 << 20, ..TINY };
    let store = LogStore::open_with(dir.path(), options).unwrap();
    let mut random = Random::new(9);
    let mut all = BTreeMap::new();
    // Ids are not in the order of the file, and lengths differ widely.
    for step in 0..1500_u64 {
        let id = 1 + (step * 7919) % 1500;
        let length = match random.below(40) {
            0 => 200_000,
            1 => 1_500_000,
            _ => random.size(5000),
        };
        store.commit(&[Op::Put(&key::entry(id), &value(id, length))], false).unwrap();
        all.insert(id, length);
    }
    for id in (1..=1500).step_by(5) {
        store.commit(&[Op::Delete(&key::entry(id))], false).unwrap();
        all.remove(&id);
    }
    for _ in 0..100 {
        // An entry that is stored again.
        let id = 1 + random.below(1500);
        store.commit(&[Op::Put(&key::entry(id), &value(id, 77))], false).unwrap();
        all.insert(id, 77);
    }
    store.close().unwrap();
    let store = LogStore::open_with(dir.path(), options).unwrap();
    let bytes: u64 = all.values().map(|length| *length as u64).sum();
    let summary = store.summary().unwrap();
    assert_eq!((summary.count, summary.bytes), (all.len() as u64, bytes));
    let check = |id: u64| {
        let found = store.get(&key::entry(id)).unwrap();
        assert!(found == all.get(&id).map(|length| value(id, *length)), "{id}");
    };
    (1..=1500).for_each(check);
    (0..600).for_each(|_| check(1 + random.below(1500)));
    let mut walked = Vec::new();
    let mut from = 0;
    while let Some(found) = store.next_key(&key::entry(from)).unwrap() {
        let Ok(key::Key::Entry(id)) = key::Key::parse(&found) else { break };
        walked.push(id);
        from = id + 1;
    }
    assert_eq!(walked, all.keys().copied().collect::<Vec<_>>());
}

#[test]
fn bytes_of_an_entry_that_was_stored_again_count_once() {
    // The second place of the id is in a block of its own, or between the ids of another block.
    for again in [1000, 150] {
        let dir = directory();
        let options = LogOptions { segment_bytes: 4 << 20, ..TINY };
        let store = LogStore::open_with(dir.path(), options).unwrap();
        let others = (3..=300).filter(|id| *id != again).map(|id| (id, 900 + usize::try_from(id).unwrap()));
        let all = [(1, 10), (2, 20), (again, 30)].into_iter().chain(others).chain([(again, 54)]);
        let all: Vec<(u64, usize)> = all.collect();
        let pairs: Vec<_> = all.iter().map(|(id, length)| (key::entry(*id), value(*id, *length))).collect();
        // One batch lies in one segment.
        let ops: Vec<Op<'_>> = pairs.iter().map(|(key, value)| Op::Put(key, value)).collect();
        store.commit(&ops, false).unwrap();
        store.close().unwrap();
        let store = LogStore::open_with(dir.path(), options).unwrap();
        store.commit(&[Op::Delete(&key::entry(2))], false).unwrap();
        let gone = [(2, 20), (again, 30)];
        let bytes: u64 =
            all.iter().filter(|pair| !gone.contains(pair)).map(|(_, length)| *length as u64).sum();
        assert_eq!(store.summary().unwrap().bytes, bytes, "{again}");
    }
}

#[test]
fn an_eager_open_needs_what_it_says() {
    let dir = mixed(true);
    let lazy = open(dir.path());
    let (all, summary) = (contents(&lazy), lazy.summary().unwrap());
    drop(lazy);
    let needed = match LogStore::open_with(dir.path(), LogOptions { eager: Some(1000), ..TINY }) {
        Err(LogError::NeedsMemory { needed, limit: 1000 }) => needed,
        other => panic!("{other:?}"),
    };
    assert_eq!(needed, summary.bytes + summary.count * 64);
    let eager = LogStore::open_with(dir.path(), LogOptions { eager: Some(needed), ..TINY }).unwrap();
    // Values are there whatever becomes of the files.
    for file in segments(dir.path()) {
        fs::write(&file, []).unwrap();
    }
    assert_eq!(contents(&eager), all);
    let id = summary.first.unwrap();
    let kept = |store: &LogStore| store.core().index.read().loaded.len() as u64;
    assert_eq!(kept(&eager), summary.count);
    delete(&eager, id);
    assert_eq!((eager.get(&key::entry(id)).unwrap(), kept(&eager)), (None, summary.count - 1));
}
