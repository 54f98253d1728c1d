//! The walk over the events of a durable queue.

use std::fmt;

use borsh::{BorshDeserialize, BorshSerialize};
use millpond::typed::{Borsh, Entries};

use crate::durable::DurableEvent;
use crate::error::DurableEventQueueError;

/// Unacked events in id order; see [`DurableEventQueue::iterator`](crate::DurableEventQueue::iterator).
pub struct Events<T> {
    entries: Entries<T, Borsh>,
}

impl<T> Events<T> {
    pub(crate) fn new(entries: Entries<T, Borsh>) -> Self {
        Self { entries }
    }
}

impl<T: BorshSerialize + BorshDeserialize> Iterator for Events<T> {
    type Item = Result<DurableEvent<T>, DurableEventQueueError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        Some(entry.map(|entry| DurableEvent { id: entry.id, event: entry.payload }).map_err(Into::into))
    }
}

impl<T> fmt::Debug for Events<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.entries).finish()
    }
}
