//! A log without its thread under a queue, with the doors that tests need.

use std::sync::Arc;

use millpond::store::{
    FailureKind, IoDetails, LogError, LogOptions, LogStore, LostEntry, Op, Pair, RecoveryReport, Store,
    StoreStats, Summary,
};
use millpond::testing;

use crate::sim_disk::SimDisk;

/// [`LogStore`] that is shared with the test that drives it.
#[derive(Clone, Debug)]
pub struct ByHand(Arc<LogStore>);

impl ByHand {
    /// Opens the log on a simulated disk.
    ///
    /// # Errors
    /// As [`LogStore::open_on`].
    pub fn open(disk: &SimDisk, options: LogOptions) -> Result<Self, LogError> {
        Ok(Self(Arc::new(testing::open_by_hand(Arc::new(disk.clone()), options)?)))
    }

    /// Does everything that the thread would do now.
    pub fn work(&self) {
        // What may be put off again (a log that waits for its turn) must not go on for ever.
        for _ in 0..64 {
            if !testing::work(&self.0) {
                return;
            }
        }
    }

    /// Puts the next segment into use.
    ///
    /// # Errors
    /// As a commit.
    pub fn rotate(&self) -> Result<(), LogError> {
        testing::rotate(&self.0)
    }
}

impl Store for ByHand {
    type Error = LogError;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LogError> {
        self.0.get(key)
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, LogError> {
        self.0.seek(from)
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, LogError> {
        self.0.seek_back(upto)
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LogError> {
        self.0.commit(ops, durable)
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, LogError> {
        self.0.try_commit(ops)
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, LogError> {
        self.0.next_key(from)
    }

    fn summary(&self) -> Result<Summary, LogError> {
        self.0.summary()
    }

    fn classify(&self, error: &LogError) -> FailureKind {
        self.0.classify(error)
    }

    fn io_details(&self, error: &LogError) -> Option<IoDetails> {
        self.0.io_details(error)
    }

    fn is_atomic(&self) -> bool {
        self.0.is_atomic()
    }

    fn recovery(&self) -> RecoveryReport {
        self.0.recovery()
    }

    fn take_lost(&self) -> Vec<LostEntry> {
        self.0.take_lost()
    }

    fn stats(&self) -> StoreStats {
        self.0.stats()
    }

    fn close(&self) -> Result<(), LogError> {
        self.0.close()
    }
}
