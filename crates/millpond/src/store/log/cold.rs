//! What a segment holds that is not written to any more: which entries live, and about where they lie.
//!
//! Exact places are found by reading: a block is what one read takes in.

use super::dense::Dense;
use super::footer::{Block, Blocks, Footer, STEP};
use super::idset::IdSet;

/// The live entries of a segment, in well under a byte for each.
#[derive(Debug, Default)]
pub(super) struct Cold {
    pub(super) live: IdSet,
    blocks: Vec<Block>,
    /// Where the frames end.
    end: u64,
    bytes: u64,
    /// `bytes` is an estimate: which of several values of different length are gone is only known by reading.
    estimated: bool,
    /// The length of every value, if they are all of one.
    uniform: Option<u32>,
    /// No block has an id that lies between those of another.
    ordered: bool,
}

/// Where to look for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: u64,
    /// The entry begins before this.
    pub(super) to: u64,
    /// The block it begins in ends here.
    pub(super) end: u64,
    /// What is worth reading along with it ends here.
    pub(super) ahead: u64,
}

/// Entries whose bytes are only known by reading: those with an id from `low` to `high` in the stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread {
    pub(super) stretch: Stretch,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Cold {
    fn new(live: IdSet, blocks: Vec<Block>, bytes: u64, end: u64) -> Self {
        let shortest = blocks.iter().map(|block| block.shortest).min();
        let longest = blocks.iter().map(|block| block.longest).max();
        let uniform = shortest.filter(|_| shortest == longest);
        let ordered = blocks.windows(2).all(|pair| pair[0].high < pair[1].low);
        Self { live, blocks, end, bytes, estimated: false, uniform, ordered }
    }

    /// What a segment held that was written to until now.
    pub(super) fn of(dense: &Dense, end: u64) -> Self {
        let mut live = IdSet::default();
        let mut run: Option<(u64, u64)> = None;
        let mut places = Vec::with_capacity(super::bytes::usize_of(dense.len));
        for (id, place) in dense.iter() {
            match &mut run {
                Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
                _ => {
                    if let Some((first, last)) = run.replace((id, id)) {
                        live.insert(first, last);
                    }
                }
            }
            places.push((place.offset(), id, place.len));
        }
        if let Some((first, last)) = run {
            live.insert(first, last);
        }
        places.sort_unstable();
        let mut blocks = Blocks::default();
        for (offset, id, len) in places {
            blocks.add(offset, id, len);
        }
        Self::new(live, blocks.blocks, dense.bytes, end)
    }

    pub(super) fn of_footer(footer: &Footer) -> Self {
        let mut live = IdSet::default();
        for &(first, last) in &footer.live {
            live.insert(first, last);
        }
        Self::new(live, footer.blocks.clone(), footer.live_bytes, footer.end)
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Bytes of the values that live, exact or nearly so.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes ids out and calls `gone` for every run of them.
    pub(super) fn remove(&mut self, first: u64, last: u64, gone: impl FnMut(u64, u64)) {
        let before = self.live.len();
        self.live.remove(first, last, gone);
        let removed = before - self.live.len();
        if self.live.is_empty() {
            // Nothing is looked for here any more.
            *self = Self { end: self.end, ..Self::default() };
        } else if let Some(len) = self.uniform {
            self.bytes -= removed * u64::from(len);
        } else if removed > 0 {
            let share = u128::from(self.bytes) * u128::from(removed) / u128::from(before);
            self.bytes -= u64::try_from(share).unwrap_or(self.bytes);
            self.estimated = true;
        }
    }

    fn end_of(&self, place: usize) -> u64 {
        self.blocks.get(place + 1).map_or(self.end, |next| next.offset)
    }

    fn stretch(&self, place: usize, most: u64) -> Stretch {
        let from = self.blocks[place].offset;
        let end = self.end_of(place);
        let to = end.min(from + STEP);
        let behind = self.blocks[place..].partition_point(|block| block.offset <= from + most);
        // The last of these may end too far behind; then the one before it ends where it begins.
        let last = place + behind - 1;
        let ahead = match self.end_of(last) {
            end if end <= from + most || last == place => end,
            _ => self.blocks[last].offset,
        };
        Stretch { from, to, end, ahead }
    }

    /// Where a live entry may lie, the likeliest place first. What is read along ends `most` bytes behind at the latest,
    /// unless one entry goes farther.
    pub(super) fn places_of(&self, id: u64, most: u64) -> impl Iterator<Item = Stretch> + '_ {
        let upto = if self.ordered {
            self.blocks.partition_point(|block| block.low <= id)
        } else {
            self.blocks.len()
        };
        let from = if self.ordered { upto.saturating_sub(1) } else { 0 };
        let inside = move |place: &usize| (self.blocks[*place].low..=self.blocks[*place].high).contains(&id);
        // Of two frames of one id the later one counts.
        (from..upto).rev().filter(inside).map(move |place| self.stretch(place, most))
    }

    /// The bytes of the values that are known without reading, and what has to be read for the rest, the last first.
    pub(super) fn exact_bytes(&self) -> (u64, Vec<Unread>) {
        if !self.estimated {
            return (self.bytes, Vec::new());
        }
        let (mut known, mut unknown) = (0, Vec::new());
        for (place, block) in self.blocks.iter().enumerate().rev() {
            let count = self.live.count(block.low, block.high);
            if count == 0 {
            } else if self.ordered && count == u64::from(block.count) {
                known += block.bytes;
            } else if self.ordered && block.shortest == block.longest {
                known += count * u64::from(block.shortest);
            } else {
                unknown.push(Unread { stretch: self.stretch(place, 0), low: block.low, high: block.high });
            }
        }
        (known, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::log::dense::Place;

    #[test]
    fn a_backlog_takes_less_than_a_byte_for_each_entry() {
        let (count, len) = (400_000, 101);
        let mut dense = Dense::default();
        for id in 1..=count {
            dense.insert(id, Place::new(16_384 + id * 152, len));
        }
        let mut cold = Cold::of(&dense, 16_384 + (count + 1) * 152);
        let size = |cold: &Cold| (cold.live.bytes() + cold.blocks.capacity() * size_of::<Block>()) as u64;
        assert!(size(&cold) < cold.live.len() / 4, "{}", size(&cold));
        for id in (1..=count).step_by(2) {
            cold.remove(id, id, |_, _| ());
        }
        assert_eq!((cold.live.len(), cold.bytes()), (count / 2, count / 2 * u64::from(len)));
        assert!(size(&cold) < cold.live.len(), "{}", size(&cold));
    }

    #[test]
    fn a_stretch_holds_its_entry_and_what_is_read_along_is_bounded() {
        let mut dense = Dense::default();
        let mut offset = 16_384;
        for id in 1..=3000_u64 {
            let len = if id % 700 == 0 { 3_000_000 } else { u32::try_from(id % 50 * 100).unwrap() };
            dense.insert(id, Place::new(offset, len));
            offset += crate::store::log::frame::span(len.into());
        }
        let cold = Cold::of(&dense, offset);
        for (id, place) in dense.iter() {
            let found: Vec<_> = cold.places_of(id, 1 << 20).collect();
            let [stretch] = found[..] else { panic!("{id}: {found:?}") };
            assert!(stretch.from <= place.offset() && place.offset() < stretch.to, "{id}");
            assert!(stretch.to <= stretch.end && stretch.end <= stretch.ahead, "{id}: {stretch:?}");
            assert!(
                stretch.ahead <= stretch.from + (1 << 20) || stretch.ahead == stretch.end,
                "{id}: {stretch:?}"
            );
        }
    }
}
