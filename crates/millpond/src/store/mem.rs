//! The store in memory: nothing survives the process, `durable` means nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;

use parking_lot::Mutex;

use super::{Memory, Op, Pair, Store, StoreStats, Summary};
use crate::key::{self, Key};

/// Ordered maps in memory, for tests and for queues that may be lost.
#[derive(Debug, Default)]
pub struct MemStore {
    maps: Mutex<Maps>,
}

/// Entries by id, and everything else by key.
#[derive(Debug, Default)]
struct Maps {
    entries: Entries,
    others: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Values by id, in runs of 64 neighbours: ids of a queue are mostly consecutive, so that the tree has a node for
/// hundreds of them.
///
/// A run that is the only one may be empty, no other: a queue whose length goes from 0 to 1 and back makes none anew.
#[derive(Debug, Default)]
struct Entries {
    runs: BTreeMap<u64, Box<Run>>,
    count: u64,
    bytes: u64,
}

/// The values of 64 neighbouring ids.
#[derive(Debug)]
struct Run {
    /// One bit for each id that is stored.
    stored: u64,
    values: [Vec<u8>; 64],
}

impl Default for Run {
    fn default() -> Self {
        Self { stored: 0, values: [const { Vec::new() }; 64] }
    }
}

/// Where `id` lies in its run, and its bit.
fn place_of(id: u64) -> (usize, u64) {
    // INVARIANT: below 64.
    (usize::try_from(id & 63).unwrap_or(0), 1 << (id & 63))
}

impl Run {
    fn get(&self, id: u64) -> Option<&Vec<u8>> {
        let (place, bit) = place_of(id);
        if self.stored & bit == 0 { None } else { self.values.get(place) }
    }
}

impl Entries {
    fn get(&self, id: u64) -> Option<&Vec<u8>> {
        self.runs.get(&(id >> 6))?.get(id)
    }

    fn put(&mut self, id: u64, value: Vec<u8>) {
        let (place, bit) = place_of(id);
        let number = id >> 6;
        if self.count == 0 && !self.runs.contains_key(&number) {
            self.runs.clear();
        }
        let run = self.runs.entry(number).or_default();
        let Some(slot) = run.values.get_mut(place) else { return };
        self.count += u64::from(run.stored & bit == 0);
        self.bytes = self.bytes + value.len() as u64 - slot.len() as u64;
        run.stored |= bit;
        *slot = value;
    }

    fn remove(&mut self, id: u64) -> Option<Vec<u8>> {
        let (place, bit) = place_of(id);
        let run = self.runs.get_mut(&(id >> 6))?;
        if run.stored & bit == 0 {
            return None;
        }
        let value = std::mem::take(run.values.get_mut(place)?);
        run.stored &= !bit;
        self.count -= 1;
        if run.stored == 0 && self.count > 0 {
            self.runs.remove(&(id >> 6));
        }
        self.bytes -= value.len() as u64;
        Some(value)
    }

    /// The lowest id that is not below `id`.
    fn first_from(&self, id: u64) -> Option<u64> {
        self.runs.range(id >> 6..).find_map(|(&number, run)| {
            let wanted = if number == id >> 6 { u64::MAX << (id & 63) } else { u64::MAX };
            let bits = run.stored & wanted;
            (bits != 0).then(|| (number << 6) + u64::from(bits.trailing_zeros()))
        })
    }

    /// The highest id that is not above `id`.
    fn last_upto(&self, id: u64) -> Option<u64> {
        self.runs.range(..=id >> 6).rev().find_map(|(&number, run)| {
            let wanted = if number == id >> 6 { u64::MAX >> (63 - (id & 63)) } else { u64::MAX };
            let bits = run.stored & wanted;
            (bits != 0).then(|| (number << 6) + u64::from(bits.ilog2()))
        })
    }
}

impl MemStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Maps {
    fn entry_from(&self, from: &[u8]) -> Option<u64> {
        self.entries.first_from(key::first_entry_from(from)?)
    }

    fn entry_upto(&self, upto: &[u8]) -> Option<u64> {
        self.entries.last_upto(key::last_entry_upto(upto)?)
    }

    fn pair(&self, id: u64) -> Option<Pair> {
        Some((key::entry(id).to_vec(), self.entries.get(id)?.clone()))
    }
}

impl Store for MemStore {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        let maps = self.maps.lock();
        Ok(match Key::parse(key) {
            Ok(Key::Entry(id)) => maps.entries.get(id).cloned(),
            _ => maps.others.get(key).cloned(),
        })
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Infallible> {
        let maps = self.maps.lock();
        let entry = maps.entry_from(from).and_then(|id| maps.pair(id));
        let other = maps.others.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
        let other = other.map(|(key, value)| (key.clone(), value.clone()));
        Ok([entry, other].into_iter().flatten().min_by(|a, b| a.0.cmp(&b.0)))
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Infallible> {
        let maps = self.maps.lock();
        let entry = maps.entry_upto(upto).and_then(|id| maps.pair(id));
        let other = maps.others.range::<[u8], _>((Bound::Unbounded, Bound::Included(upto))).next_back();
        let other = other.map(|(key, value)| (key.clone(), value.clone()));
        Ok([entry, other].into_iter().flatten().max_by(|a, b| a.0.cmp(&b.0)))
    }

    fn commit(&self, ops: &[Op<'_>], _durable: bool) -> Result<(), Infallible> {
        let mut maps = self.maps.lock();
        for op in ops {
            let (Op::Put(key, _) | Op::Delete(key)) = *op;
            match (Key::parse(key), op) {
                (Ok(Key::Entry(id)), Op::Put(_, value)) => maps.entries.put(id, value.to_vec()),
                (Ok(Key::Entry(id)), Op::Delete(_)) => drop(maps.entries.remove(id)),
                (_, Op::Put(_, value)) => drop(maps.others.insert(key.to_vec(), value.to_vec())),
                (_, Op::Delete(_)) => drop(maps.others.remove(key)),
            }
        }
        Ok(())
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, Infallible> {
        self.commit(ops, false).map(|()| true)
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        let maps = self.maps.lock();
        let entry = maps.entry_from(from).map(|id| key::entry(id).to_vec());
        let other = maps.others.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
        let other = other.map(|(key, _)| key.clone());
        Ok([entry, other].into_iter().flatten().min())
    }

    fn summary(&self) -> Result<Summary, Infallible> {
        let entries = &self.maps.lock().entries;
        let (first, last) = (entries.first_from(0), entries.last_upto(u64::MAX));
        Ok(Summary { count: entries.count, bytes: entries.bytes, first, last })
    }

    fn is_atomic(&self) -> bool {
        true
    }

    fn stats(&self) -> StoreStats {
        StoreStats { live_bytes: self.maps.lock().entries.bytes, ..StoreStats::default() }
    }

    fn memory(&self) -> Option<&dyn Memory> {
        Some(self)
    }
}

impl Memory for MemStore {
    fn get(&self, id: u64) -> Option<Vec<u8>> {
        self.maps.lock().entries.get(id).cloned()
    }

    fn put(&self, id: u64, value: Vec<u8>) {
        self.maps.lock().entries.put(id, value);
    }

    fn remove(&self, id: u64) -> Option<Vec<u8>> {
        self.maps.lock().entries.remove(id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways_in_show_the_same_entries(
            steps in prop::collection::vec((0..4u8, prop_oneof![0..200u64, 60..70u64, u64::MAX - 70..=u64::MAX]), 0..300)
        ) {
            let store = MemStore::new();
            let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            for (place, (kind, id)) in steps.into_iter().enumerate() {
                let value = vec![1; place];
                match kind {
                    0 => Memory::put(&store, id, value.clone()),
                    1 => store.commit(&[Op::Put(&key::entry(id), &value)], false).unwrap(),
                    2 => prop_assert_eq!(Memory::remove(&store, id), model.get(&id).cloned()),
                    _ => store.commit(&[Op::Delete(&key::entry(id))], false).unwrap(),
                }
                if kind < 2 {
                    model.insert(id, value);
                } else {
                    model.remove(&id);
                }
                prop_assert_eq!(Memory::get(&store, id), model.get(&id).cloned());
                let next = model.range(id..).next().map(|(id, _)| key::entry(*id).to_vec());
                prop_assert_eq!(store.next_key(&key::entry(id)).unwrap(), next);
                let before = model.range(..=id).next_back().map(|(id, value)| (key::entry(*id).to_vec(), value.clone()));
                prop_assert_eq!(store.seek_back(&key::entry(id)).unwrap(), before);
                let expected = Summary {
                    count: model.len() as u64,
                    bytes: model.values().map(|value| value.len() as u64).sum(),
                    first: model.keys().next().copied(),
                    last: model.keys().next_back().copied(),
                };
                prop_assert_eq!(store.summary().unwrap(), expected);
            }
        }
    }
}
