//! Letting a segment go: one frame that says so and carries on what the segment held for others.

use std::collections::BTreeMap;

use super::bytes::Cursor;
use super::ranges::Ranges;

/// A frame that lets a segment go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freed {
    /// The segment that goes.
    pub(super) segment: u64,
    pub(super) generation: u64,
    /// The segment the frame lies in, where it begins and where it ends.
    pub(super) holder: u64,
    pub(super) offset: u64,
    pub(super) end: u64,
}

/// Bytes of the payload for a segment that holds these acks.
pub(super) fn bytes_of(held: &BTreeMap<u64, Ranges>) -> u64 {
    8 + held.values().map(|ranges| 16 + 16 * ranges.len() as u64).sum::<u64>()
}

/// Writes the payload: generation, then for each target its number, the count of its ranges, and these.
pub(super) fn encode(buffer: &mut Vec<u8>, generation: u64, held: &BTreeMap<u64, Ranges>) {
    buffer.extend_from_slice(&generation.to_le_bytes());
    for (target, ranges) in held {
        buffer.extend_from_slice(&target.to_le_bytes());
        buffer.extend_from_slice(&(ranges.len() as u64).to_le_bytes());
        for (first, last) in ranges.iter() {
            buffer.extend_from_slice(&first.to_le_bytes());
            buffer.extend_from_slice(&last.to_le_bytes());
        }
    }
}

/// An ack that goes on: the target segment and an inclusive range of ids.
pub(super) type Forward = (u64, u64, u64);

/// The generation of the segment that goes and the acks that go on.
pub(super) fn decode(payload: &[u8]) -> Option<(u64, Vec<Forward>)> {
    let mut cursor = Cursor::new(payload);
    let generation = cursor.u64()?;
    let mut forwards = Vec::new();
    while let Some(target) = cursor.u64() {
        for _ in 0..cursor.u64()? {
            forwards.push((target, cursor.u64()?, cursor.u64()?));
        }
    }
    Some((generation, forwards))
}
