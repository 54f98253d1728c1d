//! Reading entries: one read-ahead chunk, so that draining costs few system calls.

use parking_lot::Mutex;

use super::bytes::usize_of;
use super::disk::Disk;
use super::error::LogError;
use super::frame::{self, HEAD};
use super::index::Loc;
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
    fn frame(&self, segment: u64, loc: Loc) -> Option<&[u8]> {
        let from = usize_of(loc.offset().checked_sub(self.start)?);
        let length = HEAD + loc.len as usize;
        (self.segment == segment).then(|| self.bytes.get(from..from + length)).flatten()
    }
}

/// Reads entries.
#[derive(Default)]
pub(super) struct Reader {
    chunk: Mutex<Chunk>,
}

impl Reader {
    /// The value of entry `id`, whose frame lies at `loc`.
    pub(super) fn read(
        &self,
        disk: &dyn Disk,
        from: &Segment,
        loc: Loc,
        id: u64,
    ) -> Result<Vec<u8>, LogError> {
        let path = || disk.path().join(segment::name(from.number()));
        let failed = |error| LogError::io("pread", path(), error);
        let length = HEAD + loc.len as usize;
        if let Some(mut guard) = self.chunk.try_lock() {
            let chunk = &mut *guard;
            let in_order = chunk.segment == from.number() && loc.offset().wrapping_sub(chunk.next) < NEAR;
            if in_order && chunk.frame(from.number(), loc).is_none() {
                // INVARIANT: nothing behind the written end is read, so a chunk never holds bytes that change.
                let room = from.written().saturating_sub(loc.offset());
                let want = usize_of(room.min(AHEAD.max(length as u64)));
                chunk.bytes.resize(want, 0);
                let got = from.file.read_at(&mut chunk.bytes, loc.offset()).map_err(failed)?;
                chunk.bytes.truncate(got);
                chunk.bytes.shrink_to(usize_of(AHEAD));
                chunk.start = loc.offset();
            } else if chunk.segment != from.number() {
                chunk.bytes.clear();
            }
            chunk.segment = from.number();
            chunk.next = loc.offset() + frame::span(u64::from(loc.len));
            let value = chunk.frame(from.number(), loc).and_then(|bytes| check(bytes, from.seed, loc, id));
            if let Some(value) = value {
                return Ok(value.to_vec());
            }
        }
        let mut bytes = vec![0; length];
        let got = from.file.read_at(&mut bytes, loc.offset()).map_err(failed)?;
        if let Some(value) =
            bytes.get(..got).and_then(|bytes| check(bytes, from.seed, loc, id)).map(<[u8]>::len)
        {
            return Ok(without_head(bytes, value));
        }
        // What the cache gives does not check; the device has the last word.
        let got = from.file.read_uncached_at(&mut bytes, loc.offset()).map_err(failed)?;
        match bytes.get(..got).and_then(|bytes| check(bytes, from.seed, loc, id)).map(<[u8]>::len) {
            Some(value) => Ok(without_head(bytes, value)),
            None => Err(LogError::Corrupt {
                path: path(),
                offset: loc.offset(),
                reason: "an entry does not match its checksum",
            }),
        }
    }

    /// Forgets what was read ahead.
    pub(super) fn clear(&self) {
        *self.chunk.lock() = Chunk::default();
    }
}

fn without_head(mut frame: Vec<u8>, value: usize) -> Vec<u8> {
    frame.copy_within(HEAD..HEAD + value, 0);
    frame.truncate(value);
    frame
}

/// The value in this frame, if every part of the frame is what the index says.
fn check(bytes: &[u8], seed: u32, loc: Loc, id: u64) -> Option<&[u8]> {
    let head = frame::parse(bytes, seed, loc.offset())?;
    let value = bytes.get(HEAD..HEAD + loc.len as usize)?;
    let expected = head.kind == frame::ENTRY && head.id == id && head.len == loc.len;
    (expected && frame::payload_crc(value) == head.crc).then_some(value)
}
