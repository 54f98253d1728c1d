//! A store without its type: the queue above holds any store behind one pointer and sees one error.

use std::error::Error;
use std::fmt;

use super::{FailureKind, IoDetails, LostEntry, Memory, Op, RecoveryReport, Store, StoreStats, Summary};

/// A failure of a store, classified, with the store's own error as its source.
#[derive(Debug)]
pub struct StoreError {
    kind: FailureKind,
    io: Option<IoDetails>,
    source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// What the failure means for the queue.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The operating system's part of the failure.
    pub fn io(&self) -> Option<&IoDetails> {
        self.io.as_ref()
    }

    fn of<S: Store>(store: &S, error: S::Error) -> Self {
        Self { kind: store.classify(&error), io: store.io_details(&error), source: Box::new(error) }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

/// [`Store`] as a trait object. Every store is one.
pub(crate) trait AnyStore: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), StoreError>;
    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, StoreError>;
    fn memory(&self) -> Option<&dyn Memory>;
    fn summary(&self) -> Result<Summary, StoreError>;
    fn is_atomic(&self) -> bool;
    fn recovery(&self) -> RecoveryReport;
    fn take_lost(&self) -> Vec<LostEntry>;
    fn stats(&self) -> StoreStats;
    fn close(&self) -> Result<(), StoreError>;
}

impl<S: Store> AnyStore for S {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Store::get(self, key).map_err(|error| StoreError::of(self, error))
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Store::next_key(self, from).map_err(|error| StoreError::of(self, error))
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), StoreError> {
        Store::commit(self, ops, durable).map_err(|error| StoreError::of(self, error))
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, StoreError> {
        Store::try_commit(self, ops).map_err(|error| StoreError::of(self, error))
    }

    fn memory(&self) -> Option<&dyn Memory> {
        Store::memory(self)
    }

    fn summary(&self) -> Result<Summary, StoreError> {
        Store::summary(self).map_err(|error| StoreError::of(self, error))
    }

    fn is_atomic(&self) -> bool {
        Store::is_atomic(self)
    }

    fn recovery(&self) -> RecoveryReport {
        Store::recovery(self)
    }

    fn take_lost(&self) -> Vec<LostEntry> {
        Store::take_lost(self)
    }

    fn stats(&self) -> StoreStats {
        Store::stats(self)
    }

    fn close(&self) -> Result<(), StoreError> {
        Store::close(self).map_err(|error| StoreError::of(self, error))
    }
}
