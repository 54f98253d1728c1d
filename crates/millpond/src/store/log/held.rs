//! What a segment says of entries in other segments: it must be carried on when the segment goes.
//!
//! ```text
//! for each segment: number (8), pieces of settled ids (4), lost stretches (4), the pieces, begin and end (8 + 8) of each
//! ```

use std::collections::BTreeMap;

use super::bytes::Cursor;
use super::frame;
use super::idset::IdSet;
use super::pieces;

/// What is held for one segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Entries of it that are settled.
    pub(super) ids: IdSet,
    /// Stretches of it that are given up: nothing in them is damage any more.
    pub(super) lost: Vec<(u64, u64)>,
}

/// By the number of the segment the entries lie in.
pub(super) type HeldFor = BTreeMap<u64, Held>;

/// More ids than any segment has room for.
const TOO_MANY: u64 = 1 << 29;

/// The same, read from disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    pub(super) segment: u64,
    pub(super) ids: IdSet,
    pub(super) lost: Vec<(u64, u64)>,
    /// What it names cannot have been stored.
    impossible: bool,
}

impl Carried {
    pub(super) fn new(segment: u64) -> Self {
        Self { segment, ..Self::default() }
    }

    /// Adds ids. Memory is bounded by the bytes that name them: the length of a range is looked at first.
    pub(super) fn add(&mut self, first: u64, last: u64) {
        if last.saturating_sub(first) >= TOO_MANY - self.ids.len().min(TOO_MANY) {
            self.impossible = true;
        } else {
            self.ids.insert(first, last);
        }
    }

    /// Whether a segment of this size can have stored that many entries. A set that names more was not written by a log.
    pub(super) fn fits(&self, size: u64) -> bool {
        !self.impossible && self.ids.len() <= size / frame::HEAD as u64
    }
}

/// At most how many bytes [`encode`] writes.
pub(super) fn bytes_bound(held: &HeldFor) -> u64 {
    held.values().map(|held| 16 + held.ids.pieces_bound() + 16 * held.lost.len() as u64).sum()
}

fn count(buffer: &mut [u8], number: usize) {
    // INVARIANT: a payload is below 4 GiB, so what it holds can be counted in 32 bits.
    buffer.copy_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

/// Appends everything held.
pub(super) fn encode(buffer: &mut Vec<u8>, held: &HeldFor) {
    for (target, held) in held {
        buffer.extend_from_slice(&target.to_le_bytes());
        let at = buffer.len();
        buffer.extend_from_slice(&[0; 8]);
        let pieces = pieces::encode(buffer, &held.ids.ranges());
        count(&mut buffer[at..at + 4], pieces as usize);
        count(&mut buffer[at + 4..at + 8], held.lost.len());
        for (from, to) in &held.lost {
            buffer.extend_from_slice(&from.to_le_bytes());
            buffer.extend_from_slice(&to.to_le_bytes());
        }
    }
}

/// Reads what is held, up to the end.
pub(super) fn decode(cursor: &mut Cursor<'_>) -> Option<Vec<Carried>> {
    let mut all = Vec::new();
    while let Some(segment) = cursor.u64() {
        let mut carried = Carried::new(segment);
        let (pieces, lost) = (cursor.u32()?, cursor.u32()?);
        for _ in 0..pieces {
            pieces::decode(cursor, |first, last| carried.add(first, last))?;
        }
        for _ in 0..lost {
            carried.lost.push((cursor.u64()?, cursor.u64()?));
        }
        all.push(carried);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back() {
        let mut held = HeldFor::new();
        for id in [1, 2, 3, 9, 11, 13, 15, 70_000] {
            held.entry(4).or_default().ids.insert(id, id);
        }
        held.entry(9).or_default().lost.push((4096, 8192));
        let mut bytes = Vec::new();
        encode(&mut bytes, &held);
        assert!(bytes.len() as u64 <= bytes_bound(&held));
        let found = decode(&mut Cursor::new(&bytes)).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].ids.ranges(), [(1, 3), (9, 9), (11, 11), (13, 13), (15, 15), (70_000, 70_000)]);
        assert_eq!((found[1].segment, found[1].lost.as_slice()), (9, &[(4096, 8192)][..]));
        assert!(
            (1..bytes.len())
                .all(|cut| decode(&mut Cursor::new(&bytes[..cut])).is_none_or(|all| all.len() < 2))
        );
    }

    #[test]
    fn a_set_larger_than_its_segment_is_none() {
        let of = |ids: &[(u64, u64)]| {
            let mut carried = Carried::new(1);
            for (first, last) in ids {
                carried.add(*first, *last);
            }
            carried
        };
        assert!(of(&[(1, 10)]).fits(240) && !of(&[(1, 11)]).fits(240));
        assert!(!of(&[(0, u64::MAX)]).fits(1 << 40) && !of(&[(1, 6), (9, 13)]).fits(240));
    }

    #[test]
    fn a_bitmap_takes_no_more_memory_than_disk() {
        let mut held = HeldFor::new();
        for id in 0..200_000 {
            held.entry(4).or_default().ids.insert(id * 2, id * 2);
        }
        let mut bytes = Vec::new();
        encode(&mut bytes, &held);
        let found = decode(&mut Cursor::new(&bytes)).unwrap();
        assert!(found[0].ids.bytes() < bytes.len() * 2, "{} {}", found[0].ids.bytes(), bytes.len());
    }
}
