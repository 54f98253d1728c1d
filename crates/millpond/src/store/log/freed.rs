//! Letting a segment go: one frame that says so and carries on what the segment held for others.

use super::bytes::Cursor;
use super::held::{self, Carried, HeldFor};

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

/// At most the bytes of the payload for a segment that holds this for others.
pub(super) fn bytes_bound(held: &HeldFor) -> u64 {
    8 + held::bytes_bound(held)
}

/// Writes the payload: generation, then what is held.
pub(super) fn encode(buffer: &mut Vec<u8>, generation: u64, held: &HeldFor) {
    buffer.extend_from_slice(&generation.to_le_bytes());
    held::encode(buffer, held);
}

/// The generation of the segment that goes and what goes on.
pub(super) fn decode(payload: &[u8]) -> Option<(u64, Vec<Carried>)> {
    let mut cursor = Cursor::new(payload);
    Some((cursor.u64()?, held::decode(&mut cursor)?))
}
