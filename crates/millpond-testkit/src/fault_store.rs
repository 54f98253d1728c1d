//! A store in memory that stops at any write, drops what was not durable when it crashes, and fails on demand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use millpond::store::{FailureKind, Op, Pair, Store};
use parking_lot::Mutex;

use crate::random::Random;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// How likely which fault is, as one in so many commits; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A commit applies a part of its operations, and the store is dead from then on.
    pub stops: u64,
    /// A commit applies a part of its operations and reports that there was no space.
    pub no_space: u64,
    /// A commit on the caller's thread (`try_commit`) is possible; else it never is.
    pub inline: u64,
}

/// The part that outlives a store.
pub struct Disk {
    inner: Mutex<Inner>,
}

struct Inner {
    /// What readers see.
    seen: Map,
    /// What survives for sure.
    durable: Map,
    /// Applied since the last durable commit: after a crash any subset of it may be there.
    pending: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    faults: Faults,
    random: Random,
    stopped: bool,
    commits: u64,
}

impl Disk {
    /// An empty disk whose faults follow from `seed`.
    pub fn new(seed: u64) -> Arc<Self> {
        let inner = Inner {
            seen: Map::new(),
            durable: Map::new(),
            pending: Vec::new(),
            faults: Faults::default(),
            random: Random::new(seed),
            stopped: false,
            commits: 0,
        };
        Arc::new(Self { inner: Mutex::new(inner) })
    }

    /// What may happen from here on.
    pub fn set_faults(&self, faults: Faults) {
        self.inner.lock().faults = faults;
    }

    /// Nothing is written any more, as from the moment of a power cut.
    pub fn stop(&self) {
        self.inner.lock().stopped = true;
    }

    /// Whether it was stopped, by a fault or by hand.
    pub fn is_stopped(&self) -> bool {
        self.inner.lock().stopped
    }

    /// What is left after a crash: what was durable, and any subset of what was not. The disk works again.
    pub fn crash(&self) {
        let mut inner = self.inner.lock();
        for (key, value) in std::mem::take(&mut inner.pending) {
            if inner.random.below(2) == 0 {
                apply(&mut inner.durable, key, value);
            }
        }
        inner.seen = inner.durable.clone();
        inner.stopped = false;
    }

    /// Entries that readers see.
    pub fn entries(&self) -> u64 {
        self.inner.lock().seen.keys().filter(|key| key.len() == 9).count() as u64
    }

    /// Commits that were asked for.
    pub fn commits(&self) -> u64 {
        self.inner.lock().commits
    }
}

/// A store on a [`Disk`].
pub struct FaultStore(pub Arc<Disk>);

/// The error of an injected fault.
#[derive(Debug)]
pub struct Fault(FailureKind);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "injected fault: {:?}", self.0)
    }
}

impl std::error::Error for Fault {}

fn apply(map: &mut Map, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

impl Inner {
    fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.random.below(one_in) == 0
    }

    fn apply(&mut self, ops: &[Op<'_>]) {
        for op in ops {
            let (key, value) = match *op {
                Op::Put(key, value) => (key.to_vec(), Some(value.to_vec())),
                Op::Delete(key) => (key.to_vec(), None),
            };
            apply(&mut self.seen, key.clone(), value.clone());
            self.pending.push((key, value));
        }
    }

    fn commit(&mut self, ops: &[Op<'_>], durable: bool) -> Result<(), Fault> {
        if self.stopped {
            return Err(Fault(FailureKind::Unknown));
        }
        self.commits += 1;
        let part = usize::try_from(self.random.below(ops.len() as u64 + 1)).unwrap_or(0);
        let part = ops.get(..part).unwrap_or(&[]);
        if self.happens(self.faults.stops) {
            self.apply(part);
            self.stopped = true;
            return Err(Fault(FailureKind::Unknown));
        }
        if self.happens(self.faults.no_space) {
            self.apply(part);
            return Err(Fault(FailureKind::NoSpace));
        }
        self.apply(ops);
        if durable {
            self.harden();
        }
        Ok(())
    }

    fn harden(&mut self) {
        for (key, value) in std::mem::take(&mut self.pending) {
            apply(&mut self.durable, key, value);
        }
    }
}

impl Store for FaultStore {
    type Error = Fault;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.0.inner.lock().seen.get(key).cloned())
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Fault> {
        let inner = self.0.inner.lock();
        Ok(inner.seen.range(from.to_vec()..).next().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Fault> {
        let inner = self.0.inner.lock();
        Ok(inner.seen.range(..=upto.to_vec()).next_back().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), Fault> {
        self.0.inner.lock().commit(ops, durable)
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, Fault> {
        let mut inner = self.0.inner.lock();
        let possible = inner.faults.inline;
        if !inner.happens(possible) {
            return Ok(false);
        }
        inner.commit(ops, false).map(|()| true)
    }

    fn classify(&self, error: &Fault) -> FailureKind {
        error.0
    }

    fn close(&self) -> Result<(), Fault> {
        let mut inner = self.0.inner.lock();
        if inner.stopped {
            return Err(Fault(FailureKind::Unknown));
        }
        inner.harden();
        Ok(())
    }
}
