//! The writing side: commits, and what happens when the disk says no.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

use super::ahead;
use super::batch::{self, Batch, Kinds, is_entry_put};
use super::disk::Disk;
use super::error::LogError;
use super::footer;
use super::frame::HEAD;
use super::handles::Handles;
use super::index::Index;
use super::planted::{self, Fault};
use super::reader::{self, Reader};
use super::reserve::need;
use super::salvage::{GivenUp, Salvaged};
use super::segment::{self, Identity, SMALLEST, Segment};
use super::spare::{Need, Pool, Released};
use super::{LARGEST, LogOptions};
use crate::store::{Damage, Op};

/// Segments let go by one commit.
pub(super) const FREED_PER_COMMIT: usize = 16;
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
    pub(super) batch: Batch,
    /// Damage that was found at open and is not given up yet.
    pub(super) damage: Vec<Damage>,
    /// Stretches that the next batch gives up.
    pub(super) given_up: Vec<GivenUp>,
    /// The last segment of an earlier open, if it holds no frame.
    pub(super) unused: Option<u64>,
    /// The segment that compaction looked at last, with the entries that lived in it.
    pub(super) watched: Option<(u64, u64)>,
    /// A segment that could not be rewritten.
    pub(super) unreadable: u64,
    /// Where the log ended when the thread last looked whether it is idle.
    pub(super) seen: (u64, u64),
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
    pub(super) fn fits(&self, length: usize) -> bool {
        let size = self.segment.header.size;
        let room = footer::seal_at(size).saturating_sub(footer::room(size));
        !self.sealed && self.end + (length + HEAD) as u64 <= room
    }

    /// Whether the next segment will be needed soon.
    fn is_filling(&self) -> bool {
        self.end > self.segment.header.size / 4 * 3
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
    /// What is damaged is never given up.
    pub(super) strict: bool,
    pub(super) salvaged: Mutex<Salvaged>,
    pub(super) turn: Mutex<Turn>,
    pub(super) append: Mutex<Append>,
    poison: OnceLock<Poison>,
    closed: AtomicBool,
    syncs: AtomicU64,
    /// Bytes that were stored again.
    pub(super) rewritten: AtomicU64,
}

impl Core {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        handles: Arc<Handles>,
        identity: Identity,
        index: Index,
        pool: Pool,
        options: &LogOptions,
        damage: Vec<Damage>,
    ) -> Self {
        let turn = Turn {
            batch: Batch::default(),
            damage,
            given_up: Vec::new(),
            unused: None,
            watched: None,
            unreadable: 0,
            seen: (0, 0),
            size: SMALLEST,
            opened: Instant::now(),
        };
        Self {
            disk,
            handles,
            identity,
            pool,
            index: RwLock::new(index),
            reader: Reader::default(),
            largest: options.segment_bytes.clamp(SMALLEST, LARGEST),
            strict: options.strict,
            salvaged: Mutex::default(),
            turn: Mutex::new(turn),
            append: Mutex::new(Append::default()),
            poison: OnceLock::new(),
            closed: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            rewritten: AtomicU64::new(0),
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
    pub(super) fn check_writable(&self) -> Result<(), LogError> {
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
        // Opening made durable what it found, and before the first append no thread makes files.
        if ops.is_empty() && self.append.lock().active.is_none() {
            return Ok(());
        }
        self.commit_in(&mut turn, ops, durable, true)?;
        Ok(())
    }

    /// Writes `ops` without durability if nothing stands in the way right now.
    pub(super) fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, LogError> {
        self.check_writable()?;
        let Kinds { others, puts } = batch::check(ops)?;
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
        scratch.build(ops, &self.index.read(), &[], &[]);
        if scratch.is_empty() {
            return Ok(true);
        }
        if !active.fits(scratch.bytes().len()) || !self.pool.meets(need(true, puts)) {
            return Ok(false);
        }
        self.write(active, scratch, true)?;
        scratch.trim();
        let (number, filling) = (active.segment.number(), active.is_filling());
        drop(append);
        self.look_around(number, filling);
        Ok(true)
    }

    /// The commit of whoever holds the turn; false if it needs another segment and may not take one.
    pub(super) fn commit_in(
        &self,
        turn: &mut Turn,
        ops: &[Op<'_>],
        durable: bool,
        rotate: bool,
    ) -> Result<bool, LogError> {
        self.give_up_found(turn)?;
        let need = need(!ops.is_empty(), ops.iter().any(is_entry_put));
        let at = loop {
            self.build(turn, ops);
            if turn.batch.is_empty() {
                if durable {
                    self.sync()?;
                }
                break None;
            }
            let length = turn.batch.bytes().len();
            let fits = {
                let mut append = self.append.lock();
                let active = append.active.as_mut().filter(|active| active.fits(length));
                match active {
                    // Pushes leave the reserve alone, and a segment from the last file acknowledges nothing yet.
                    Some(active) if self.pool.meets(need) => {
                        break Some(self.write(active, &mut turn.batch, !durable)?);
                    }
                    other => other.is_some(),
                }
            };
            if !rotate {
                return Ok(false);
            }
            if fits {
                self.restock(turn, need)?;
            } else {
                self.rotate_with_room(turn, length, need == Need::Reserve)?;
            }
        };
        if let Some(at) = at
            && durable
        {
            self.sync()?;
            self.index.write().apply_batch(at.0, at.1, turn.batch.bytes());
        }
        if at.is_some() {
            self.gave_up(turn);
        }
        turn.batch.trim();
        self.release();
        Ok(true)
    }

    pub(super) fn build(&self, turn: &mut Turn, ops: &[Op<'_>]) {
        let number = self.append.lock().active.as_ref().map_or(0, |active| active.segment.number());
        let index = self.index.read();
        turn.batch.build(ops, &index, &index.candidates(number, FREED_PER_COMMIT), &turn.given_up);
    }

    /// Appends a batch and says where it lies. With `apply` it is visible before the next one can be written.
    pub(super) fn write(
        &self,
        active: &mut Active,
        batch: &mut Batch,
        apply: bool,
    ) -> Result<(u64, u64), LogError> {
        let (segment, at) = (&active.segment, active.end);
        let mark = if planted::is(Fault::VouchForUnsynced) { at } else { active.synced };
        batch.seal(mark, segment.seed, at);
        if let Err(error) = segment.file.write_all_at(batch.bytes(), at) {
            // CRASH: parts of the batch may be on disk, so nothing is ever written behind or over them; the next open
            // record puts the live end before them.
            active.sealed = !planted::is(Fault::AppendBehindTornTail);
            active.end += if active.sealed { 0 } else { batch.bytes().len() as u64 };
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
        let skips = planted::is(Fault::SkipDataSync) && !self.append.lock().rotating;
        let synced = if skips { Ok(()) } else { segment.file.sync_data() };
        let retries = planted::is(Fault::RetryFailedSync);
        if let Err(error) =
            synced.or_else(|error| if retries { segment.file.sync_data() } else { Err(error) })
        {
            return Err(self.failed(LogError::io("fdatasync", self.path_of(&segment), error)));
        }
        if let Some(active) = &mut self.append.lock().active {
            active.synced = issued;
        }
        Ok(())
    }

    /// Hands segments whose release is durable to the thread that clears them away, and looks for more to let go.
    pub(super) fn release(&self) {
        let (number, synced, filling) = match &self.append.lock().active {
            Some(active) => (active.segment.number(), active.synced, active.is_filling()),
            None => return,
        };
        if !self.index.read().freed.is_empty() {
            let mut index = self.index.write();
            let upto = if planted::is(Fault::UnlinkBeforeFreedIsDurable) { u64::MAX } else { synced };
            let vouched = index.vouch(number, upto);
            let size = |number: &u64| index.parts.get(number).map(|part| part.segment.header.size);
            let released =
                vouched.iter().filter_map(|number| Some(Released { number: *number, size: size(number)? }));
            self.pool.release(released.collect());
        }
        self.look_around(number, filling);
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
        if sealed && let Err(error) = self.rotate(&mut turn, HEAD, false) {
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

    pub(super) fn has_drained(&self) -> bool {
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
