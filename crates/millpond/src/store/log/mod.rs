//! The segmented log: the default store on disk.
//!
//! One append and one `fdatasync` per durable commit, in files that were filled beforehand. `docs/format.md` has
//! every byte and the argument for each verdict of recovery.
//!
//! Locks are taken in this order and never the other way: `turn` (one commit at a time), `append` (the place of the
//! next byte; never held across an fsync), `index`, then one of the pool of spares, the read-ahead
//! chunk and the open files (the last two in this order).

mod ahead;
mod batch;
mod bytes;
mod cold;
mod compaction;
mod core;
mod dense;
mod disk;
mod error;
mod footer;
mod footing;
mod frame;
mod freed;
mod handles;
mod held;
mod holder;
mod idset;
mod index;
mod life;
mod lost;
mod open_record;
mod part;
mod pieces;
pub(crate) mod planted;
mod progress;
mod quarantine;
mod reader;
mod real_disk;
mod recover;
mod repair;
mod reserve;
mod rotation;
mod salvage;
mod scan;
mod segment;
mod spans;
mod spare;
#[cfg(feature = "testing")]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tidy;
mod trace;
mod verdict;
mod verify;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use disk::{Disk, DiskFile, DiskLock};
pub use error::LogError;
pub use progress::OpenProgress;
pub use repair::{Repaired, repair};
pub use verify::{Verified, verify};

use self::core::Core;
use super::{FailureKind, IoDetails, LostEntry, Op, Pair, RecoveryReport, Store, StoreStats, Summary};
use crate::key::Key;
use handles::Handles;
use holder::Holder;
use index::Loc;
use spare::Pool;

/// The largest size a segment may be asked to have.
const LARGEST: u64 = 1 << 30;
const DEFAULT_SEGMENT: u64 = 64 << 20;

/// How a log is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// The size of the largest segment, in bytes; a commit that is larger gets a segment of its own. Values outside
    /// 64 KiB to 1 GiB are moved to the nearer bound.
    pub segment_bytes: u64,
    /// Refuse to open with [`LogError::Corrupt`] where anything is damaged, instead of delivering the rest. Includes
    /// `verify`.
    pub strict: bool,
    /// Read every segment at open and check every payload. Without it an open reads footers where there are good ones, a
    /// payload is checked when it is read: what does not check is given up and reported then, and with `strict` it is an
    /// error of that call.
    pub verify: bool,
    /// Read every value at open and keep it in memory until it is settled, in at most this many bytes (values, and 64 bytes
    /// for each). A backlog that needs more fails to open with [`LogError::NeedsMemory`], which says how much. Without it
    /// values are read when they are delivered, and the memory for a backlog is well under a byte for each entry.
    pub eager: Option<u64>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { segment_bytes: DEFAULT_SEGMENT, strict: false, verify: false, eager: None }
    }
}

/// A segmented log in one directory.
pub struct LogStore {
    holder: Arc<Holder>,
    report: RecoveryReport,
}

impl fmt::Debug for LogStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStore").field("path", &self.core().disk.path()).finish_non_exhaustive()
    }
}

impl LogStore {
    /// Opens the log in this directory with the default options, making the directory if it is missing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LogError> {
        Self::open_with(path, LogOptions::default())
    }

    /// Opens the log in this directory, making the directory if it is missing.
    pub fn open_with(path: impl AsRef<Path>, options: LogOptions) -> Result<Self, LogError> {
        let disk = real_disk::RealDisk::open(path.as_ref())?;
        Self::open_on(Arc::new(disk), options)
    }

    /// Opens the log in this directory, and says about once a second how far it has come, if it takes longer than that:
    /// after an unclean end, or with `verify`, segments are read from end to end.
    pub fn open_telling(
        path: impl AsRef<Path>,
        options: LogOptions,
        mut tell: impl FnMut(OpenProgress),
    ) -> Result<Self, LogError> {
        let disk = real_disk::RealDisk::open(path.as_ref())?;
        Self::open_as(Arc::new(disk), options, false, &mut tell)
    }

    /// Opens the log on any disk.
    pub fn open_on(disk: Arc<dyn Disk>, options: LogOptions) -> Result<Self, LogError> {
        Self::open_as(disk, options, false, &mut |_| ())
    }

    /// With `by_hand` no thread is started: see `testing`.
    fn open_as(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        by_hand: bool,
        tell: &mut dyn FnMut(OpenProgress),
    ) -> Result<Self, LogError> {
        let path = disk.path().to_path_buf();
        let mut lock = disk.lock();
        if matches!(lock, Ok(DiskLock::Taken { .. })) && holder::give_way(disk.as_ref()) {
            lock = disk.lock();
        }
        let lock = match lock {
            Ok(DiskLock::Held(guard)) => guard,
            Ok(DiskLock::Taken { pid }) => return Err(LogError::Locked { path, pid }),
            Err(error) => return Err(LogError::write("flock", path, error)),
        };
        let (found, handles) = {
            let handles = Arc::new(Handles::new(Arc::clone(&disk)));
            (recover::recover(disk.as_ref(), &handles, &options, tell)?, handles)
        };
        let pool = Pool::new(found.next, found.leftovers, by_hand);
        let damage = found.report.damage.clone();
        let core = Core::new(disk, handles, found.identity, found.index, pool, &options, damage);
        core.turn.lock().unused = found.unused;
        if let Some(limit) = options.eager {
            core.load(limit)?;
        }
        Ok(Self { holder: Holder::new(core, lock, by_hand), report: found.report })
    }

    /// Gives up everything that the open found damaged, durably.
    fn give_up_all(&self) -> Result<(), LogError> {
        self.holder.start()?;
        self.core().give_up_all()
    }

    /// Gives up an entry that cannot be read because it is damaged, so that the next one is delivered.
    fn salvage(&self, error: LogError, id: u64, loc: &Loc) -> Result<(), LogError> {
        // A read that fails is an error of that call and says nothing about what is stored.
        if self.core().strict || !matches!(error, LogError::Corrupt { .. }) {
            return Err(error);
        }
        if self.holder.start().is_err() || self.core().give_up(id, loc).is_err() {
            return Err(error);
        }
        Ok(())
    }

    fn core(&self) -> &Core {
        &self.holder.core
    }
}

impl Drop for LogStore {
    fn drop(&mut self) {
        self.holder.end(|_| ());
    }
}

impl Store for LogStore {
    type Error = LogError;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LogError> {
        loop {
            self.core().check_open()?;
            let (loc, segment, id) = {
                let index = self.core().index.read();
                match Key::parse(key) {
                    Ok(Key::Entry(id)) => {
                        if let Some(value) = index.loaded.get(&id) {
                            return Ok(Some(value.to_vec()));
                        }
                        let Some(loc) = index.find(id, ahead::MOST) else { return Ok(None) };
                        let Some(segment) = index.segment(loc.segment) else { return Ok(None) };
                        (loc, Arc::clone(segment), id)
                    }
                    // A key of no known kind was never stored.
                    _ => return Ok(index.kv.get(key).cloned()),
                }
            };
            match self.core().reader.read(self.core().disk.as_ref(), &segment, &loc, id) {
                Ok(value) => return Ok(Some(value)),
                // The file may have gone because the entry was settled meanwhile; then its place tells.
                Err(error) if self.core().index.read().find(id, ahead::MOST).as_ref() == Some(&loc) => {
                    self.salvage(error, id, &loc)?;
                }
                Err(_) => {}
            }
        }
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, LogError> {
        while let Some(key) = self.next_key(from)? {
            // An entry may be settled between the two steps; then the next one is the answer.
            if let Some(value) = self.get(&key)? {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, LogError> {
        loop {
            self.core().check_open()?;
            let Some(key) = self.core().index.read().key_upto(upto) else { return Ok(None) };
            if let Some(value) = self.get(&key)? {
                return Ok(Some((key, value)));
            }
        }
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LogError> {
        if !ops.is_empty() {
            self.holder.start()?;
        }
        self.core().commit(ops, durable)
    }

    fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, LogError> {
        self.core().try_commit(ops)
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, LogError> {
        self.core().check_open()?;
        Ok(self.core().index.read().key_from(from))
    }

    fn summary(&self) -> Result<Summary, LogError> {
        let core = self.core();
        core.check_open()?;
        let index = core.index.read();
        let bytes = reader::live_bytes(core.disk.as_ref(), &index)?;
        Ok(Summary { bytes, ..index.summary() })
    }

    fn classify(&self, error: &LogError) -> FailureKind {
        error.classify()
    }

    fn io_details(&self, error: &LogError) -> Option<IoDetails> {
        error.io_details()
    }

    /// Operations of a commit become visible together, and only when it succeeded.
    fn is_atomic(&self) -> bool {
        true
    }

    fn recovery(&self) -> RecoveryReport {
        let mut report = self.report.clone();
        report.damage.extend_from_slice(&self.core().salvaged.lock().damage);
        report
    }

    fn take_lost(&self) -> Vec<LostEntry> {
        std::mem::take(&mut self.core().salvaged.lock().entries)
    }

    fn stats(&self) -> StoreStats {
        let index = self.core().index.read();
        StoreStats {
            live_bytes: index.live_bytes(),
            disk_bytes: index.file_bytes().saturating_add(self.core().pool.bytes()),
            segments: index.parts.len() as u64,
            syncs: self.core().syncs(),
            rewritten_bytes: self.core().rewritten.load(Ordering::Relaxed),
            damaged: (self.report.damage.len() + self.core().salvaged.lock().damage.len()) as u64,
        }
    }

    fn close(&self) -> Result<(), LogError> {
        let result = self.core().finish();
        if matches!(result, Err(LogError::Closed)) {
            return result;
        }
        self.holder.end(|core| result.and_then(|()| core.clear_away()))
    }
}
