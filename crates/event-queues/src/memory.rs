//! The queue in memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::error::EventQueueError;
use crate::options::POLL;

/// A first-in-first-out queue in memory, for any number of threads. Clones are the same queue. Events are lost when the
/// last clone is dropped.
pub struct EventQueue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    events: Mutex<VecDeque<T>>,
    arrived: Condvar,
}

impl<T> EventQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self { shared: Arc::new(Shared { events: Mutex::new(VecDeque::new()), arrived: Condvar::new() }) }
    }

    /// Appends an event and wakes one waiter.
    ///
    /// # Errors
    /// None so far, as for every operation; see [`EventQueueError`].
    pub fn push(&self, event: T) -> Result<(), EventQueueError> {
        self.shared.events.lock().push_back(event);
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// Puts an event in front of all others and wakes one waiter.
    ///
    /// # Errors
    /// None so far; see [`EventQueueError`].
    pub fn push_front(&self, event: T) -> Result<(), EventQueueError> {
        self.shared.events.lock().push_front(event);
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// Takes the event in front; `None` when there is none. Never waits.
    ///
    /// # Errors
    /// None so far; see [`EventQueueError`].
    pub fn pop(&self) -> Result<Option<T>, EventQueueError> {
        Ok(self.shared.events.lock().pop_front())
    }

    /// Takes the event in front, and waits up to 100 ms for one.
    ///
    /// # Errors
    /// None so far; see [`EventQueueError`].
    pub fn poll(&self) -> Result<Option<T>, EventQueueError> {
        let deadline = Instant::now() + POLL;
        let mut events = self.shared.events.lock();
        loop {
            if let Some(event) = events.pop_front() {
                return Ok(Some(event));
            }
            if self.shared.arrived.wait_until(&mut events, deadline).timed_out() {
                // It may have come together with the end of the time.
                return Ok(events.pop_front());
            }
        }
    }

    /// How many events there are.
    ///
    /// # Errors
    /// None so far; see [`EventQueueError`].
    pub fn len(&self) -> Result<usize, EventQueueError> {
        Ok(self.shared.events.lock().len())
    }

    /// Whether there is no event.
    ///
    /// # Errors
    /// None so far; see [`EventQueueError`].
    pub fn is_empty(&self) -> Result<bool, EventQueueError> {
        Ok(self.shared.events.lock().is_empty())
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for EventQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for EventQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue").field("len", &self.shared.events.lock().len()).finish_non_exhaustive()
    }
}
