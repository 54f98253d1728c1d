//! The writing side: commits, and what happens when the disk says no.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

use super::ahead;
use super::batch::{self, Batch};
use super::disk::Disk;
use super::error::LogError;
use super::footer;
use super::frame::HEAD;
use super::handles::Handles;
use super::index::Index;
use super::reader::{self, Reader};
use super::segment::{self, Identity, SMALLEST, Segment};
use super::spare::Pool;
use crate::store::Op;

/// Segments let go by one commit.
const FREED_PER_COMMIT: usize = 16;
/// Memory for a loaded value beside its bytes, at most.
const LOADED_ENTRY: u64 = 64;

/// The first failure that made the log stop.
struct Poison {
    operation: &'static str,
    path: PathBuf,
    errno: Option<i32>,
    text: String,
}

/// What the holder of the turn owns.
pub(super) struct Turn {
    batch: Batch,
    /// The wanted size of segments.
    pub(super) size: u64,
    pub(super) opened: Instant,
}

/// The segment that is written to.
pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    pub(super) end: u64,
    /// The end at the time the last successful fsync was issued: the mark of the next batch.
    pub(super) synced: u64,
    /// Nothing more is written here, whatever room there is.
    pub(super) sealed: bool,
}

impl Active {
    /// Whether a batch fits, with room left for the batch that ends a life and for the footer.
    fn fits(&self, length: usize) -> bool {
        let size = self.segment.header.size;
        let room = footer::seal_at(size).saturating_sub(footer::room(size));
        !self.sealed && self.end + (length + HEAD) as u64 <= room
    }
}

#[derive(Default)]
pub(super) struct Append {
    pub(super) active: Option<Active>,
    pub(super) rotating: bool,
    scratch: Batch,
}

/// Everything the log is, shared with its thread.
pub(super) struct Core {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) handles: Arc<Handles>,
    pub(super) identity: Identity,
    pub(super) pool: Pool,
    pub(super) index: RwLock<Index>,
    pub(super) reader: Reader,
    pub(super) largest: u64,
    turn: Mutex<Turn>,
    pub(super) append: Mutex<Append>,
    poison: OnceLock<Poison>,
    closed: AtomicBool,
    syncs: AtomicU64,
}

impl Core {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        handles: Arc<Handles>,
        identity: Identity,
        index: Index,
        pool: Pool,
        largest: u64,
    ) -> Self {
        Self {
            disk,
            handles,
            identity,
            pool,
            index: RwLock::new(index),
            reader: Reader::default(),
            largest,
            turn: Mutex::new(Turn { batch: Batch::default(), size: SMALLEST, opened: Instant::now() }),
            append: Mutex::new(Append::default()),
            poison: OnceLock::new(),
            closed: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
        }
    }

    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Reads every value into memory, in at most `limit` bytes.
    pub(super) fn load(&self, limit: u64) -> Result<(), LogError> {
        let mut index = self.index.write();
        let bytes = reader::live_bytes(self.disk.as_ref(), &index)?;
        let count = index.summary().count;
        let needed = count.saturating_mul(LOADED_ENTRY).saturating_add(bytes);
        if needed > limit {
            return Err(LogError::NeedsMemory { needed, limit });
        }
        let mut from = Some(0);
        while let Some(id) = from.and_then(|from| index.entry_from(from)) {
            if let Some(loc) = index.find(id, ahead::MOST)
                && let Some(segment) = index.segment(loc.segment).map(Arc::clone)
            {
                match self.reader.read(self.disk.as_ref(), &segment, &loc, id) {
                    Ok(value) => drop(index.loaded.insert(id, value.into_boxed_slice())),
                    // One bad entry is an error of its delivery, not of the open.
                    Err(LogError::Corrupt { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            from = id.checked_add(1);
        }
        Ok(())
    }

    /// Refuses every call after the end.
    pub(super) fn check_open(&self) -> Result<(), LogError> {
        if self.closed.load(Ordering::Acquire) { Err(LogError::Closed) } else { Ok(()) }
    }

    /// Refuses writing after the end and after a failure that left the disk unknown.
    fn check_writable(&self) -> Result<(), LogError> {
        self.check_open()?;
        self.check_poison()
    }

    /// Refuses writing after a failure that left the disk unknown.
    pub(super) fn check_poison(&self) -> Result<(), LogError> {
        match self.poison.get() {
            None => Ok(()),
            Some(poison) => Err(LogError::Poisoned {
                operation: poison.operation,
                path: poison.path.clone(),
                errno: poison.errno,
                text: poison.text.clone(),
            }),
        }
    }

    /// Stops the log for good if this failure leaves the disk unknown.
    pub(super) fn poison_by(&self, error: &LogError) {
        if let LogError::Io { operation, path, source } = error
            && error.poisons()
        {
            // Only the first one is kept.
            let _ = self.poison.set(Poison {
                operation,
                path: path.clone(),
                errno: source.raw_os_error(),
                text: source.to_string(),
            });
        }
    }

    pub(super) fn failed(&self, error: LogError) -> LogError {
        self.poison_by(&error);
        error
    }

    pub(super) fn path_of(&self, segment: &Segment) -> PathBuf {
        self.disk.path().join(segment::name(segment.number()))
    }

    /// Writes `ops`, makes them durable if asked, and then visible.
    pub(super) fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LogError> {
        self.check_writable()?;
        batch::check(ops)?;
        if ops.is_empty() && !durable {
            return Ok(());
        }
        let mut turn = self.turn.lock();
        self.check_writable()?;
        self.commit_in(&mut turn, ops, durable, true)?;
        Ok(())
    }

    /// Writes `ops` without durability if nothing stands in the way right now.
    pub(super) fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, LogError> {
        self.check_writable()?;
        let others = batch::check(ops)?;
        // Keys other than entries carry no place in the index, so their commits stay one after the other.
        let turn = if others { self.turn.try_lock() } else { None };
        if others && turn.is_none() {
            return Ok(false);
        }
        let Some(mut append) = self.append.try_lock() else { return Ok(false) };
        // ORDER: closing raises its flag before it takes this lock, so nothing follows the closing batch.
        self.check_writable()?;
        let Append { active: Some(active), rotating: false, scratch } = &mut *append else {
            return Ok(false);
        };
        scratch.build(ops, &self.index.read(), &[]);
        if scratch.is_empty() {
            return Ok(true);
        }
        if !active.fits(scratch.bytes().len()) {
            return Ok(false);
        }
        self.write(active, scratch, true)?;
        scratch.trim();
        let number = active.segment.number();
        drop(append);
        self.look_for_drained(number);
        Ok(true)
    }

    /// The commit of whoever holds the turn; false if it needs another segment and may not take one.
    fn commit_in(
        &self,
        turn: &mut Turn,
        ops: &[Op<'_>],
        durable: bool,
        rotate: bool,
    ) -> Result<bool, LogError> {
        let number = self.append.lock().active.as_ref().map_or(0, |active| active.segment.number());
        {
            let index = self.index.read();
            let frees = index.candidates(number, FREED_PER_COMMIT);
            turn.batch.build(ops, &index, &frees);
        }
        if !turn.batch.is_empty() {
            let at = loop {
                let length = turn.batch.bytes().len();
                {
                    let mut append = self.append.lock();
                    if let Some(active) = append.active.as_mut().filter(|active| active.fits(length)) {
                        break self.write(active, &mut turn.batch, !durable)?;
                    }
                }
                if !rotate {
                    return Ok(false);
                }
                self.rotate(turn, length)?;
            };
            if durable {
                self.sync()?;
                self.index.write().apply_batch(at.0, at.1, turn.batch.bytes());
            }
            turn.batch.trim();
        } else if durable {
            self.sync()?;
        }
        self.release();
        Ok(true)
    }

    /// Appends a batch and says where it lies. With `apply` it is visible before the next one can be written.
    fn write(&self, active: &mut Active, batch: &mut Batch, apply: bool) -> Result<(u64, u64), LogError> {
        let (segment, at) = (&active.segment, active.end);
        batch.seal(active.synced, segment.seed, at);
        if let Err(error) = segment.file.write_all_at(batch.bytes(), at) {
            // CRASH: parts of the batch may be on disk, so nothing is ever written behind or over them; the next open
            // record puts the live end before them.
            active.sealed = true;
            return Err(self.failed(LogError::write("pwrite", self.path_of(segment), error)));
        }
        active.end += batch.bytes().len() as u64;
        segment.set_written(active.end);
        if apply {
            self.index.write().apply_batch(segment.number(), at, batch.bytes());
        }
        Ok((segment.number(), at))
    }

    /// Makes everything written durable. Only the holder of the turn calls it.
    pub(super) fn sync(&self) -> Result<(), LogError> {
        let (segment, issued) = match &self.append.lock().active {
            Some(active) if active.end > active.synced => (Arc::clone(&active.segment), active.end),
            _ => return Ok(()),
        };
        self.syncs.fetch_add(1, Ordering::Relaxed);
        // ORDER: the append lock is free meanwhile, so others write on; the mark stays where the end was before.
        if let Err(error) = segment.file.sync_data() {
            return Err(self.failed(LogError::io("fdatasync", self.path_of(&segment), error)));
        }
        if let Some(active) = &mut self.append.lock().active {
            active.synced = issued;
        }
        Ok(())
    }

    /// Hands segments whose release is durable to the thread that unlinks them, and looks for more to let go.
    fn release(&self) {
        let (number, synced) = match &self.append.lock().active {
            Some(active) => (active.segment.number(), active.synced),
            None => return,
        };
        if !self.index.read().freed.is_empty() {
            let released = self.index.write().vouch(number, synced);
            self.pool.release(released);
        }
        self.look_for_drained(number);
    }

    fn look_for_drained(&self, active: u64) {
        let waiting = {
            let index = self.index.read();
            !index.freed.is_empty() || !index.candidates(active, 1).is_empty()
        };
        if waiting {
            self.pool.tidy_later();
        }
    }

    /// An idle log's own commit, which lets drained segments go. Never waits for anybody.
    pub(super) fn tidy(&self) {
        if self.check_writable().is_err() {
            return;
        }
        match self.turn.try_lock() {
            // A failure is remembered where it matters; without room the next commit does it.
            Some(mut turn) => drop(self.commit_in(&mut turn, &[], true, false)),
            None => self.pool.tidy_later(),
        }
    }

    /// Unlinks what nobody needs any more, at the end.
    pub(super) fn clear_away(&self) -> Result<(), LogError> {
        // Where nothing was ever appended nothing is changed, and no thread made spares.
        if self.append.lock().active.is_none() {
            return Ok(());
        }
        let (names, segments) = self.pool.drain();
        self.unlink(&names, &segments)
    }

    /// Removes files. Only then may acks of entries in them be forgotten.
    pub(super) fn unlink(&self, names: &[String], segments: &[u64]) -> Result<(), LogError> {
        if names.is_empty() && segments.is_empty() {
            return Ok(());
        }
        // The directory may be what failed to sync: a second sync of it would prove nothing.
        self.check_poison()?;
        for name in names.iter().cloned().chain(segments.iter().map(|number| segment::name(*number))) {
            // A name that stays is no loss: no open record lists it, so a later open clears it away.
            let _ = self.disk.unlink(&name);
            self.handles.forget(&name);
        }
        if let Err(error) = self.disk.sync_dir() {
            return Err(self.failed(LogError::io("fsync", self.disk.path().to_path_buf(), error)));
        }
        if !segments.is_empty() {
            let mut index = self.index.write();
            for number in segments {
                index.remove_part(*number);
            }
        }
        Ok(())
    }

    /// Ends the writing: everything durable, and the closing batch behind it.
    pub(super) fn finish(&self) -> Result<(), LogError> {
        let mut turn = self.turn.lock();
        let writable = self.check_writable();
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(LogError::Closed);
        }
        writable?;
        if self.append.lock().active.is_none() {
            return Ok(());
        }
        while self.has_drained() {
            match self.commit_in(&mut turn, &[], true, true) {
                Ok(_) => {}
                // Without room the segments stay for the next open to let go.
                Err(LogError::NoSpace { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        self.sync()?;
        self.release();
        turn.batch.build_closing();
        let sealed = self.append.lock().active.as_ref().is_some_and(|active| active.sealed);
        if sealed && let Err(error) = self.rotate(&mut turn, HEAD) {
            return match error {
                // Nothing is lost; the log only cannot say that it was closed well.
                LogError::NoSpace { .. } => Ok(()),
                other => Err(other),
            };
        }
        let written = match &mut self.append.lock().active {
            Some(active) => self.write(active, &mut turn.batch, false).and_then(|_| self.end_life(active)),
            None => return Ok(()),
        };
        match written {
            Ok(()) => self.sync(),
            Err(LogError::NoSpace { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn has_drained(&self) -> bool {
        let active = self.append.lock().active.as_ref().map_or(0, |active| active.segment.number());
        !self.index.read().candidates(active, 1).is_empty()
    }

    /// Whether a failure stopped the log.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Returns when no commit is under way. Later ones are refused if the log was stopped.
    pub(super) fn wait_for_turn(&self) {
        drop(self.turn.lock());
    }

    /// Lets go of every file. Called when the thread has ended.
    pub(super) fn abandon(&self) {
        self.closed.store(true, Ordering::Release);
        *self.append.lock() = Append::default();
        *self.index.write() = Index::default();
        self.reader.clear();
        self.handles.clear();
    }
}
