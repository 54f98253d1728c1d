//! The store in memory: nothing survives the process, `durable` means nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;

use parking_lot::Mutex;

use super::{Op, Pair, Store, StoreStats, Summary};
use crate::key::{self, Key};

/// Ordered maps in memory, for tests and for queues that may be lost.
#[derive(Debug, Default)]
pub struct MemStore {
    maps: Mutex<Maps>,
}

/// Entries by id, which is cheaper to compare than a key, and everything else by key.
#[derive(Debug, Default)]
struct Maps {
    entries: BTreeMap<u64, Vec<u8>>,
    others: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MemStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Maps {
    /// The entry with the smallest key that is not below `from`, which need not be a whole key.
    fn entry_from(&self, from: &[u8]) -> Option<(u64, &Vec<u8>)> {
        match Key::parse(from) {
            Ok(Key::Entry(id)) => self.entries.range(id..).next(),
            _ => self.entries.iter().find(|(id, _)| key::entry(**id).as_slice() >= from),
        }
        .map(|(id, value)| (*id, value))
    }

    /// The entry with the greatest key that is not above `upto`, which need not be a whole key.
    fn entry_upto(&self, upto: &[u8]) -> Option<(u64, &Vec<u8>)> {
        match Key::parse(upto) {
            Ok(Key::Entry(id)) => self.entries.range(..=id).next_back(),
            _ => self.entries.iter().rev().find(|(id, _)| key::entry(**id).as_slice() <= upto),
        }
        .map(|(id, value)| (*id, value))
    }

    fn live_bytes(&self) -> u64 {
        self.entries.values().map(|value| value.len() as u64).sum()
    }
}

impl Store for MemStore {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        let maps = self.maps.lock();
        Ok(match Key::parse(key) {
            Ok(Key::Entry(id)) => maps.entries.get(&id).cloned(),
            _ => maps.others.get(key).cloned(),
        })
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Infallible> {
        let maps = self.maps.lock();
        let entry = maps.entry_from(from).map(|(id, value)| (key::entry(id).to_vec(), value));
        let other = maps.others.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
        let other = other.map(|(key, value)| (key.clone(), value));
        let found = [entry, other].into_iter().flatten().min_by(|a, b| a.0.cmp(&b.0));
        Ok(found.map(|(key, value)| (key, value.clone())))
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Infallible> {
        let maps = self.maps.lock();
        let entry = maps.entry_upto(upto).map(|(id, value)| (key::entry(id).to_vec(), value));
        let other = maps.others.range::<[u8], _>((Bound::Unbounded, Bound::Included(upto))).next_back();
        let other = other.map(|(key, value)| (key.clone(), value));
        let found = [entry, other].into_iter().flatten().max_by(|a, b| a.0.cmp(&b.0));
        Ok(found.map(|(key, value)| (key, value.clone())))
    }

    fn commit(&self, ops: &[Op<'_>], _durable: bool) -> Result<(), Infallible> {
        let mut maps = self.maps.lock();
        for op in ops {
            let (Op::Put(key, _) | Op::Delete(key)) = *op;
            match (Key::parse(key), op) {
                (Ok(Key::Entry(id)), Op::Put(_, value)) => drop(maps.entries.insert(id, value.to_vec())),
                (Ok(Key::Entry(id)), Op::Delete(_)) => drop(maps.entries.remove(&id)),
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
        let entry = maps.entry_from(from).map(|(id, _)| key::entry(id).to_vec());
        let other = maps.others.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
        let other = other.map(|(key, _)| key.clone());
        Ok([entry, other].into_iter().flatten().min())
    }

    fn summary(&self) -> Result<Summary, Infallible> {
        let maps = self.maps.lock();
        let first = maps.entries.first_key_value().map(|(id, _)| *id);
        let last = maps.entries.last_key_value().map(|(id, _)| *id);
        Ok(Summary { count: maps.entries.len() as u64, bytes: maps.live_bytes(), first, last })
    }

    fn is_atomic(&self) -> bool {
        true
    }

    fn stats(&self) -> StoreStats {
        StoreStats { live_bytes: self.maps.lock().live_bytes(), ..StoreStats::default() }
    }
}
