//! What can go wrong.

use std::error::Error;
use std::fmt;

use millpond::typed::Undecodable;
use millpond::{AckError, ErrorCode, Failure, OpenError, PushError, ReadError, ReserveError};
use thiserror::Error as ThisError;

/// Why an operation on an [`EventQueue`](crate::EventQueue) failed. None does so far; the results leave room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventQueueError {}

impl fmt::Display for EventQueueError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Error for EventQueueError {}

/// Why an operation on a [`DurableEventQueue`](crate::DurableEventQueue) failed.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum DurableEventQueueError {
    /// The event's bytes are no encoding of the type (`MILLPOND_DECODE`). It holds the id and the bytes, and
    /// [`ack`](Undecodable::ack) skips the event. Dropping the error leaves the event stored, and popped: the next one
    /// is popped after it.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// The directory holds the files of another store than [`DefaultStore`](crate::DefaultStore)
    /// (`MILLPOND_UNSUPPORTED`). Nothing was changed.
    #[error("the directory holds {found}, and this build opens {opens}")]
    OtherStore {
        /// What is in the directory.
        found: &'static str,
        /// What this build opens by default.
        opens: &'static str,
    },
    /// The queue or its store failed; [`Failure::code`] and [`Failure::outcome`] tell more.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl DurableEventQueueError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Undecodable(event) => event.code(),
            Self::OtherStore { .. } => ErrorCode::Unsupported,
            Self::Failed(failure) => failure.code(),
        }
    }
}

macro_rules! from_failures {
    ($($error:ident),*) => {$(
        impl From<$error> for DurableEventQueueError {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        }
    )*};
}
from_failures!(OpenError, PushError, AckError);

macro_rules! from_reads {
    ($($error:ident),*) => {$(
        impl From<$error> for DurableEventQueueError {
            fn from(error: $error) -> Self {
                match error {
                    $error::Decode(event) => Self::Undecodable(event),
                    other => Self::Failed(other.into()),
                }
            }
        }
    )*};
}
from_reads!(ReserveError, ReadError);
