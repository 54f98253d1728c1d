//! Power cuts at any call of a random workload, with any part of what was not synced left behind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::sim::{SimDisk, State};
use super::*;
use crate::store::FailureKind;

/// What each key may hold after a crash now.
type Allowed = BTreeMap<Vec<u8>, BTreeSet<Option<Vec<u8>>>>;

struct Captured {
    state: State,
    allowed: Allowed,
}

/// Checks a store against what is allowed and says what it holds.
fn check(store: &LogStore, allowed: &Allowed, context: &str) -> Contents {
    let report = store.recovery();
    assert!(report.damage.is_empty(), "{context}: {report:?}");
    let found = contents(store);
    for (key, values) in allowed {
        let value = found.get(key).cloned();
        let lengths: Vec<_> = values.iter().map(|value| value.as_ref().map(Vec::len)).collect();
        assert!(
            values.contains(&value),
            "{context}: {key:?} {:?} of {lengths:?} {report:?}",
            value.map(|v| v.len())
        );
    }
    for key in found.keys() {
        assert!(allowed.contains_key(key), "{context}: {key:?} was never put");
    }
    found
}

/// A random workload from this state; returns what a crash at some calls would have found.
fn workload(
    start: State,
    begin: &Contents,
    random: &mut Random,
    steps: u64,
    next: &mut u64,
) -> Vec<Captured> {
    let disk = SimDisk::of(start);
    let allowed: Allowed =
        begin.iter().map(|(key, value)| (key.clone(), [Some(value.clone())].into())).collect();
    let allowed = Arc::new(Mutex::new(allowed));
    let captured = Arc::new(Mutex::new(Vec::new()));
    {
        let (allowed, captured) = (Arc::clone(&allowed), Arc::clone(&captured));
        let dice = Mutex::new((Random::new(random.below(1 << 40)), 0));
        *disk.0.hook.lock() = Some(Box::new(move |state: &State| {
            let mut dice = dice.lock();
            // A file that is gone for good is the moment to ask whether it might.
            let gone = state.durable_names() < std::mem::replace(&mut dice.1, state.durable_names());
            if gone || dice.0.below(25) == 0 {
                captured.lock().push(Captured { state: state.clone(), allowed: allowed.lock().clone() });
            }
        }));
    }
    let store = LogStore::open_on(Arc::new(disk.clone()), TINY).unwrap();
    let mut failed = false;
    for _ in 0..steps {
        let mut owned = Vec::new();
        for _ in 0..=random.below(4) {
            let choice = random.below(10);
            let key = match choice {
                0 => vec![0],
                1..=5 => {
                    *next += 1;
                    key::entry(*next).to_vec()
                }
                _ => key::entry(next.saturating_sub(random.below(60))).to_vec(),
            };
            let length = if random.below(12) == 0 { 30_000 } else { random.size(2500) };
            owned.push((key, (choice <= 6).then(|| value(*next + random.below(50), length))));
        }
        if random.below(30) == 0 {
            // Nearly drains it.
            let keys: Vec<_> = contents(&store).into_keys().filter(|key| key[0] == 1).collect();
            owned.extend(keys.into_iter().skip(1).map(|key| (key, None)));
        }
        {
            let mut allowed = allowed.lock();
            for (key, value) in &owned {
                allowed.entry(key.clone()).or_insert_with(|| [None].into()).insert(value.clone());
            }
        }
        let ops: Vec<Op<'_>> = owned
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Op::Put(key, value),
                None => Op::Delete(key),
            })
            .collect();
        let durable = random.below(3) > 0;
        // Now and then the disk is full for one commit, somewhere in the middle of what it writes.
        disk.0.state.lock().room = (random.below(12) == 0).then(|| random.below(6000));
        let direct = durable || random.below(2) == 0;
        let done = match if direct { Ok(false) } else { store.try_commit(&ops) } {
            Ok(false) => store.commit(&ops, durable),
            other => other.map(|_| ()),
        };
        disk.0.state.lock().room = None;
        if let Err(error) = &done {
            assert_eq!(store.classify(error), FailureKind::NoSpace, "{error}");
            failed = true;
        }
        // What failed may come back until something is written behind it: a put surely is, a delete of nothing not.
        let writes = owned.iter().any(|(_, value)| value.is_some());
        if durable && done.is_ok() && (writes || !failed) {
            failed = false;
            let now = contents(&store);
            for (key, values) in allowed.lock().iter_mut() {
                *values = [now.get(key).cloned()].into();
            }
        }
        if random.below(25) == 0 {
            // Time for the thread to unlink.
            thread::sleep(Duration::from_millis(if random.below(4) == 0 { 150 } else { 3 }));
        }
    }
    if random.below(2) == 0 {
        let now = contents(&store);
        store.close().unwrap();
        for (key, values) in allowed.lock().iter_mut() {
            *values = [now.get(key).cloned()].into();
        }
        let state = disk.0.state.lock().clone();
        captured.lock().push(Captured { state, allowed: allowed.lock().clone() });
    }
    drop(store);
    *disk.0.hook.lock() = None;
    std::mem::take(&mut *captured.lock())
}

/// One durable commit after a recovery, cut at each of its calls: nothing that was found is lost or changed.
fn again(image: &State, found: &Contents, random: &mut Random, context: &str) -> u64 {
    let disk = SimDisk::of(image.clone());
    let states = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&states);
    *disk.0.hook.lock() = Some(Box::new(move |state: &State| sink.lock().push(state.clone())));
    let store = LogStore::open_on(Arc::new(disk.clone()), TINY).unwrap();
    put(&store, u64::MAX, b"next");
    drop(store);
    *disk.0.hook.lock() = None;
    let mut allowed: Allowed =
        found.iter().map(|(key, value)| (key.clone(), [Some(value.clone())].into())).collect();
    allowed.insert(key::entry(u64::MAX).to_vec(), [None, Some(b"next".to_vec())].into());
    // Each call of one file of zeros is as good as any other.
    let states = std::mem::take(&mut *states.lock());
    let mut images = 0;
    for (at, state) in states.iter().enumerate().filter(|(_, state)| state.is_telling()) {
        let store = LogStore::open_on(Arc::new(SimDisk::of(state.crash(random))), TINY).unwrap();
        check(&store, &allowed, &format!("{context} call {at}"));
        images += 1;
    }
    images
}

#[test]
fn what_was_durable_survives_every_crash() {
    let first = std::env::var("MILLPOND_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = std::env::var("MILLPOND_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3);
    let mut images = 0;
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let (mut state, mut begin, mut next) = (State::default(), Contents::new(), 0);
        for generation in 0..5 {
            let captured = workload(state.clone(), &begin, &mut random, 60, &mut next);
            let mut last = None;
            for (at, moment) in captured.iter().enumerate() {
                for cut in 0..3 {
                    let context = format!("seed {seed} generation {generation} moment {at} cut {cut}");
                    let image = moment.state.crash(&mut random);
                    images += 1;
                    let store = LogStore::open_on(Arc::new(SimDisk::of(image.clone())), TINY).unwrap();
                    let found = check(&store, &moment.allowed, &context);
                    drop(store);
                    if cut == 0 && at % 8 == 0 {
                        images += again(&image, &found, &mut random, &context);
                    }
                    last = Some((image, found));
                }
            }
            // The next life begins where one of the crashes ended.
            if let Some((image, found)) = last {
                (state, begin) = (image, found);
            }
        }
    }
    println!("{images} crash images");
}

/// A store whose first segment holds one live entry, 7, and whose second one is in use; nothing is unsynced.
fn two_segments() -> (SimDisk, LogStore) {
    let disk = SimDisk::new();
    let store = LogStore::open_on(Arc::new(disk.clone()), TINY).unwrap();
    put(&store, 7, b"old");
    for id in 100..160 {
        put(&store, id, &value(id, 1000));
        delete(&store, id);
    }
    assert_eq!(store.stats().segments, 2);
    (disk, store)
}

#[test]
fn a_file_goes_only_when_its_release_is_durable() {
    let (disk, store) = two_segments();
    store.commit(&[Op::Delete(&key::entry(7))], false).unwrap();
    store.commit(&[Op::Put(&key::entry(8), b"new")], false).unwrap();
    // Shorter than an idle log waits before it syncs by itself.
    thread::sleep(Duration::from_millis(40));
    let state = disk.0.state.lock().clone();
    let mut random = Random::new(1);
    for _ in 0..30 {
        let image = SimDisk::of(state.crash(&mut random));
        let report = LogStore::open_on(Arc::new(image), TINY).unwrap().recovery();
        assert!(report.damage.is_empty(), "{report:?}");
    }
}

#[test]
fn a_release_behind_torn_bytes_does_not_act() {
    let (disk, store) = two_segments();
    store.commit(&[Op::Put(&key::entry(7), &value(7, 3000))], false).unwrap();
    store.commit(&[Op::Put(&key::entry(8), b"new")], false).unwrap();
    let state = disk.0.state.lock().clone();
    let mut random = Random::new(1);
    let mut old = 0;
    for _ in 0..100 {
        let image = SimDisk::of(state.crash(&mut random));
        let store = LogStore::open_on(Arc::new(image), TINY).unwrap();
        let found = store.get(&key::entry(7)).unwrap().unwrap();
        old += u64::from(found == b"old");
        // What was decided stays decided when more is written.
        put(&store, 9, b"more");
        assert_eq!(store.get(&key::entry(7)).unwrap().unwrap(), found);
    }
    assert!(old > 10);
}
