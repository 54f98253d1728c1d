//! One typed error per operation, and the failure they share.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use thiserror::Error as ThisError;

use crate::code::{ErrorCode, Outcome};
use crate::store::{FailureKind, IoDetails, LogError, StoreError};
use crate::typed::{CodecError, Undecodable};

/// A failure with its code, cheap to clone: everybody in a failed commit gets the same one.
#[derive(Clone, Debug)]
pub struct Failure(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    code: ErrorCode,
    outcome: Outcome,
    message: String,
    io: Option<IoDetails>,
    id: Option<u64>,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, outcome: Outcome, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { code, outcome, message: message.into(), io: None, id: None }))
    }

    /// A failed read or open: nothing was written.
    pub(crate) fn of_store(error: &StoreError, id: Option<u64>) -> Self {
        Self::classified(error.kind(), error.to_string(), error.io().cloned(), id)
    }

    fn classified(kind: FailureKind, message: String, io: Option<IoDetails>, id: Option<u64>) -> Self {
        let code = match kind {
            FailureKind::NoSpace => ErrorCode::NoSpace,
            FailureKind::Locked => ErrorCode::Locked,
            FailureKind::Corrupt => ErrorCode::Corrupt,
            FailureKind::NewerFormat => ErrorCode::NewerFormat,
            FailureKind::NotADirectory => ErrorCode::NotADirectory,
            FailureKind::Closed => ErrorCode::Closed,
            FailureKind::NotWritten if io.is_none() => ErrorCode::Invalid,
            FailureKind::NotWritten | FailureKind::Unknown => ErrorCode::Io,
        };
        Self(Arc::new(Inner { code, outcome: Outcome::NotDone, message, io, id }))
    }

    /// A failed commit: what of it is on disk is not known, unless the store says that nothing was written.
    pub(crate) fn of_commit(error: &StoreError) -> Self {
        let read = Self::of_store(error, None);
        let outcome = match error.kind() {
            FailureKind::NotWritten | FailureKind::Closed => Outcome::NotDone,
            _ => Outcome::Unknown,
        };
        Self(Arc::new(Inner { outcome, ..read.parts() }))
    }

    /// What later operations get after `self` poisoned the queue.
    pub(crate) fn poison(&self) -> Self {
        let message = format!("an earlier write failed, nothing more is accepted: {}", self.0.message);
        Self(Arc::new(Inner {
            code: ErrorCode::Poisoned,
            outcome: Outcome::NotDone,
            message,
            ..self.parts()
        }))
    }

    /// The same failure for an operation that had not begun.
    pub(crate) fn not_done(&self) -> Self {
        Self(Arc::new(Inner { outcome: Outcome::NotDone, ..self.parts() }))
    }

    fn parts(&self) -> Inner {
        Inner {
            code: self.0.code,
            outcome: self.0.outcome,
            message: self.0.message.clone(),
            io: self.0.io.clone(),
            id: self.0.id,
        }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Whether the operation may have happened all the same.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// A sentence for people; not a contract, without payload bytes.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The operating system's part of the failure.
    pub fn io(&self) -> Option<&IoDetails> {
        self.0.io.as_ref()
    }

    /// The entry the failure is about.
    pub fn id(&self) -> Option<u64> {
        self.0.id
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for Failure {}

/// Why a queue could not be opened.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum OpenError {
    /// The capacity is 0 (`MILLPOND_INVALID`).
    #[error("capacity must be at least 1")]
    ZeroCapacity,
    /// The codec name is empty or too long (`MILLPOND_INVALID`).
    #[error("codec name must have 1 to {limit} bytes, got {bytes}")]
    CodecName {
        /// Length of the name in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The queue was written with another codec (`MILLPOND_CODEC_MISMATCH`).
    #[error("the queue was written with codec {stored:?}, not {asked:?}")]
    CodecMismatch {
        /// The codec the queue was written with.
        stored: String,
        /// The codec that was asked for.
        asked: String,
    },
    /// The meta record is of a newer format (`MILLPOND_NEWER_FORMAT`). Nothing was changed.
    #[error("written by newer format {found}, this is {known}")]
    NewerFormat {
        /// The format that was found, or the unknown flags.
        found: u32,
        /// The newest format this version reads.
        known: u32,
    },
    /// The meta record is not valid (`MILLPOND_CORRUPT`).
    #[error("the meta record is not valid")]
    InvalidMeta,
    /// The store failed (its own code).
    #[error(transparent)]
    Store(Failure),
}

/// Why a push failed.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum PushError {
    /// The queue is closed (`MILLPOND_CLOSED`).
    #[error("the queue is closed")]
    Closed,
    /// More bytes wait for room than the limit allows (`MILLPOND_FULL`).
    #[error("too many bytes wait for room: limit={limit}")]
    WaitingLimit {
        /// The limit in bytes.
        limit: usize,
    },
    /// The time given is over (`MILLPOND_TIMEOUT`).
    #[error("no room within the time given")]
    Timeout,
    /// The payload is above the limit (`MILLPOND_TOO_LARGE`).
    #[error("payload of {bytes} bytes is above the limit of {limit}")]
    TooLarge {
        /// Length of the payload.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// More entries at once than the capacity (`MILLPOND_INVALID`).
    #[error("{count} entries at once are above the capacity of {capacity}")]
    TooMany {
        /// Entries in the call.
        count: u64,
        /// The queue's capacity.
        capacity: u64,
    },
    /// The codec cannot store the value (`MILLPOND_ENCODE`). Nothing was stored.
    #[error("{codec} cannot store this value: {reason}")]
    Encode {
        /// The name of the codec.
        codec: &'static str,
        /// What the codec said.
        reason: CodecError,
    },
    /// The next id would be above the largest one (`MILLPOND_IDS_EXHAUSTED`).
    #[error("no ids are left")]
    IdsExhausted,
    /// The commit failed (`MILLPOND_NO_SPACE`, `_IO`, `_POISONED`, `_INTERNAL`).
    #[error(transparent)]
    Store(Failure),
}

/// Why an immediate push failed.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum TryPushError {
    /// There is no room now (`MILLPOND_FULL`).
    #[error("the queue is full")]
    Full,
    /// The queue is closed (`MILLPOND_CLOSED`).
    #[error("the queue is closed")]
    Closed,
    /// The payload is above the limit (`MILLPOND_TOO_LARGE`).
    #[error("payload of {bytes} bytes is above the limit of {limit}")]
    TooLarge {
        /// Length of the payload.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The codec cannot store the value (`MILLPOND_ENCODE`). Nothing was stored.
    #[error("{codec} cannot store this value: {reason}")]
    Encode {
        /// The name of the codec.
        codec: &'static str,
        /// What the codec said.
        reason: CodecError,
    },
    /// The next id would be above the largest one (`MILLPOND_IDS_EXHAUSTED`).
    #[error("no ids are left")]
    IdsExhausted,
    /// The commit failed (`MILLPOND_NO_SPACE`, `_IO`, `_POISONED`, `_INTERNAL`).
    #[error(transparent)]
    Store(Failure),
}

/// Why an entry could not be handed out.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum ReserveError {
    /// Reading failed (`MILLPOND_IO`, `_CORRUPT`, `_CLOSED`). The entry stays ready.
    #[error(transparent)]
    Store(Failure),
    /// The codec of a typed queue rejects the entry's bytes (`MILLPOND_DECODE`). The error settles the entry; dropping
    /// it leaves the entry in flight.
    #[error(transparent)]
    Decode(#[from] Undecodable),
}

/// Why a settle failed. The item is still in flight on its handle.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum AckError {
    /// The queue is closed for good (`MILLPOND_CLOSED`).
    #[error("the queue is closed")]
    Closed,
    /// The commit failed (`MILLPOND_NO_SPACE`, `_IO`, `_POISONED`, `_INTERNAL`).
    #[error(transparent)]
    Store(Failure),
}

/// Why a read failed.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum ReadError {
    /// Reading failed (`MILLPOND_IO`, `_CORRUPT`, `_CLOSED`).
    #[error(transparent)]
    Store(Failure),
    /// The codec of a typed queue rejects the entry's bytes (`MILLPOND_DECODE`).
    #[error(transparent)]
    Decode(#[from] Undecodable),
}

/// Why closing failed. The store is closed all the same.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum CloseError {
    /// The last write failed (`MILLPOND_NO_SPACE`, `_IO`, `_POISONED`).
    #[error(transparent)]
    Store(Failure),
}

impl OpenError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            OpenError::ZeroCapacity | OpenError::CodecName { .. } => ErrorCode::Invalid,
            OpenError::CodecMismatch { .. } => ErrorCode::CodecMismatch,
            OpenError::NewerFormat { .. } => ErrorCode::NewerFormat,
            OpenError::InvalidMeta => ErrorCode::Corrupt,
            OpenError::Store(failure) => failure.code(),
        }
    }
}

impl PushError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            PushError::Closed => ErrorCode::Closed,
            PushError::WaitingLimit { .. } => ErrorCode::Full,
            PushError::Timeout => ErrorCode::Timeout,
            PushError::TooLarge { .. } => ErrorCode::TooLarge,
            PushError::TooMany { .. } => ErrorCode::Invalid,
            PushError::Encode { .. } => ErrorCode::Encode,
            PushError::IdsExhausted => ErrorCode::IdsExhausted,
            PushError::Store(failure) => failure.code(),
        }
    }
}

impl TryPushError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            TryPushError::Full => ErrorCode::Full,
            TryPushError::Closed => ErrorCode::Closed,
            TryPushError::TooLarge { .. } => ErrorCode::TooLarge,
            TryPushError::Encode { .. } => ErrorCode::Encode,
            TryPushError::IdsExhausted => ErrorCode::IdsExhausted,
            TryPushError::Store(failure) => failure.code(),
        }
    }
}

impl AckError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            AckError::Closed => ErrorCode::Closed,
            AckError::Store(failure) => failure.code(),
        }
    }
}

impl CloseError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        let CloseError::Store(failure) = self;
        failure.code()
    }
}

macro_rules! store_or_decode {
    ($($error:ident),*) => {$(
        impl $error {
            /// The stable code.
            pub fn code(&self) -> ErrorCode {
                match self {
                    $error::Store(failure) => failure.code(),
                    $error::Decode(entry) => entry.code(),
                }
            }
        }

        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                match error {
                    $error::Store(failure) => failure,
                    $error::Decode(entry) => Failure(Arc::new(Inner {
                        code: entry.code(),
                        outcome: Outcome::NotDone,
                        message: entry.to_string(),
                        io: None,
                        id: Some(entry.id()),
                    })),
                }
            }
        }
    )*};
}
store_or_decode!(ReserveError, ReadError);

macro_rules! into_failure {
    ($($error:ident),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                match error {
                    $error::Store(failure) => failure,
                    other => Failure::new(other.code(), Outcome::NotDone, other.to_string()),
                }
            }
        }
    )*};
}
into_failure!(OpenError, PushError, TryPushError, AckError);

impl From<CloseError> for Failure {
    fn from(error: CloseError) -> Self {
        let CloseError::Store(failure) = error;
        failure
    }
}

impl From<LogError> for Failure {
    /// A log that could not be opened.
    fn from(error: LogError) -> Self {
        Self::classified(error.classify(), error.to_string(), error.io_details(), None)
    }
}

#[cfg(any(feature = "redb", feature = "sled", feature = "rocksdb"))]
impl From<crate::store::LibraryError> for Failure {
    /// A store that could not be opened.
    fn from(error: crate::store::LibraryError) -> Self {
        Self::classified(error.classify(), error.to_string(), error.io_details(), None)
    }
}

impl From<Failure> for PushError {
    fn from(failure: Failure) -> Self {
        match failure.code() {
            ErrorCode::Closed => PushError::Closed,
            _ => PushError::Store(failure),
        }
    }
}

impl From<Failure> for ReserveError {
    fn from(failure: Failure) -> Self {
        ReserveError::Store(failure)
    }
}

impl From<Failure> for AckError {
    fn from(failure: Failure) -> Self {
        match failure.code() {
            ErrorCode::Closed => AckError::Closed,
            _ => AckError::Store(failure),
        }
    }
}

impl From<PushError> for TryPushError {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Closed => TryPushError::Closed,
            PushError::WaitingLimit { .. } | PushError::Timeout | PushError::TooMany { .. } => {
                TryPushError::Full
            }
            PushError::TooLarge { bytes, limit } => TryPushError::TooLarge { bytes, limit },
            PushError::Encode { codec, reason } => TryPushError::Encode { codec, reason },
            PushError::IdsExhausted => TryPushError::IdsExhausted,
            PushError::Store(failure) => TryPushError::Store(failure),
        }
    }
}
