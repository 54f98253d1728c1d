//! Frames: what a segment is made of. Every number in this file is on disk; none is ever reused.

use super::bytes::{get_u32, get_u64, usize_of};

/// Bytes of a frame header.
pub(super) const HEAD: usize = 24;
/// Frames begin at multiples of this.
pub(super) const ALIGN: u64 = 8;

/// Begins a batch; the id field is the mark. Zero is no kind, so zeros are never a frame.
pub(super) const BATCH: u8 = 1;
/// An entry: the id field is its id, the payload its value.
pub(super) const ENTRY: u8 = 2;
/// Settled entries: the id field is the segment they lie in, or [`OWN_SEGMENT`]; the payload is pieces of ids.
pub(super) const ACK: u8 = 3;
/// Another key and its value: key length (4 bytes), key, value.
pub(super) const KV_PUT: u8 = 4;
/// Another key that is no more: the payload is the key.
pub(super) const KV_DELETE: u8 = 5;
/// A segment nobody needs, with what it held for others; the id field is its number.
pub(super) const FREED: u8 = 6;
/// A stretch of a segment that is given up; the id field is the number of the segment.
pub(super) const LOST: u8 = 7;
/// What a segment holds; the id field is its number. Not part of what the segment holds: nothing lies behind it.
pub(super) const FOOTER: u8 = 8;

/// Kinds with this bit may be skipped by a version that does not know them; any other unknown kind is refused.
pub(super) const MAY_IGNORE: u8 = 0x80;
/// Kinds with both of these bits may be skipped, but the segment that holds one stays as long as its version is unknown.
pub(super) const PINS: u8 = 0xc0;
/// Flag of a batch: the log was closed cleanly behind it.
pub(super) const CLOSED: u8 = 0x01;
/// Flags with these bits may be ignored where they are not known.
const IGNORABLE_FLAGS: u8 = 0xf0;

/// In an ack: the segment the ack itself lies in.
pub(super) const OWN_SEGMENT: u64 = 0;

/// A frame header taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) len: u32,
    pub(super) crc: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Which queue of the log the frame belongs to. This version knows number 0 only.
    pub(super) queue: u16,
    pub(super) id: u64,
}

impl Head {
    /// Bytes from this frame to the next.
    pub(super) fn span(&self) -> u64 {
        span(u64::from(self.len))
    }

    /// Whether the segment that holds this frame must stay until a version that knows the kind has seen it.
    pub(super) fn pins(&self) -> bool {
        self.kind & PINS == PINS
    }

    /// What this version must understand and does not, if anything.
    pub(super) fn unknown(&self) -> Option<(&'static str, u32)> {
        let known_flags = if self.kind == BATCH { CLOSED } else { 0 };
        let flags = self.flags & !known_flags & !IGNORABLE_FLAGS;
        if self.kind & MAY_IGNORE != 0 {
            None
        } else if !(BATCH..=FOOTER).contains(&self.kind) {
            Some(("frame kind", u32::from(self.kind)))
        } else if flags != 0 {
            Some(("frame flags", u32::from(flags)))
        } else {
            (self.queue != 0).then_some(("queue number", u32::from(self.queue)))
        }
    }
}

/// Bytes a frame with this payload takes.
pub(super) fn span(len: u64) -> u64 {
    HEAD as u64 + len.next_multiple_of(ALIGN)
}

/// The checksum of a header: it knows the life of the file (`seed`) and its own place, so that a frame of another
/// life, queue or offset never passes.
fn head_crc(seed: u32, offset: u64, head: &[u8]) -> u32 {
    let mut bytes = [0; HEAD + 4];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    bytes[8..].copy_from_slice(&head[4..HEAD]);
    crc32c::crc32c_append(seed, &bytes)
}

/// The checksum of a payload. The header holds it under its own checksum, so it needs no seed.
pub(super) fn payload_crc(payload: &[u8]) -> u32 {
    crc32c::crc32c(payload)
}

/// Starts a frame in `buffer`; the payload follows, then [`finish`].
pub(super) fn begin(buffer: &mut Vec<u8>, kind: u8, flags: u8, id: u64) -> usize {
    let start = buffer.len();
    let mut head = [0; HEAD];
    head[12] = kind;
    head[13] = flags;
    head[16..].copy_from_slice(&id.to_le_bytes());
    buffer.extend_from_slice(&head);
    start
}

/// Ends the frame that began at `start`. Its header checksum is left to [`seal`].
pub(super) fn finish(buffer: &mut Vec<u8>, start: usize) {
    let payload = start + HEAD;
    // INVARIANT: the writer refused everything above `u32::MAX` before it began.
    let len = u32::try_from(buffer.len() - payload).unwrap_or(u32::MAX);
    let crc = payload_crc(&buffer[payload..]);
    buffer[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    buffer[start + 8..start + 12].copy_from_slice(&crc.to_le_bytes());
    buffer.resize(buffer.len().next_multiple_of(usize_of(ALIGN)), 0);
}

/// Gives one frame, which lies at `offset`, its header checksum.
pub(super) fn seal_one(bytes: &mut [u8], seed: u32, offset: u64) {
    let crc = head_crc(seed, offset, &bytes[..HEAD]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Gives a batch its mark and every frame in it its header checksum, for this place in this life of a file.
pub(super) fn seal(batch: &mut [u8], mark: u64, seed: u32, base: u64) {
    batch[16..HEAD].copy_from_slice(&mark.to_le_bytes());
    let mut at = 0;
    while at + HEAD <= batch.len() {
        let step = usize_of(span(u64::from(get_u32(batch, at + 4))));
        seal_one(&mut batch[at..], seed, base + at as u64);
        at += step;
    }
}

/// The fields of a header, unchecked.
pub(super) fn fields(head: &[u8]) -> Head {
    Head {
        len: get_u32(head, 4),
        crc: get_u32(head, 8),
        kind: head[12],
        flags: head[13],
        queue: u16::from_le_bytes([head[14], head[15]]),
        id: get_u64(head, 16),
    }
}

/// The header at `offset`, if it belongs there.
pub(super) fn parse(head: &[u8], seed: u32, offset: u64) -> Option<Head> {
    let valid = head.len() >= HEAD && head[12] != 0 && get_u32(head, 0) == head_crc(seed, offset, head);
    valid.then(|| fields(head))
}
