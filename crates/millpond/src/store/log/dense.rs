//! Where each entry of the segment that is written to lies.

use std::collections::BTreeMap;

use super::bytes::usize_of;
use super::frame;

/// Where an entry's frame lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset in units of the frame alignment.
    unit: u32,
    /// Bytes of the value.
    pub(super) len: u32,
}

impl Place {
    pub(super) fn new(offset: u64, len: u32) -> Self {
        Self { unit: u32::try_from(offset / frame::ALIGN).unwrap_or(u32::MAX), len }
    }

    pub(super) fn offset(self) -> u64 {
        u64::from(self.unit) * frame::ALIGN
    }
}

/// 64 neighbouring ids.
struct Chunk {
    live: u64,
    places: [Place; 64],
}

impl Default for Chunk {
    fn default() -> Self {
        Self { live: 0, places: [Place::default(); 64] }
    }
}

/// The bits of `first..=last` that fall into this chunk; the range must touch it.
fn mask(chunk: u64, first: u64, last: u64) -> u64 {
    let low = if first >> 6 == chunk { first & 63 } else { 0 };
    let high = if last >> 6 == chunk { last & 63 } else { 63 };
    (u64::MAX << low) & (u64::MAX >> (63 - high))
}

fn slot_of(id: u64) -> usize {
    usize_of(id & 63)
}

/// The live entries of one segment, each with its place: 8 bytes for each where ids are consecutive.
#[derive(Default)]
pub(super) struct Dense {
    chunks: BTreeMap<u64, Box<Chunk>>,
    pub(super) len: u64,
    pub(super) bytes: u64,
}

impl Dense {
    pub(super) fn get(&self, id: u64) -> Option<Place> {
        let chunk = self.chunks.get(&(id >> 6))?;
        (chunk.live & (1 << (id & 63)) != 0).then(|| chunk.places[slot_of(id)])
    }

    /// Adds an entry. Commits become visible in any order; the log's order decides which of two values stays.
    pub(super) fn insert(&mut self, id: u64, place: Place) {
        let chunk = self.chunks.entry(id >> 6).or_default();
        let (slot, bit) = (slot_of(id), 1 << (id & 63));
        if chunk.live & bit != 0 {
            let old = chunk.places[slot];
            if old.unit >= place.unit {
                return;
            }
            self.len -= 1;
            self.bytes -= u64::from(old.len);
        }
        chunk.live |= bit;
        chunk.places[slot] = place;
        self.len += 1;
        self.bytes += u64::from(place.len);
    }

    /// Takes out what lies in `first..=last` and was stored before offset `before`, and calls `gone` for each.
    pub(super) fn remove(&mut self, first: u64, last: u64, before: u64, mut gone: impl FnMut(u64)) {
        let mut emptied = Vec::new();
        for (number, chunk) in self.chunks.range_mut(first >> 6..=last >> 6) {
            let mut bits = chunk.live & mask(*number, first, last);
            while bits != 0 {
                let slot = bits.trailing_zeros();
                bits &= bits - 1;
                let place = chunk.places[slot as usize];
                if place.offset() < before {
                    chunk.live &= !(1 << slot);
                    self.len -= 1;
                    self.bytes -= u64::from(place.len);
                    gone((number << 6) + u64::from(slot));
                }
            }
            if chunk.live == 0 {
                emptied.push(*number);
            }
        }
        for number in emptied {
            self.chunks.remove(&number);
        }
    }

    /// The lowest id that is not below `id`.
    pub(super) fn next(&self, id: u64) -> Option<u64> {
        self.chunks.range(id >> 6..).find_map(|(number, chunk)| {
            let bits = chunk.live & mask(*number, id, u64::MAX);
            (bits != 0).then(|| (number << 6) + u64::from(bits.trailing_zeros()))
        })
    }

    /// The highest id that is not above `id`.
    pub(super) fn previous(&self, id: u64) -> Option<u64> {
        self.chunks.range(..=id >> 6).rev().find_map(|(number, chunk)| {
            let bits = chunk.live & mask(*number, 0, id);
            (bits != 0).then(|| (number << 6) + u64::from(bits.ilog2()))
        })
    }

    /// All entries by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Place)> + '_ {
        self.chunks.iter().flat_map(|(number, chunk)| {
            let slots = (0..64_u64).filter(|slot| chunk.live & (1 << slot) != 0);
            slots.map(move |slot| ((number << 6) + slot, chunk.places[usize_of(slot)]))
        })
    }
}
