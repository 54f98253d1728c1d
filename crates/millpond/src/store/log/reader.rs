//! Reading entries, with one read-ahead chunk for the segment that is written to and one for those that are only read.

use parking_lot::Mutex;

use super::ahead::{Ahead, Look};
use super::bytes::usize_of;
use super::cold::{Stretch, Unread};
use super::dense::Place;
use super::disk::Disk;
use super::error::LogError;
use super::frame::{self, HEAD};
use super::idset::IdSet;
use super::index::{Index, Loc};
use super::part::Found;
use super::planted::{self, Fault};
use super::segment::{self, Segment};

const AHEAD: u64 = 256 * 1024;
/// A read this close behind the last one counts as going on in order.
const NEAR: u64 = 64 * 1024;

#[derive(Default)]
struct Chunk {
    segment: u64,
    start: u64,
    bytes: Vec<u8>,
    /// Where the last read ended.
    next: u64,
}

impl Chunk {
    /// The frame, if all of it lies in this chunk.
    fn frame(&self, segment: u64, place: Place) -> Option<&[u8]> {
        let from = usize_of(place.offset().checked_sub(self.start)?);
        let length = HEAD + place.len as usize;
        (self.segment == segment).then(|| self.bytes.get(from..from + length)).flatten()
    }
}

/// Reads entries.
#[derive(Default)]
pub(super) struct Reader {
    chunk: Mutex<Chunk>,
    ahead: Mutex<Ahead>,
}

impl Reader {
    /// The value of entry `id`, which lies at `loc`.
    pub(super) fn read(
        &self,
        disk: &dyn Disk,
        from: &Segment,
        loc: &Loc,
        id: u64,
    ) -> Result<Vec<u8>, LogError> {
        match &loc.found {
            Found::At(place) => self.read_at(disk, from, *place, id),
            Found::In(stretches) => match self.ahead.try_lock() {
                Some(mut ahead) => read_in(disk, from, &mut ahead, stretches, &loc.torn, id),
                None => read_in(disk, from, &mut Ahead::default(), stretches, &loc.torn, id),
            },
        }
    }

    fn read_at(&self, disk: &dyn Disk, from: &Segment, place: Place, id: u64) -> Result<Vec<u8>, LogError> {
        let failed = |error| LogError::io("pread", path(disk, from), error);
        let length = HEAD + place.len as usize;
        if let Some(mut guard) = self.chunk.try_lock() {
            let chunk = &mut *guard;
            let in_order = chunk.segment == from.number() && place.offset().wrapping_sub(chunk.next) < NEAR;
            if in_order && chunk.frame(from.number(), place).is_none() {
                // INVARIANT: nothing behind the written end is read, so a chunk never holds bytes that change.
                let room = from.written().saturating_sub(place.offset());
                let want = usize_of(room.min(AHEAD.max(length as u64)));
                chunk.bytes.resize(want, 0);
                let got = from.file.read_at(&mut chunk.bytes, place.offset()).map_err(failed)?;
                chunk.bytes.truncate(got);
                chunk.bytes.shrink_to(usize_of(AHEAD));
                chunk.start = place.offset();
            } else if chunk.segment != from.number() {
                chunk.bytes.clear();
            }
            chunk.segment = from.number();
            chunk.next = place.offset() + frame::span(u64::from(place.len));
            let value =
                chunk.frame(from.number(), place).and_then(|bytes| check(bytes, from.seed, place, id));
            if let Some(value) = value {
                return Ok(value.to_vec());
            }
        }
        read_one(disk, from, place, id)
    }

    /// Forgets what was read ahead.
    pub(super) fn clear(&self) {
        *self.chunk.lock() = Chunk::default();
        self.ahead.lock().clear();
    }
}

/// Bytes of the values of all live entries.
pub(super) fn live_bytes(disk: &dyn Disk, index: &Index) -> Result<u64, LogError> {
    let (mut bytes, unknown) = index.exact_bytes();
    let mut ahead = Ahead::default();
    for (part, stretches) in unknown {
        let failed = |error| LogError::io("pread", path(disk, &part.segment), error);
        // An entry that was stored again lies in two stretches, and the later one counts.
        let mut counted = IdSet::default();
        for Unread { stretch, low, high } in stretches {
            ahead.read(&part.segment, &stretch, &part.about.torn, true).map_err(failed)?;
            for (id, len) in ahead.lengths(&stretch) {
                if (low..=high).contains(&id) && part.contains(id) && !counted.contains(id) {
                    counted.insert(id, id);
                    bytes += u64::from(len);
                }
            }
        }
    }
    Ok(bytes)
}

fn path(disk: &dyn Disk, of: &Segment) -> std::path::PathBuf {
    disk.path().join(segment::name(of.number()))
}

fn damaged(disk: &dyn Disk, of: &Segment, offset: u64) -> LogError {
    LogError::Corrupt { path: path(disk, of), offset, reason: "an entry does not match its checksum" }
}

/// Looks for an entry in the first of `stretches` that has it.
fn read_in(
    disk: &dyn Disk,
    from: &Segment,
    ahead: &mut Ahead,
    stretches: &[Stretch],
    torn: &[(u64, u64)],
    id: u64,
) -> Result<Vec<u8>, LogError> {
    let failed = |error| LogError::io("pread", path(disk, from), error);
    let mut bad = None;
    // What the cache gives may not check; the device has the last word.
    for cached in [true, false] {
        for stretch in stretches {
            if !cached || !ahead.covers(from.number(), stretch) {
                ahead.read(from, stretch, torn, cached).map_err(failed)?;
            }
            match ahead.look(id, stretch) {
                Look::Value(value) => return Ok(value.to_vec()),
                Look::Beyond(offset, len) => return read_one(disk, from, Place::new(offset, len), id),
                Look::Damaged(offset) => bad = Some(offset),
                Look::None => {}
            }
        }
    }
    ahead.clear();
    let somewhere = stretches.first().map_or(0, |stretch| stretch.from);
    Err(damaged(disk, from, bad.unwrap_or(somewhere)))
}

/// Reads exactly one entry.
fn read_one(disk: &dyn Disk, from: &Segment, place: Place, id: u64) -> Result<Vec<u8>, LogError> {
    let failed = |error| LogError::io("pread", path(disk, from), error);
    let mut bytes = vec![0; HEAD + place.len as usize];
    let got = from.file.read_at(&mut bytes, place.offset()).map_err(failed)?;
    if let Some(value) =
        bytes.get(..got).and_then(|bytes| check(bytes, from.seed, place, id)).map(<[u8]>::len)
    {
        return Ok(without_head(bytes, value));
    }
    // What the cache gives does not check; the device has the last word.
    let got = from.file.read_uncached_at(&mut bytes, place.offset()).map_err(failed)?;
    match bytes.get(..got).and_then(|bytes| check(bytes, from.seed, place, id)).map(<[u8]>::len) {
        Some(value) => Ok(without_head(bytes, value)),
        None => Err(damaged(disk, from, place.offset())),
    }
}

fn without_head(mut frame: Vec<u8>, value: usize) -> Vec<u8> {
    frame.copy_within(HEAD..HEAD + value, 0);
    frame.truncate(value);
    frame
}

/// The value in this frame, if every part of the frame is what the index says.
fn check(bytes: &[u8], seed: u32, place: Place, id: u64) -> Option<&[u8]> {
    let head = frame::parse(bytes, seed, place.offset())?;
    let value = bytes.get(HEAD..HEAD + place.len as usize)?;
    let expected = head.kind == frame::ENTRY && head.id == id && head.len == place.len;
    let checks = frame::payload_crc(value) == head.crc || planted::is(Fault::IgnorePayloadChecksum);
    (expected && checks).then_some(value)
}
