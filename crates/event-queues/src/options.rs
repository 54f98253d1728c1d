//! How a durable queue is opened.

use std::time::Duration;

use millpond::Durability;

/// How long `poll` waits for an event.
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// Settings of a durable queue. The default is eager, without a limit to the number of events, and answers a push when
/// the fsync that it shares with others has returned.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct DurableEventQueueOptions {
    pub(crate) is_lazy: bool,
    pub(crate) capacity: u64,
    pub(crate) durability: Durability,
}

impl DurableEventQueueOptions {
    /// Decodes every event at open, so that handing one out decodes nothing. Opening takes as long and as much memory
    /// as the unacked events are large.
    pub fn eager() -> Self {
        Self { is_lazy: false, capacity: u64::MAX, durability: Durability::Group }
    }

    /// Decodes an event when it is handed out. Opening reads no event, however many there are.
    pub fn lazy() -> Self {
        Self { is_lazy: true, ..Self::eager() }
    }

    /// The largest number of unacked events; a push to a full queue waits for an ack. At least 1.
    pub fn capacity(mut self, events: u64) -> Self {
        self.capacity = events;
        self
    }

    /// When pushes and acks are answered.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}

impl Default for DurableEventQueueOptions {
    fn default() -> Self {
        Self::eager()
    }
}
