//! What a queue needs of a disk: ordered bytes and one write.
//!
//! A store knows nothing of queues, reservations or policies. Its clauses are numbered; the conformance suite
//! names them:
//!
//! 1. `get`, `seek`, `seek_back` and `next_key` see everything a returned `commit` applied, and nothing of a commit
//!    that was never issued. What they see of a commit under way is the store's choice.
//! 2. Keys are ordered as byte strings.
//! 3. `commit(ops, true)` returns `Ok` only when `ops` **and every earlier commit** survive a power cut.
//! 4. `commit(ops, false)` returns `Ok` when the operations are visible to readers of this process.
//! 5. Operations of one commit apply in order. After a crash any subset of an unfinished or failed commit may be there,
//!    each operation whole.
//! 6. A store that failed in a way it cannot vouch for ([`FailureKind::Unknown`]) accepts no further commit.
//! 7. An empty durable commit makes earlier non-durable ones durable.
//! 8. What [`Store::memory`] gives shows and changes the same entries as the other methods. Its calls do no I/O, wait for
//!    nothing but the store's own short critical sections, fail in no way, and call nobody: they are made while the
//!    lock of a queue is held. A store on a disk has none.

mod any;
mod directory;
#[cfg(any(feature = "redb", feature = "sled", feature = "rocksdb"))]
mod files;
#[cfg(any(feature = "redb", feature = "sled", feature = "rocksdb"))]
mod library;
#[cfg(any(feature = "redb", feature = "sled", feature = "rocksdb"))]
mod library_error;
mod lock;
pub mod log;
mod mem;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocks;
#[cfg(feature = "sled")]
mod sled;

use std::error::Error;
use std::path::PathBuf;

pub(crate) use any::AnyStore;
pub use any::StoreError;
#[cfg(any(feature = "redb", feature = "sled", feature = "rocksdb"))]
pub use library_error::LibraryError;
pub(crate) use log::planted;
#[cfg(feature = "testing")]
pub(crate) use log::testing as log_testing;
pub use log::{Disk, DiskFile, DiskLock, LogError, LogOptions, LogStore, OpenProgress};
pub use mem::MemStore;
#[cfg(feature = "redb")]
pub use redb::RedbStore;
#[cfg(feature = "rocksdb")]
pub use rocks::RocksStore;
#[cfg(feature = "sled")]
pub use sled::SledStore;

use crate::key;

/// One operation of a [`Store::commit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Store this value under this key, replacing what is there.
    Put(&'a [u8], &'a [u8]),
    /// Remove this key; a key that is not there is fine.
    Delete(&'a [u8]),
}

/// A key with its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Ordered, durable bytes. See the [module](self) for the numbered clauses.
pub trait Store: Send + Sync {
    /// The store's own error.
    type Error: Error + Send + Sync + 'static;

    /// The value of exactly this key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The pair with the smallest key that is not below `from`.
    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Self::Error>;

    /// The pair with the greatest key that is not above `upto`.
    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Self::Error>;

    /// Applies `ops` in order. With `durable`, returns only when they survive a power cut.
    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), Self::Error>;

    /// Applies `ops` without durability if that cannot block (no fsync, no wait for another commit); `Ok(false)`
    /// means that nothing was done and `commit` must be used.
    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, Self::Error> {
        let _ = ops;
        Ok(false)
    }

    /// The entries, if they are in the memory of this process and nowhere else (clause 8). With it a push or an ack
    /// without durability is one step on its caller's thread.
    fn memory(&self) -> Option<&dyn Memory> {
        None
    }

    /// The smallest key that is not below `from`. Stores override this to read no value.
    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, Self::Error> {
        Ok(self.seek(from)?.map(|(key, _)| key))
    }

    /// How many entries there are, and which are the first and the last. Stores override this to read no value.
    fn summary(&self) -> Result<Summary, Self::Error> {
        let mut summary = Summary::default();
        let mut from = key::entry(0).to_vec();
        while let Some((found, value)) = self.seek(&from)? {
            let Ok(key::Key::Entry(id)) = key::Key::parse(&found) else { break };
            summary.count += 1;
            summary.bytes += value.len() as u64;
            summary.first.get_or_insert(id);
            summary.last = Some(id);
            let Some(next) = id.checked_add(1) else { break };
            from = key::entry(next).to_vec();
        }
        Ok(summary)
    }

    /// What kind of failure an error is. The default, [`FailureKind::Unknown`], poisons the queue.
    fn classify(&self, error: &Self::Error) -> FailureKind {
        let _ = error;
        FailureKind::Unknown
    }

    /// The operating system's part of an error, if it has one.
    fn io_details(&self, error: &Self::Error) -> Option<IoDetails> {
        let _ = error;
        None
    }

    /// Whether a commit that fails leaves either all of its operations or none visible.
    fn is_atomic(&self) -> bool {
        false
    }

    /// What opening the store found and decided.
    fn recovery(&self) -> RecoveryReport {
        RecoveryReport { clean: true, ..RecoveryReport::default() }
    }

    /// Entries that a read gave up since the last call of this, because what is stored of them is damaged. Such a read
    /// answers that there is no such entry.
    fn take_lost(&self) -> Vec<LostEntry> {
        Vec::new()
    }

    /// Figures about the store's own resources.
    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    /// Makes everything durable, says so on disk and gives back locks and files. Called once, when no commit is
    /// under way; every later call of any method fails.
    fn close(&self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Entries that are in memory only; see [`Store::memory`] and clause 8.
pub trait Memory: Send + Sync {
    /// A copy of the value of entry `id`.
    fn get(&self, id: u64) -> Option<Vec<u8>>;

    /// Stores `value` as entry `id`, replacing what is there.
    fn put(&self, id: u64, value: Vec<u8>);

    /// Removes entry `id` and hands its value out.
    fn remove(&self, id: u64) -> Option<Vec<u8>>;
}

/// Entries in a store, without their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of entries.
    pub count: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// The lowest id.
    pub first: Option<u64>,
    /// The highest id.
    pub last: Option<u64>,
}

/// What a failed store call means for the queue above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// No room on the device or in the quota. The store stays usable.
    NoSpace,
    /// The call was refused before anything was written. The store stays usable.
    NotWritten,
    /// Another owner holds the store.
    Locked,
    /// Stored bytes do not check.
    Corrupt,
    /// The store was written by a newer format.
    NewerFormat,
    /// The path is not a directory.
    NotADirectory,
    /// The store was closed.
    Closed,
    /// Anything else: what is on disk is not known, so nothing more is accepted.
    Unknown,
}

/// The operating system's part of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoDetails {
    /// The operation that failed, as the manual names it (`fdatasync`, `pwrite`, `openat`, ...).
    pub operation: &'static str,
    /// The file or directory it was applied to.
    pub path: PathBuf,
    /// The error number, if the system gave one.
    pub errno: Option<i32>,
}

/// What opening a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The last life ended with a clean close (or the store is new).
    pub clean: bool,
    /// Bytes of a torn tail that were never acknowledged and are not delivered.
    pub dropped_tail_bytes: u64,
    /// Stretches that were vouched for and do not read valid, and segments that are missing.
    pub damage: Vec<Damage>,
}

/// One stretch of damage: nothing in it can be delivered; everything around it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the queue directory.
    pub file: String,
    /// Where the stretch begins, in bytes from the start of the file.
    pub offset: u64,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// The lowest id that may have been in it.
    pub first_id: Option<u64>,
    /// The highest id that may have been in it.
    pub last_id: Option<u64>,
    /// What is wrong with it, in a few words.
    pub reason: &'static str,
}

/// An entry that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostEntry {
    /// Its id.
    pub id: u64,
    /// Bytes of its value.
    pub bytes: u64,
}

/// Figures about a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Bytes of entries that are not acked.
    pub live_bytes: u64,
    /// Bytes the store's files take, spares included.
    pub disk_bytes: u64,
    /// Files in use, spares not included.
    pub segments: u64,
    /// Calls of fsync or fdatasync on the file that is written, a store's own between commits included.
    pub syncs: u64,
    /// Bytes that were written again so that the files they lay in could go.
    pub rewritten_bytes: u64,
    /// Stretches that were found damaged, at open and since.
    pub damaged: u64,
}
