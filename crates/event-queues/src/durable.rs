//! The durable queue.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use millpond::store::Store;
use millpond::typed::Borsh;
use millpond::{Builder, Failure, Queue, ReadError, Reserved, Stats};

use crate::decoded::Decoded;
use crate::default_store;
use crate::error::DurableEventQueueError;
use crate::events::Events;
use crate::options::{DurableEventQueueOptions, POLL};

/// An event and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableEvent<T> {
    /// The id: ascending in the order of pushes, and never given to another event of this queue.
    pub id: u64,
    /// The event.
    pub event: T,
}

/// A first-in-first-out queue whose events are stored before they are handed out, and stay stored until they are acked.
/// Clones are the same queue; the last one that is dropped closes the store.
///
/// An event is *ready*, or *in flight* (popped), or gone (acked). A popped event that is neither acked nor nacked is
/// ready again after a reopen. Events are handed out in id order; a nacked one has its old place.
///
/// Give the queue a directory of its own.
pub struct DurableEventQueue<T> {
    queue: Queue<T, Borsh>,
    /// The same queue, by the bytes.
    bytes: Queue,
    decoded: Arc<Decoded<T>>,
}

impl<T: BorshSerialize + BorshDeserialize + Clone> DurableEventQueue<T> {
    /// Opens or creates a queue in `path`, eager, on the [`DefaultStore`](crate::DefaultStore).
    ///
    /// # Errors
    /// As [`DurableEventQueue::open_with_options`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DurableEventQueueError> {
        Self::open_with_options(path, DurableEventQueueOptions::eager())
    }

    /// Opens or creates a queue in `path` on the [`DefaultStore`](crate::DefaultStore).
    ///
    /// # Errors
    /// [`DurableEventQueueError::OtherStore`] when another store's files are there; else the store's failure, among
    /// them `MILLPOND_LOCKED` when another owner has the queue open. An event that cannot be decoded is no failure.
    pub fn open_with_options(
        path: impl AsRef<Path>,
        options: DurableEventQueueOptions,
    ) -> Result<Self, DurableEventQueueError> {
        Self::with_store(default_store::open(path.as_ref())?, options)
    }

    /// Opens a queue on any store.
    ///
    /// ```
    /// use arch_event_queues::millpond::store::MemStore;
    /// use arch_event_queues::{DurableEventQueue, DurableEventQueueOptions};
    ///
    /// let queue = DurableEventQueue::with_store(MemStore::new(), DurableEventQueueOptions::lazy())?;
    /// queue.push(7u32)?;
    /// assert_eq!(queue.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The queue's or the store's failure: `MILLPOND_CODEC_MISMATCH` when the store holds a queue of another encoding.
    pub fn with_store(
        store: impl Store + 'static,
        options: DurableEventQueueOptions,
    ) -> Result<Self, DurableEventQueueError> {
        let queue: Queue<T, Borsh> =
            Builder::new(store).capacity(options.capacity).durability(options.durability).open_borsh()?;
        let decoded = if options.is_lazy { Decoded::none() } else { decode_all(&queue)? };
        Ok(Self { bytes: queue.bytes(), queue, decoded: Arc::new(decoded) })
    }

    /// Stores an event and returns it with its id. Waits while the queue is full.
    ///
    /// # Durability
    /// Returns when the event is as durable as the [options](DurableEventQueueOptions::durability) say; by default
    /// its fsync has returned. Only then it can be popped.
    ///
    /// # Errors
    /// [`DurableEventQueueError::Failed`]: `MILLPOND_CLOSED`, `MILLPOND_ENCODE`, `MILLPOND_TOO_LARGE`, and what a
    /// failed write gives. When the failure's outcome is unknown, the event may be stored all the same.
    pub fn push(&self, event: T) -> Result<DurableEvent<T>, DurableEventQueueError> {
        let id = self.queue.push(&event)?;
        Ok(DurableEvent { id, event })
    }

    /// The ready event with the lowest id, which is then in flight; `None` when nothing is ready. Never waits.
    ///
    /// # Errors
    /// [`DurableEventQueueError::Undecodable`]: the event is in flight all the same, and the next call goes on behind
    /// it. [`DurableEventQueueError::Failed`] when reading failed: the event stays ready.
    pub fn pop(&self) -> Result<Option<DurableEvent<T>>, DurableEventQueueError> {
        self.bytes.reserve()?.map(|item| self.event_of(item)).transpose()
    }

    /// [`DurableEventQueue::pop`] that waits up to 100 ms for an event when none is ready.
    ///
    /// # Errors
    /// As [`DurableEventQueue::pop`].
    pub fn poll(&self) -> Result<Option<DurableEvent<T>>, DurableEventQueueError> {
        self.bytes.reserve_timeout(POLL)?.map(|item| self.event_of(item)).transpose()
    }

    /// Ends the item's own care for its delivery: from here on it is settled by its id.
    fn event_of(&self, item: Reserved) -> Result<DurableEvent<T>, DurableEventQueueError> {
        let id = item.seq();
        let event = if let Some(event) = self.decoded.take(id) {
            item.detach();
            event
        } else {
            item.decode::<T, Borsh>()?.into_value().1
        };
        Ok(DurableEvent { id, event })
    }

    /// An unacked event, popped or not, without popping it.
    ///
    /// # Errors
    /// [`DurableEventQueueError::Undecodable`], [`DurableEventQueueError::Failed`].
    pub fn get(&self, id: u64) -> Result<Option<DurableEvent<T>>, DurableEventQueueError> {
        let event = match self.decoded.get(id) {
            Some(event) => Some(event),
            None => self.queue.get(id)?,
        };
        Ok(event.map(|event| DurableEvent { id, event }))
    }

    /// Removes an event for good, popped or not. An id that is unknown or was acked before is fine.
    ///
    /// # Durability
    /// As [`DurableEventQueue::push`]. An ack that did not become durable before a crash makes the event come again.
    ///
    /// # Errors
    /// [`DurableEventQueueError::Failed`]: the event is where it was.
    pub fn ack(&self, id: u64) -> Result<(), DurableEventQueueError> {
        self.ack_many([id])
    }

    /// Removes events for good in one commit. Ids that are unknown or were acked before are fine.
    ///
    /// # Durability
    /// As [`DurableEventQueue::ack`].
    ///
    /// # Errors
    /// [`DurableEventQueueError::Failed`]: the events are where they were.
    pub fn ack_many(&self, ids: impl IntoIterator<Item = u64>) -> Result<(), DurableEventQueueError> {
        let ids: Vec<u64> = ids.into_iter().collect();
        // First, so that `get` never shows an event whose ack has returned. A failed ack decodes it anew.
        self.decoded.forget(&ids);
        self.queue.ack_many(&ids)?;
        Ok(())
    }

    /// Makes a popped event ready again, in its own place; writes nothing. An id that is not in flight (unknown, acked,
    /// or never popped) is fine and changes nothing.
    ///
    /// # Errors
    /// None so far; the type leaves room for stores that write on a nack.
    pub fn nack(&self, id: u64) -> Result<(), DurableEventQueueError> {
        self.queue.nack(id);
        Ok(())
    }

    /// How many events are not acked, popped or not. Counted, not searched for.
    ///
    /// # Errors
    /// None so far.
    pub fn len(&self) -> Result<usize, DurableEventQueueError> {
        Ok(whole(self.queue.len()))
    }

    /// Whether every event was acked.
    ///
    /// # Errors
    /// None so far.
    pub fn is_empty(&self) -> Result<bool, DurableEventQueueError> {
        Ok(self.queue.is_empty())
    }

    /// How many events can be popped now. Counted, not searched for.
    ///
    /// # Errors
    /// None so far.
    pub fn ready_len(&self) -> Result<usize, DurableEventQueueError> {
        Ok(whole(self.queue.ready_len()))
    }

    /// All unacked events in id order, popped or not, without popping them. One that cannot be decoded is an error in
    /// its place. Events that come or go meanwhile may be there or not.
    #[must_use]
    pub fn iterator(&self) -> Events<T> {
        Events::new(self.queue.iter())
    }

    /// The figures of this moment: what was pushed, acked and redelivered, commits, bytes on disk.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.queue.stats()
    }

    /// Blocks until everything accepted so far is durable, whatever the [durability](DurableEventQueueOptions).
    ///
    /// # Errors
    /// [`DurableEventQueueError::Failed`]: the failure of the commit.
    pub fn flush(&self) -> Result<(), DurableEventQueueError> {
        Ok(self.queue.flush()?)
    }

    /// Ends the queue for all clones and closes its store: pushes under way are stored, events in flight stay stored,
    /// later calls fail with `MILLPOND_CLOSED`. Dropping the last clone does the same and cannot tell of a failure.
    ///
    /// # Errors
    /// [`DurableEventQueueError::Failed`] when the last write failed. The store is closed all the same.
    pub fn finish(&self) -> Result<(), DurableEventQueueError> {
        Ok(self.queue.finish().map_err(Failure::from)?)
    }
}

fn decode_all<T: BorshSerialize + BorshDeserialize>(
    queue: &Queue<T, Borsh>,
) -> Result<Decoded<T>, DurableEventQueueError> {
    let mut events = HashMap::new();
    for entry in queue {
        match entry {
            Ok(entry) => drop(events.insert(entry.id, entry.payload)),
            // It is told of in its place, when it is popped.
            Err(ReadError::Decode(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Decoded::new(events))
}

fn whole(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl<T> Clone for DurableEventQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), bytes: self.bytes.clone(), decoded: Arc::clone(&self.decoded) }
    }
}

impl<T> fmt::Debug for DurableEventQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableEventQueue").field("len", &self.queue.len()).finish_non_exhaustive()
    }
}
