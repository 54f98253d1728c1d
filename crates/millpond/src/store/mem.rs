//! The store in memory: nothing survives the process, `durable` means nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;

use parking_lot::Mutex;

use super::{Op, Pair, Store, StoreStats, Summary};
use crate::key::{self, Key};

/// An ordered map in memory, for tests and for queues that may be lost.
#[derive(Debug, Default)]
pub struct MemStore {
    map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl MemStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The keys of all entries, as a range.
fn entries() -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (Bound::Included(key::entry(0).to_vec()), Bound::Included(key::entry(u64::MAX).to_vec()))
}

fn id_of(key: &[u8]) -> Option<u64> {
    match Key::parse(key) {
        Ok(Key::Entry(id)) => Some(id),
        _ => None,
    }
}

impl Store for MemStore {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.map.lock().get(key).cloned())
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Infallible> {
        let map = self.map.lock();
        let mut range = map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
        Ok(range.next().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Infallible> {
        let map = self.map.lock();
        let mut range = map.range::<[u8], _>((Bound::Unbounded, Bound::Included(upto)));
        Ok(range.next_back().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn commit(&self, ops: &[Op<'_>], _durable: bool) -> Result<(), Infallible> {
        let mut map = self.map.lock();
        for op in ops {
            match *op {
                Op::Put(key, value) => {
                    map.insert(key.to_vec(), value.to_vec());
                }
                Op::Delete(key) => {
                    map.remove(key);
                }
            }
        }
        Ok(())
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, Infallible> {
        self.commit(ops, false).map(|()| true)
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        let map = self.map.lock();
        Ok(map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next().map(|(key, _)| key.clone()))
    }

    fn summary(&self) -> Result<Summary, Infallible> {
        let map = self.map.lock();
        let mut summary = Summary::default();
        for (key, value) in map.range(entries()) {
            summary.count += 1;
            summary.bytes += value.len() as u64;
            summary.first = summary.first.or_else(|| id_of(key));
            summary.last = id_of(key);
        }
        Ok(summary)
    }

    fn is_atomic(&self) -> bool {
        true
    }

    fn stats(&self) -> StoreStats {
        let live = self.map.lock().range(entries()).map(|(_, value)| value.len() as u64).sum();
        StoreStats { live_bytes: live, ..StoreStats::default() }
    }
}
