//! A store in memory whose every call is a step of its own for the model checker.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::key;
use millpond::store::{FailureKind, Memory, Op, Pair, Store};

use crate::sync::Mutex;

/// The part that is looked at from outside.
pub(crate) struct Disk {
    map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// The next commit fails in this way. Set before the threads of a model start or by one of them; the standard
    /// library's, so that it is no step of its own.
    pub(crate) fails: std::sync::Mutex<Option<FailureKind>>,
    /// Non-durable commits on the caller's thread work, or fail.
    pub(crate) inline: AtomicBool,
    pub(crate) inline_fails: AtomicBool,
    /// It says that it is in memory.
    pub(crate) memory: AtomicBool,
}

impl Disk {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            map: Mutex::new(BTreeMap::new()),
            fails: std::sync::Mutex::new(None),
            inline: AtomicBool::new(false),
            inline_fails: AtomicBool::new(false),
            memory: AtomicBool::new(false),
        })
    }

    pub(crate) fn fail(&self, kind: FailureKind) {
        *self.fails.lock().unwrap() = Some(kind);
    }

    /// Entries that are stored.
    pub(crate) fn entries(&self) -> u64 {
        self.map.lock().unwrap().keys().filter(|key| key.len() == 9).count() as u64
    }
}

pub(crate) struct ModelStore(pub(crate) Arc<Disk>);

#[derive(Debug)]
pub(crate) struct Fault(FailureKind);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "injected fault: {:?}", self.0)
    }
}

impl std::error::Error for Fault {}

impl Store for ModelStore {
    type Error = Fault;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.0.map.lock().unwrap().get(key).cloned())
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Fault> {
        let map = self.0.map.lock().unwrap();
        Ok(map.range(from.to_vec()..).next().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Fault> {
        let map = self.0.map.lock().unwrap();
        Ok(map.range(..=upto.to_vec()).next_back().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn commit(&self, ops: &[Op<'_>], _durable: bool) -> Result<(), Fault> {
        let mut map = self.0.map.lock().unwrap();
        if let Some(kind) = self.0.fails.lock().unwrap().take() {
            return Err(Fault(kind));
        }
        for op in ops {
            match *op {
                Op::Put(key, value) => drop(map.insert(key.to_vec(), value.to_vec())),
                Op::Delete(key) => drop(map.remove(key)),
            }
        }
        Ok(())
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, Fault> {
        if self.0.inline_fails.load(Ordering::SeqCst) {
            return Err(Fault(FailureKind::Unknown));
        }
        if !self.0.inline.load(Ordering::SeqCst) {
            return Ok(false);
        }
        self.commit(ops, false).map(|()| true)
    }

    fn memory(&self) -> Option<&dyn Memory> {
        self.0.memory.load(Ordering::SeqCst).then_some(self as &dyn Memory)
    }

    fn classify(&self, error: &Fault) -> FailureKind {
        error.0
    }

    fn is_atomic(&self) -> bool {
        true
    }
}

impl Memory for ModelStore {
    fn get(&self, id: u64) -> Option<Vec<u8>> {
        self.0.map.lock().unwrap().get(&key::entry(id)[..]).cloned()
    }

    fn put(&self, id: u64, value: Vec<u8>) {
        self.0.map.lock().unwrap().insert(key::entry(id).to_vec(), value);
    }

    fn remove(&self, id: u64) -> Option<Vec<u8>> {
        self.0.map.lock().unwrap().remove(&key::entry(id)[..])
    }
}
