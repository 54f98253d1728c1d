//! A store in memory that outlives its queue and counts what is read of it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arch_event_queues::millpond::key::META_KEY;
use arch_event_queues::millpond::store::{MemStore, Op, Pair, Store, Summary};

/// What a store holds, and how it was used.
#[derive(Clone, Default)]
pub(crate) struct Counted(Arc<Parts>);

#[derive(Default)]
struct Parts {
    store: MemStore,
    values: AtomicU64,
    commits: AtomicU64,
}

impl Counted {
    /// Values of entries that were read since the last call.
    pub(crate) fn values_read(&self) -> u64 {
        self.0.values.swap(0, Ordering::SeqCst)
    }

    /// Commits since the last call.
    pub(crate) fn commits(&self) -> u64 {
        self.0.commits.swap(0, Ordering::SeqCst)
    }

    fn count(&self, key: &[u8]) {
        if key != META_KEY {
            self.0.values.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Store for Counted {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        self.count(key);
        self.0.store.get(key)
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Infallible> {
        self.count(from);
        self.0.store.seek(from)
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Infallible> {
        self.count(upto);
        self.0.store.seek_back(upto)
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), Infallible> {
        self.0.commits.fetch_add(1, Ordering::SeqCst);
        self.0.store.commit(ops, durable)
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        self.0.store.next_key(from)
    }

    fn summary(&self) -> Result<Summary, Infallible> {
        self.0.store.summary()
    }

    fn is_atomic(&self) -> bool {
        true
    }
}
