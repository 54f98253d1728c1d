//! Events that were decoded when the queue was opened.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Decoded events by id, until they are handed out or acked. A cache: the store has them all, and one that is not here
/// is decoded when it is asked for.
pub(crate) struct Decoded<T>(Mutex<HashMap<u64, T>>);

impl<T> Decoded<T> {
    pub(crate) fn none() -> Self {
        Self::new(HashMap::new())
    }

    pub(crate) fn new(events: HashMap<u64, T>) -> Self {
        Self(Mutex::new(events))
    }

    pub(crate) fn take(&self, id: u64) -> Option<T> {
        self.0.lock().remove(&id)
    }

    pub(crate) fn forget(&self, ids: &[u64]) {
        let mut gone = Vec::new();
        let mut events = self.0.lock();
        if !events.is_empty() {
            gone.extend(ids.iter().filter_map(|id| events.remove(id)));
        }
        drop(events);
        // The events' own code runs here, without the lock.
        drop(gone);
    }
}

impl<T: Clone> Decoded<T> {
    pub(crate) fn get(&self, id: u64) -> Option<T> {
        self.0.lock().get(&id).cloned()
    }
}
