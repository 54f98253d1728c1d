//! One stretch of a segment that is only read: its bytes and the entries in it, so that a backlog is drained in few
//! large reads.

use std::io;

use super::bytes::usize_of;
use super::cold::Stretch;
use super::frame::{self, ALIGN, HEAD};
use super::segment::Segment;

/// The most that is read at once, unless one entry is larger.
pub(super) const MOST: u64 = 1024 * 1024;

/// An entry's frame.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    offset: u64,
    len: u32,
    crc: u32,
}

/// What a look into the stretch says.
pub(super) enum Look<'a> {
    Value(&'a [u8]),
    /// Its frame begins here and goes on behind the stretch: offset and length of the value.
    Beyond(u64, u32),
    /// The value does not match its checksum; it lies here.
    Damaged(u64),
    None,
}

/// A stretch in memory.
#[derive(Default)]
pub(super) struct Ahead {
    segment: u64,
    start: u64,
    /// Entries that begin below this are all known.
    known: u64,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Ids ascend with the offsets.
    sorted: bool,
    /// The entry behind the one that was looked for last.
    cursor: usize,
    /// Where reading goes on, if it goes on in order.
    next: u64,
}

impl Ahead {
    /// Whether every entry that begins in this stretch is known.
    pub(super) fn covers(&self, segment: u64, stretch: &Stretch) -> bool {
        self.segment == segment && self.start <= stretch.from && stretch.to <= self.known
    }

    /// Reads a stretch, with what is worth reading along where reading goes on in order.
    pub(super) fn read(
        &mut self,
        segment: &Segment,
        stretch: &Stretch,
        torn: &[(u64, u64)],
        cached: bool,
    ) -> io::Result<()> {
        let in_order = self.segment == segment.number() && self.next == stretch.from;
        // Of an entry that is larger than what is read at once only the header is looked for.
        let whole = in_order && stretch.ahead - stretch.from <= MOST;
        let known = if whole { stretch.ahead } else { stretch.to };
        let until = known.max(stretch.to + HEAD as u64);
        self.segment = 0;
        self.bytes.resize(usize_of(until - stretch.from), 0);
        let got = if cached {
            segment.file.read_at(&mut self.bytes, stretch.from)?
        } else {
            segment.file.read_uncached_at(&mut self.bytes, stretch.from)?
        };
        self.bytes.truncate(got);
        (self.segment, self.start, self.known) = (segment.number(), stretch.from, known);
        self.next = if whole { stretch.ahead } else { stretch.end };
        if in_order {
            segment.file.will_read(self.next, MOST);
        }
        self.parse(segment.seed, torn);
        Ok(())
    }

    /// Finds the entries, as recovery would.
    fn parse(&mut self, seed: u32, torn: &[(u64, u64)]) {
        self.entries.clear();
        (self.sorted, self.cursor) = (true, 0);
        let mut at = self.start;
        while let Some(rest) = self.bytes.get(usize_of(at - self.start)..).filter(|rest| rest.len() >= HEAD) {
            if let Some((_, to)) = torn.iter().find(|(from, to)| *from <= at && at < *to) {
                at = *to;
                continue;
            }
            let Some(head) = frame::parse(rest, seed, at) else {
                at += ALIGN;
                continue;
            };
            if head.kind == frame::ENTRY {
                self.sorted &= self.entries.last().is_none_or(|last| last.id < head.id);
                self.entries.push(Entry { id: head.id, offset: at, len: head.len, crc: head.crc });
            }
            at += head.span();
        }
    }

    fn place_of(&self, id: u64, stretch: &Stretch) -> Option<usize> {
        if self.entries.get(self.cursor).is_some_and(|entry| entry.id == id) && self.sorted {
            return Some(self.cursor);
        }
        if self.sorted {
            return self.entries.binary_search_by_key(&id, |entry| entry.id).ok();
        }
        // Of two frames of one id the later one counts.
        self.entries.iter().rposition(|entry| entry.id == id && entry.offset < stretch.to)
    }

    /// Looks for an entry in a stretch that is covered.
    pub(super) fn look(&mut self, id: u64, stretch: &Stretch) -> Look<'_> {
        let Some(place) = self.place_of(id, stretch) else { return Look::None };
        let entry = self.entries[place];
        if entry.offset < stretch.from || entry.offset >= stretch.to {
            return Look::None;
        }
        self.cursor = place + 1;
        let from = usize_of(entry.offset - self.start) + HEAD;
        match self.bytes.get(from..from + entry.len as usize) {
            None => Look::Beyond(entry.offset, entry.len),
            Some(value) if frame::payload_crc(value) == entry.crc => Look::Value(value),
            Some(_) => Look::Damaged(entry.offset),
        }
    }

    /// Bytes of the values of entries in this stretch for which `is_live` holds.
    pub(super) fn bytes_of(&self, stretch: &Stretch, mut is_live: impl FnMut(u64) -> bool) -> u64 {
        let inside = |entry: &&Entry| (stretch.from..stretch.to).contains(&entry.offset);
        let mut lengths: Vec<(u64, u32)> =
            self.entries.iter().filter(inside).map(|entry| (entry.id, entry.len)).collect();
        // Of two frames of one id the later one counts.
        lengths.reverse();
        lengths.sort_by_key(|(id, _)| *id);
        lengths.dedup_by_key(|(id, _)| *id);
        lengths.iter().filter(|(id, _)| is_live(*id)).map(|(_, len)| u64::from(*len)).sum()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
