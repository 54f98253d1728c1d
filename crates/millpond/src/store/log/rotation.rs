//! The change from one segment to the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::core::{Active, Append, Core, Turn};
use super::error::LogError;
use super::footer::{self, Seal};
use super::frame::HEAD;
use super::open_record::{self, Living, OpenRecord};
use super::planted::{self, Fault};
use super::segment::{self, RECORD_AT, SMALLEST, Segment};

/// A segment that fills within this time makes the next one larger.
const FAST: Duration = Duration::from_millis(500);
/// The largest open record.
const LARGEST_RECORD: usize = 1 << 30;

impl Core {
    /// Puts the next segment into use, with room for `need` bytes. With `spared` it leaves the reserve whole.
    pub(super) fn rotate(&self, turn: &mut Turn, need: usize, spared: bool) -> Result<(), LogError> {
        let _rotating = Rotating::begin(&self.append);
        let old = self.append.lock().active.as_ref().map(|active| (active.segment.number(), active.end));
        let mut record = self.record(old).encode();
        if record.len() > LARGEST_RECORD {
            return Err(LogError::TooLarge { bytes: record.len() as u64 });
        }
        let frames = open_record::frames_at(record.len() as u64);
        let spare = self.pool.take(self, footer::size_for(frames + (need + HEAD) as u64), spared)?;
        // It may have been made before the thread's next sync failed.
        self.check_poison()?;
        // Nor does anybody find what is written to a file whose name was taken away.
        let name = segment::name(spare.number());
        if let Err(error) = self.disk.open(&name) {
            return Err(LogError::io("openat", self.disk.path().join(name), error));
        }
        if let Some(active) = &mut self.append.lock().active
            && let Err(error) = self.end_life(active)
        {
            self.pool.discard(&spare);
            return Err(error);
        }
        // CRASH: a segment is durable before its successor exists, so only the last one can have a doubtful tail.
        let skips = planted::is(Fault::SkipSyncAtRotation);
        if let Err(error) = if skips { Ok(()) } else { self.sync() } {
            self.pool.discard(&spare);
            return Err(error);
        }
        // CRASH: once any part of an open record may be on disk, what the old segment says behind the live end given
        // there would not be believed: nothing more goes into it, even if this fails. `end_life` has seen to it.
        for at in [RECORD_AT, open_record::second_at(record.len() as u64)] {
            open_record::seal(&mut record, spare.number(), spare.seed, at);
            if let Err(error) = spare.file.write_all_at(&record, at) {
                self.pool.discard(&spare);
                return Err(self.failed(LogError::write("pwrite", self.path_of(&spare), error)));
            }
        }
        spare.set_written(frames);
        let about = Living {
            number: spare.number(),
            generation: spare.header.generation,
            size: spare.header.size,
            ..Living::default()
        };
        self.put_into_use(old, &spare, about);
        let base = turn.size.max(spare.header.size.min(self.largest));
        let by_pace = if old.is_none() {
            turn.size
        } else if turn.opened.elapsed() < FAST {
            base * 2
        } else {
            turn.size / 2
        };
        turn.size = by_pace.max(self.index.read().live_bytes() / 2).clamp(SMALLEST, self.largest);
        turn.opened = Instant::now();
        self.append.lock().active = Some(Active { segment: spare, end: frames, synced: 0, sealed: false });
        self.pool.set_size(turn.size, self.floor(record.len() as u64));
        Ok(())
    }

    /// Ends what is written to the active segment: behind its last frame the footer, at the end of the file the seal.
    ///
    /// A footer spares a later open the reading, and is left out where there is no room for it.
    pub(super) fn end_life(&self, active: &mut Active) -> Result<(), LogError> {
        if active.sealed {
            return Ok(());
        }
        active.sealed = true;
        let segment = &active.segment;
        self.freeze(segment.number(), active.end);
        let (number, at) = (segment.number(), footer::seal_at(segment.header.size));
        let Some(bytes) = self.index.read().footer(number, active.end) else { return Ok(()) };
        let seal = Seal { offset: active.end, length: bytes.len() as u64 };
        if seal.offset + seal.length > at {
            return Ok(());
        }
        let seal = seal.encode(number, segment.seed, at);
        for (bytes, at) in [(bytes.as_slice(), active.end), (seal.as_slice(), at)] {
            match segment.file.write_all_at(bytes, at) {
                Ok(()) => {}
                Err(error) => {
                    return match self.failed(LogError::write("pwrite", self.path_of(segment), error)) {
                        LogError::NoSpace { .. } => Ok(()),
                        error => Err(error),
                    };
                }
            }
        }
        Ok(())
    }

    /// Keeps less of a segment that is not written to any more. Nobody writes meanwhile.
    fn freeze(&self, number: u64, end: u64) {
        let cold = self.index.read().frozen(number, end);
        if let Some(cold) = cold {
            self.index.write().freeze(number, cold);
        }
    }

    /// From now on the old segment is only read, and the new one is part of the log.
    fn put_into_use(&self, old: Option<(u64, u64)>, spare: &Arc<Segment>, about: Living) {
        if let Some((number, end)) = old {
            self.freeze(number, end);
        }
        let mut index = self.index.write();
        if let Some((number, end)) = old
            && let Some(part) = index.parts.get_mut(&number)
        {
            // Readers that hold the descriptor it was written through keep it as long as they need it.
            let file = self.handles.file(segment::name(number));
            part.segment = Arc::new(Segment::new(part.segment.header, file, end));
        }
        index.begin_record();
        index.add_part(Arc::clone(spare), about);
    }

    /// What the next segment says of all others.
    fn record(&self, old: Option<(u64, u64)>) -> OpenRecord {
        let mut index = self.index.write();
        if let Some((number, end)) = old
            && let Some(part) = index.parts.get_mut(&number)
        {
            part.about.live_end = end;
            part.about.mark = end;
        }
        // Frames that let segments go lie in segments that are durable by now, so they are vouched for.
        let living =
            index.parts.values().filter(|part| !part.leaving).map(|part| part.about.clone()).collect();
        OpenRecord { highest: index.highest, living, kv: index.kv.clone(), unknown: None }
    }
}

/// Says that a rotation is under way, until it is dropped.
struct Rotating<'a> {
    append: &'a Mutex<Append>,
}

impl<'a> Rotating<'a> {
    fn begin(append: &'a Mutex<Append>) -> Self {
        append.lock().rotating = true;
        Self { append }
    }
}

impl Drop for Rotating<'_> {
    fn drop(&mut self) {
        self.append.lock().rotating = false;
    }
}
