//! A delivered item.

use std::fmt;
use std::ops::Deref;

use crate::completion::{Completion, Ticket};
use crate::error::AckError;
use crate::futures::AckFuture;
use crate::state::Shared;
use crate::sync::Arc;
use crate::typed::Payload;

/// Which delivery of which entry: a settle by an older handle never touches a newer delivery of the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    /// The entry's id.
    pub id: u64,
    /// The delivery, unique within one open.
    pub generation: u64,
}

/// A delivered item: its payload, and the right to settle it. Dropping it unsettled is a nack, so nothing is lost when
/// a consumer panics. Derefs to the payload: bytes, or the value of a [typed](crate::typed) queue.
pub struct Reserved<T: Payload + ?Sized = [u8]> {
    delivery: Delivery,
    held: T::Held,
}

/// The right to settle one delivery. Dropping it gives the item back, unless it was let go.
pub(crate) struct Delivery {
    shared: Arc<Shared>,
    handle: Handle,
    deliveries: u32,
    gives_back: bool,
}

impl Delivery {
    /// Ends the care for the item: from here on it stays in flight until it is settled.
    pub(crate) fn let_go(&mut self) {
        self.gives_back = false;
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn deliveries(&self) -> u32 {
        self.deliveries
    }

    pub(crate) fn ack(&self) -> Result<bool, AckError> {
        // Made only when the ack has to wait for its commit.
        let mut ticket = None;
        let completion = |_| Completion::Ticket(Arc::clone(ticket.insert(Ticket::for_thread())));
        let (accepted, taken) = self.shared.ack_handles(&[self.handle], true, completion)?;
        if accepted.first() != Some(&true) {
            return Ok(false);
        }
        let outcome = match (taken.settled, taken.follows, &ticket) {
            (Some(outcome), ..) => outcome,
            (None, Some((batch, one)), _) => batch.wait().map(|()| one),
            (None, None, Some(ticket)) => self.shared.drive(ticket, taken.token, None).unwrap_or(Ok(0)),
            (None, None, None) => Ok(0),
        };
        outcome.map(|_| true).map_err(AckError::from)
    }

    fn ack_later(&self) -> AckFuture {
        let ticket = Ticket::for_future();
        let taken =
            self.shared.ack_handles(&[self.handle], false, |_| Completion::Ticket(Arc::clone(&ticket)));
        match taken {
            Err(error) => AckFuture::ready(Err(error)),
            Ok((accepted, _)) if accepted.first() != Some(&true) => AckFuture::ready(Ok(false)),
            Ok((_, taken)) => match taken.settled {
                Some(outcome) => AckFuture::ready(outcome.map(|_| true).map_err(AckError::from)),
                None => AckFuture::pending(ticket),
            },
        }
    }

    pub(crate) fn nack(&self) -> bool {
        self.shared.nack(self.handle, true)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.gives_back {
            self.shared.release(self.handle);
        }
    }
}

impl Reserved {
    pub(crate) fn new(
        shared: Arc<Shared>,
        handle: Handle,
        deliveries: u32,
        value: Vec<u8>,
        offset: usize,
    ) -> Self {
        let delivery = Delivery { shared, handle, deliveries, gives_back: true };
        Self { delivery, held: (value, offset) }
    }

    /// [`Reserved::detach`] that also gives the value and where the payload begins in it.
    pub fn into_parts(self) -> (Handle, Vec<u8>, usize) {
        let (mut delivery, (value, offset)) = self.split();
        delivery.let_go();
        (delivery.handle, value, offset)
    }
}

impl<T> Reserved<T> {
    /// [`Reserved::detach`] that also gives the value.
    pub fn into_value(self) -> (Handle, T) {
        let (mut delivery, value) = self.split();
        delivery.let_go();
        (delivery.handle, value)
    }
}

impl<T: Payload + ?Sized> Reserved<T> {
    pub(crate) fn join(delivery: Delivery, held: T::Held) -> Self {
        Self { delivery, held }
    }

    pub(crate) fn split(self) -> (Delivery, T::Held) {
        (self.delivery, self.held)
    }

    /// The entry's id.
    pub fn seq(&self) -> u64 {
        self.delivery.handle.id
    }

    /// How often the entry was delivered since open; 1 at first.
    pub fn deliveries(&self) -> u32 {
        self.delivery.deliveries
    }

    /// The handle, for settling through a [`Port`](crate::Port).
    pub fn handle(&self) -> Handle {
        self.delivery.handle
    }

    /// Removes the entry. `Ok(true)` when this call did, `Ok(false)` when the item was settled before.
    ///
    /// # Durability
    /// Returns when the delete is as durable as the queue's policy says. After a crash without that the entry is
    /// delivered again.
    ///
    /// # Errors
    /// [`AckError`]: the item is still in flight on this handle and can be acked again.
    pub fn ack(&self) -> Result<bool, AckError> {
        self.delivery.ack()
    }

    /// [`Reserved::ack`] as a future. The ack is on its way when this returns; dropping the future does not undo it.
    pub fn ack_async(&self) -> AckFuture {
        self.delivery.ack_later()
    }

    /// Puts the item back in its own place; writes nothing. `Ok(false)` when it was settled before or an ack of it is
    /// under way.
    ///
    /// # Errors
    /// None so far; the type leaves room for stores that write on a nack.
    pub fn nack(&self) -> Result<bool, AckError> {
        Ok(self.delivery.nack())
    }

    /// Ends this value's care for the item, which stays in flight until it is settled by handle or by id.
    pub fn detach(self) -> Handle {
        let (mut delivery, _) = self.split();
        delivery.let_go();
        delivery.handle
    }
}

impl<T: Payload + ?Sized> Deref for Reserved<T> {
    type Target = T;

    fn deref(&self) -> &T {
        T::of(&self.held)
    }
}

impl<T: Payload + ?Sized> fmt::Debug for Reserved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved")
            .field("seq", &self.seq())
            .field("deliveries", &self.deliveries())
            .finish_non_exhaustive()
    }
}
