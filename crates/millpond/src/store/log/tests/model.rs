//! Random use of a store beside an ordered map.

use super::*;

fn run(seed: u64, steps: usize) {
    let dir = directory();
    let mut random = Random::new(seed);
    let mut model = Contents::new();
    let mut store = open(dir.path());
    let mut next = 1;
    for step in 0..steps {
        let mut owned = Vec::new();
        for _ in 0..=random.below(12) {
            let id = if random.below(3) == 0 { 1 + random.below(40) } else { next };
            next += u64::from(id == next);
            let key = match random.below(12) {
                0 => vec![0],
                1 => vec![4, u8::try_from(random.below(5)).unwrap()],
                _ => key::entry(id).to_vec(),
            };
            let old = 1 + random.below(next);
            owned.push(match random.below(5) {
                0 | 1 => (key, Some(value(id + step as u64, random.size(3000)))),
                2 => (key, None),
                _ => (key::entry(old).to_vec(), None),
            });
        }
        let ops: Vec<Op<'_>> = owned
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Op::Put(key, value),
                None => Op::Delete(key),
            })
            .collect();
        if random.below(2) == 0 || !store.try_commit(&ops).unwrap() {
            store.commit(&ops, random.below(2) == 0).unwrap();
        }
        for (key, value) in &owned {
            match value {
                Some(value) => drop(model.insert(key.clone(), value.clone())),
                None => drop(model.remove(key)),
            }
        }
        if random.below(40) == 0 {
            if random.below(2) == 0 {
                store.close().unwrap();
            }
            drop(store);
            // By reading everything, then by footers.
            let checked = LogStore::open_with(dir.path(), LogOptions { verify: true, ..TINY }).unwrap();
            assert_eq!(contents(&checked), model, "seed {seed} step {step}");
            drop(checked);
            store = open(dir.path());
            assert!(store.recovery().damage.is_empty(), "seed {seed} step {step}: {:?}", store.recovery());
            assert_eq!(contents(&store), model, "seed {seed} step {step}");
        }
        if random.below(20) == 0 {
            assert_eq!(contents(&store), model, "seed {seed} step {step}");
            let entries = model.range(key::entry(0).to_vec()..=key::entry(u64::MAX).to_vec());
            let bytes: u64 = entries.clone().map(|(_, value)| value.len() as u64).sum();
            let summary = store.summary().unwrap();
            assert_eq!((summary.count, summary.bytes), (entries.count() as u64, bytes), "seed {seed}");
        }
    }
}

#[test]
fn a_log_is_an_ordered_map() {
    for seed in 1..=6 {
        run(seed, 250);
    }
}

#[test]
fn threads_commit_and_read_at_once() {
    let dir = directory();
    let store = open(dir.path());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..120 {
                    let id = 1 + thread + round * 4;
                    let (key, bytes) = (key::entry(id), value(id, 900));
                    let ops = [Op::Put(&key, &bytes)];
                    if thread % 2 == 0 || !store.try_commit(&ops).unwrap() {
                        store.commit(&ops, thread % 2 == 0).unwrap();
                    }
                    assert_eq!(store.get(&key).unwrap().unwrap(), bytes);
                    if round % 3 == 0 {
                        store.commit(&[Op::Delete(&key)], false).unwrap();
                        assert_eq!(store.get(&key).unwrap(), None);
                    }
                }
            });
        }
    });
    let before = contents(&store);
    assert_eq!(before.len(), 4 * 80);
    store.close().unwrap();
    assert_eq!(contents(&open(dir.path())), before);
}
