//! An entry whose bytes the codec rejects.

use std::error::Error;
use std::fmt;

use super::CodecError;
use crate::code::ErrorCode;
use crate::error::AckError;
use crate::reserved::{Delivery, Handle};
use crate::state::Shared;
use crate::sync::Arc;

/// An entry whose bytes the codec rejects (`MILLPOND_DECODE`), with its id, its bytes and the means to settle it.
///
/// [`Undecodable::ack`] removes it. [`Undecodable::nack`] puts it back in its own place, from where it is delivered
/// next. Dropping the error does neither: the entry stays stored and in flight, out of the way of those behind it,
/// until it is settled by handle or by id, or the queue is opened again. Clones settle the same delivery.
#[derive(Clone)]
pub struct Undecodable(Arc<Rejected>);

struct Rejected {
    id: u64,
    settle: Settle,
    /// The entry's value, and where the payload begins in it.
    value: Vec<u8>,
    offset: usize,
    codec: &'static str,
    reason: CodecError,
}

enum Settle {
    /// It was handed out.
    ByHandle(Delivery),
    /// It was only read.
    ById(Arc<Shared>),
}

impl Undecodable {
    pub(super) fn delivered(
        mut delivery: Delivery,
        (value, offset): (Vec<u8>, usize),
        codec: &'static str,
        reason: CodecError,
    ) -> Self {
        // Given back, it would be the next one delivered, and a loop that only logs errors would never come past it.
        delivery.let_go();
        let id = delivery.handle().id;
        Self(Arc::new(Rejected { id, settle: Settle::ByHandle(delivery), value, offset, codec, reason }))
    }

    pub(super) fn read(
        shared: Arc<Shared>,
        id: u64,
        (value, offset): (Vec<u8>, usize),
        codec: &'static str,
        reason: CodecError,
    ) -> Self {
        Self(Arc::new(Rejected { id, settle: Settle::ById(shared), value, offset, codec, reason }))
    }

    /// The entry's id.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The payload as it is stored.
    pub fn bytes(&self) -> &[u8] {
        self.0.value.get(self.0.offset..).unwrap_or(&[])
    }

    /// The name of the codec that rejected it.
    pub fn codec(&self) -> &'static str {
        self.0.codec
    }

    /// What the codec said.
    pub fn reason(&self) -> &CodecError {
        &self.0.reason
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::Decode
    }

    /// The handle of its delivery; `None` when it was only read, by `get` or `iter`.
    pub fn handle(&self) -> Option<Handle> {
        match &self.0.settle {
            Settle::ByHandle(delivery) => Some(delivery.handle()),
            Settle::ById(_) => None,
        }
    }

    /// How often the entry was delivered since open; 0 when it was only read.
    pub fn deliveries(&self) -> u32 {
        match &self.0.settle {
            Settle::ByHandle(delivery) => delivery.deliveries(),
            Settle::ById(_) => 0,
        }
    }

    /// Removes the entry. `Ok(true)` when this call did, `Ok(false)` when it was settled before. An entry that was
    /// only read is removed by its id.
    ///
    /// # Durability
    /// As [`Reserved::ack`](crate::Reserved::ack).
    ///
    /// # Errors
    /// [`AckError`]: the entry is where it was and can be acked again.
    pub fn ack(&self) -> Result<bool, AckError> {
        match &self.0.settle {
            Settle::ByHandle(delivery) => delivery.ack(),
            Settle::ById(shared) => shared.ack_here(&[self.0.id]).map(|removed| removed > 0),
        }
    }

    /// Puts the entry back in its own place. `Ok(false)` when it was settled before, or was only read.
    ///
    /// # Errors
    /// None so far, as [`Reserved::nack`](crate::Reserved::nack).
    pub fn nack(&self) -> Result<bool, AckError> {
        match &self.0.settle {
            Settle::ByHandle(delivery) => Ok(delivery.nack()),
            Settle::ById(_) => Ok(false),
        }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rejected { id, codec, reason, .. } = &*self.0;
        write!(f, "entry {id} cannot be decoded by {codec}: {reason}")
    }
}

impl fmt::Debug for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undecodable")
            .field("id", &self.id())
            .field("bytes", &self.bytes().len())
            .field("codec", &self.codec())
            .field("reason", self.reason())
            .finish_non_exhaustive()
    }
}

impl Error for Undecodable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0.reason)
    }
}
