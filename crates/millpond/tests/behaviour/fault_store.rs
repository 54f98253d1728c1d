//! A store in memory that can be held, fail on demand, and be opened again after a crash.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond::store::{FailureKind, Op, Pair, Store};
use parking_lot::{Condvar, Mutex};

pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Something that happens once, at a place in the store: it forces an interleaving. No lock is held meanwhile.
#[derive(Default)]
pub(crate) struct Hook(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Hook {
    pub(crate) fn set(&self, action: impl FnOnce() + Send + 'static) {
        *self.0.lock() = Some(Box::new(action));
    }

    fn run(&self) {
        let action = self.0.lock().take();
        if let Some(action) = action {
            action();
        }
    }
}

/// The part that outlives a store: what is "on disk", and the switches.
#[derive(Default)]
pub(crate) struct Disk {
    /// What a reader sees.
    seen: Mutex<Map>,
    /// What survives a crash.
    durable: Mutex<Map>,
    failure: Mutex<Option<(FailureKind, bool)>>,
    held: Mutex<bool>,
    released: Condvar,
    /// Commits that ended well.
    pub(crate) commits: AtomicU64,
    /// Commits that were asked for.
    pub(crate) attempts: AtomicU64,
    pub(crate) durable_commits: AtomicU64,
    /// The next commit panics.
    pub(crate) panics: AtomicBool,
    /// Commits that fail apply their first half all the same.
    pub(crate) torn: AtomicBool,
    /// `try_commit` works on the caller's thread.
    pub(crate) inline: AtomicBool,
    pub(crate) before_get: Hook,
    pub(crate) after_seek: Hook,
    /// After a commit was applied and before it returns.
    pub(crate) after_commit: Hook,
    pub(crate) after_inline: Hook,
    closed: AtomicBool,
}

impl Disk {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Every commit from here on fails in this way, once or for ever.
    pub(crate) fn fail(&self, kind: FailureKind, once: bool) {
        *self.failure.lock() = Some((kind, once));
    }

    pub(crate) fn heal(&self) {
        *self.failure.lock() = None;
    }

    /// Commits wait until `release`.
    pub(crate) fn hold(&self) {
        *self.held.lock() = true;
    }

    pub(crate) fn release(&self) {
        *self.held.lock() = false;
        self.released.notify_all();
    }

    /// Forgets what was not durable.
    pub(crate) fn crash(&self) {
        *self.seen.lock() = self.durable.lock().clone();
    }

    /// What would survive a crash now.
    pub(crate) fn snapshot(&self) -> Map {
        self.durable.lock().clone()
    }

    /// The disk as it was at a snapshot.
    pub(crate) fn restore(&self, map: Map) {
        *self.seen.lock() = map.clone();
        *self.durable.lock() = map;
    }

    /// The last store on it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn count(&self, counter: &AtomicU64) -> u64 {
        let _ = self;
        counter.load(Ordering::SeqCst)
    }
}

/// A store on a [`Disk`].
pub(crate) struct FaultStore(pub(crate) Arc<Disk>);

#[derive(Debug)]
pub(crate) struct Fault(FailureKind);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "injected fault: {:?}", self.0)
    }
}

impl std::error::Error for Fault {}

fn apply(map: &mut Map, ops: &[Op<'_>]) {
    for op in ops {
        match *op {
            Op::Put(key, value) => drop(map.insert(key.to_vec(), value.to_vec())),
            Op::Delete(key) => drop(map.remove(key)),
        }
    }
}

impl Store for FaultStore {
    type Error = Fault;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        if key.len() > 1 {
            self.0.before_get.run();
        }
        Ok(self.0.seen.lock().get(key).cloned())
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Fault> {
        let found = {
            let seen = self.0.seen.lock();
            seen.range(from.to_vec()..).next().map(|(key, value)| (key.clone(), value.clone()))
        };
        self.0.after_seek.run();
        Ok(found)
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Fault> {
        let seen = self.0.seen.lock();
        Ok(seen.range(..=upto.to_vec()).next_back().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), Fault> {
        self.0.attempts.fetch_add(1, Ordering::SeqCst);
        let mut held = self.0.held.lock();
        while *held {
            self.0.released.wait(&mut held);
        }
        drop(held);
        assert!(!self.0.panics.swap(false, Ordering::SeqCst), "a panic was asked for");
        let mut failure = self.0.failure.lock();
        if let Some((kind, once)) = *failure {
            if once {
                *failure = None;
            }
            if self.0.torn.load(Ordering::SeqCst) {
                apply(&mut self.0.seen.lock(), &ops[..ops.len() / 2]);
            }
            return Err(Fault(kind));
        }
        drop(failure);
        let mut seen = self.0.seen.lock();
        apply(&mut seen, ops);
        if durable {
            *self.0.durable.lock() = seen.clone();
            self.0.durable_commits.fetch_add(1, Ordering::SeqCst);
        }
        drop(seen);
        self.0.commits.fetch_add(1, Ordering::SeqCst);
        self.0.after_commit.run();
        Ok(())
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, Fault> {
        if !self.0.inline.load(Ordering::SeqCst) {
            return Ok(false);
        }
        apply(&mut self.0.seen.lock(), ops);
        self.0.after_inline.run();
        Ok(true)
    }

    fn classify(&self, error: &Fault) -> FailureKind {
        error.0
    }

    fn close(&self) -> Result<(), Fault> {
        self.0.closed.store(true, Ordering::SeqCst);
        Ok(())
    }
}
