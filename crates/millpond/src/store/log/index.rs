//! What is in the log: where each entry lies, the other keys, and the books of every living segment.
//!
//! The same [`Index::apply`] replays a log at open and takes over a batch that was just written, so that what a reader
//! sees now and what the next open finds cannot differ.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use super::bytes::{get_u32, usize_of};
use super::cold::{Cold, Unread};
use super::dense::Place;
use super::footer::Footer;
use super::frame::{self, Head};
use super::freed::{self, Freed};
use super::held::Carried;
use super::lost::Lost;
use super::open_record::Living;
use super::part::{Entries, Found, Part};
use super::pieces;
use super::segment::Segment;
use super::spans::Spans;
use crate::key;
use crate::store::Summary;

/// Where an entry lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loc {
    pub(super) segment: u64,
    pub(super) found: Found,
    /// Stretches of the segment that never were frames.
    pub(super) torn: Vec<(u64, u64)>,
}

/// The index. It knows every living segment before the first frame that names it is applied.
#[derive(Default)]
pub(super) struct Index {
    pub(super) kv: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) parts: BTreeMap<u64, Part>,
    /// Where to look for an id, in segments that are not written to any more.
    spans: Spans,
    /// The segment whose entries are known one by one.
    dense: u64,
    /// Segments without a live entry.
    pub(super) empties: BTreeSet<u64>,
    /// Frames that let segments go and are not vouched for yet.
    pub(super) freed: Vec<Freed>,
    /// The highest id that was ever stored, as far as this log knows.
    pub(super) highest: u64,
    /// Values that were read at open, while they live.
    pub(super) loaded: BTreeMap<u64, Box<[u8]>>,
    /// Other keys that changed, and segments that were let go, since the newest open record.
    changed: BTreeSet<Vec<u8>>,
    gone: Vec<(u64, u64)>,
}

impl Index {
    /// Adds a segment that comes into use or is about to be read. What it stores is known entry by entry until it is
    /// frozen.
    pub(super) fn add_part(&mut self, segment: Arc<Segment>, about: Living) {
        self.dense = segment.number();
        self.empties.insert(segment.number());
        self.parts.insert(segment.number(), Part::new(segment, about));
    }

    /// From now on what the newest open record says is all there is of other keys and segments that go.
    pub(super) fn begin_record(&mut self) {
        self.changed.clear();
        self.gone.clear();
    }

    /// What a segment holds that is not written to any more and whose frames end at `end`, if it is not known already.
    pub(super) fn frozen(&self, number: u64, end: u64) -> Option<Cold> {
        match &self.parts.get(&number)?.entries {
            Entries::Dense(dense) => Some(Cold::of(dense, end)),
            Entries::Cold(_) => None,
        }
    }

    /// Goes on with what [`Index::frozen`] or a footer says.
    pub(super) fn freeze(&mut self, number: u64, cold: Cold) {
        let Some(part) = self.parts.get_mut(&number) else { return };
        if cold.live.is_empty() {
            self.empties.insert(number);
        } else {
            self.empties.remove(&number);
        }
        part.entries = Entries::Cold(cold);
        if let Some((low, high)) = part.about.ids {
            self.spans.add(low, high, number);
        }
    }

    /// Takes over the frames of one batch that lies at `base` in `segment`.
    pub(super) fn apply_batch(&mut self, segment: u64, base: u64, batch: &[u8]) {
        let mut at = 0;
        while at + frame::HEAD <= batch.len() {
            let head = frame::fields(&batch[at..]);
            let payload = at + frame::HEAD;
            let end = (payload + head.len as usize).min(batch.len());
            self.apply(segment, base + at as u64, &head, &batch[payload..end]);
            at += usize_of(head.span());
        }
    }

    /// Takes over one frame. The payload of an entry is not looked at.
    pub(super) fn apply(&mut self, segment: u64, offset: u64, head: &Head, payload: &[u8]) {
        match head.kind {
            frame::ENTRY => {
                self.put(segment, head.id, Place::new(offset, head.len));
            }
            frame::ACK => {
                let target = if head.id == frame::OWN_SEGMENT { segment } else { head.id };
                pieces::decode_all(payload, |first, last| {
                    self.settle((segment, offset), target, first, last);
                });
            }
            frame::KV_PUT if payload.len() >= 4 => {
                let (key, value) =
                    payload[4..].split_at((get_u32(payload, 0) as usize).min(payload.len() - 4));
                self.changed.insert(key.to_vec());
                self.kv.insert(key.to_vec(), value.to_vec());
            }
            frame::KV_DELETE => {
                self.changed.insert(payload.to_vec());
                self.kv.remove(payload);
            }
            frame::FREED => self.apply_freed(segment, offset, head, payload),
            frame::LOST => self.apply_lost(segment, offset, head, payload),
            _ if head.pins() => {
                if let Some(part) = self.parts.get_mut(&segment) {
                    part.pinned = true;
                }
            }
            _ => {}
        }
    }

    fn apply_freed(&mut self, segment: u64, offset: u64, head: &Head, payload: &[u8]) {
        let Some((generation, carried)) = freed::decode(payload) else { return };
        for carried in carried {
            self.carry((segment, offset), &carried);
        }
        if let Some(part) = self.parts.get_mut(&head.id) {
            part.leaving = true;
        }
        self.gone.push((head.id, generation));
        let end = offset + head.span();
        self.freed.push(Freed { segment: head.id, generation, holder: segment, offset, end });
    }

    /// Takes over what another segment held and hands on: `at` holds it from now on, settled before or not.
    pub(super) fn carry(&mut self, at: (u64, u64), carried: &Carried) {
        let Carried { segment: target, ids, lost, .. } = carried;
        let Some(part) = self.parts.get_mut(target) else { return };
        if !carried.fits(part.segment.header.size) {
            return;
        }
        part.lost.extend_from_slice(lost);
        ids.each(|first, last| self.settle(at, *target, first, last));
        if *target != at.0
            && let Some(holder) = self.parts.get_mut(&at.0)
        {
            let held = holder.held.entry(*target).or_default();
            held.lost.extend_from_slice(lost);
            ids.each(|first, last| held.ids.insert(first, last));
        }
    }

    fn apply_lost(&mut self, segment: u64, offset: u64, head: &Head, payload: &[u8]) {
        let Some(lost) = Lost::decode(payload) else { return };
        let target = if head.id == frame::OWN_SEGMENT { segment } else { head.id };
        let same = |part: &Part| part.segment.header.generation == lost.generation;
        if self.parts.get(&target).is_some_and(same) {
            let mut carried = Carried::new(target);
            lost.ids.iter().for_each(|(first, last)| carried.add(*first, *last));
            carried.lost.push(lost.bytes);
            self.carry((segment, offset), &carried);
        }
    }

    fn put(&mut self, segment: u64, id: u64, place: Place) {
        // An id above all others is not stored yet.
        if id <= self.highest {
            // A replaced entry is settled by its successor's segment: were that one freed without passing this on, the old
            // value would come back. There may be several: when a segment without a footer is read again, the one that had
            // replaced the oldest may be gone, and what it held be said only later in the log.
            let holds = |number: &u64| {
                *number != segment && self.parts.get(number).is_some_and(|part| part.contains(id))
            };
            let old: SmallVec<[u64; 2]> = self.spans.around(id).filter(holds).collect();
            for old in old {
                self.settle((segment, place.offset()), old, id, id);
            }
        }
        self.highest = self.highest.max(id);
        if let Some(part) = self.parts.get_mut(&segment) {
            part.put(id, place);
            self.empties.remove(&segment);
        }
    }

    /// Settles what lies in `target` and was stored before `at`. The segment of `at` holds what it settled.
    fn settle(&mut self, at: (u64, u64), target: u64, first: u64, last: u64) {
        if first > last || target > at.0 {
            return;
        }
        let Some(part) = self.parts.get_mut(&target) else { return };
        let before = if target == at.0 { at.1 } else { u64::MAX };
        let mut gone = SmallVec::<[(u64, u64); 4]>::new();
        part.settle(first, last, before, |first, last| match gone.last_mut() {
            Some(run) if run.1.checked_add(1) == Some(first) => run.1 = last,
            _ => gone.push((first, last)),
        });
        if part.live() == 0 {
            self.empties.insert(target);
        }
        if !self.loaded.is_empty() {
            for id in gone.iter().flat_map(|(first, last)| *first..=*last) {
                self.loaded.remove(&id);
            }
        }
        if target != at.0
            && let Some(holder) = self.parts.get_mut(&at.0)
        {
            for (first, last) in gone {
                holder.hold(target, first, last);
            }
        }
    }

    /// Forgets a segment, what others held for it, and entries it still has.
    pub(super) fn remove_part(&mut self, number: u64) {
        self.empties.remove(&number);
        if self.parts.remove(&number).is_none() {
            return;
        }
        for part in self.parts.values_mut() {
            part.held.remove(&number);
        }
        self.spans.remove(number);
    }

    /// The segments that `holder`'s frames below `upto` let go, now that these frames are durable.
    pub(super) fn vouch(&mut self, holder: u64, upto: u64) -> Vec<u64> {
        if self.freed.is_empty() {
            return Vec::new();
        }
        let (vouched, rest) = std::mem::take(&mut self.freed).into_iter().partition::<Vec<_>, _>(|freed| {
            freed.holder < holder || freed.holder == holder && freed.end <= upto
        });
        self.freed = rest;
        vouched.into_iter().map(|freed| freed.segment).collect()
    }

    /// Segments that nobody needs and that no frame lets go yet.
    pub(super) fn candidates(&self, active: u64, most: usize) -> Vec<u64> {
        let free =
            |number: &&u64| **number != active && self.parts.get(number).is_some_and(Part::is_worth_freeing);
        self.empties.iter().filter(free).take(most).copied().collect()
    }

    /// The frame of the footer of a segment that is frozen and whose frames end at `end`.
    pub(super) fn footer(&self, number: u64, end: u64) -> Option<Vec<u8>> {
        let part = self.parts.get(&number)?;
        let Entries::Cold(cold) = &part.entries else { return None };
        let footer = Footer {
            end,
            ids: part.about.ids,
            live_bytes: cold.bytes(),
            pinned: part.pinned,
            blocks: cold.blocks().to_vec(),
            live: cold.live.ranges(),
            kv: self.changed.iter().map(|key| (key.clone(), self.kv.get(key).cloned())).collect(),
            gone: self.gone.clone(),
            held: Vec::new(),
        };
        Some(footer.encode(number, &part.held, part.segment.seed, end))
    }

    /// Takes over what a footer says instead of the frames of a segment that was just added.
    pub(super) fn apply_footer(&mut self, number: u64, footer: &Footer, replays_kv: bool) {
        let Some(part) = self.parts.get_mut(&number) else { return };
        part.about.ids = footer.ids;
        part.pinned |= footer.pinned;
        self.highest = self.highest.max(footer.ids.map_or(0, |ids| ids.1));
        self.freeze(number, Cold::of_footer(footer));
        for carried in &footer.held {
            self.carry((number, u64::MAX), carried);
        }
        if replays_kv {
            for (key, value) in &footer.kv {
                match value {
                    Some(value) => self.kv.insert(key.clone(), value.clone()),
                    None => self.kv.remove(key),
                };
            }
        }
    }

    /// The segment in which an entry lives.
    pub(super) fn segment_of(&self, id: u64) -> Option<u64> {
        let holds = |number: &u64| self.parts.get(number).is_some_and(|part| part.contains(id));
        Some(self.dense).filter(holds).or_else(|| self.spans.around(id).find(holds))
    }

    /// Where an entry lies. What is worth reading with it ends `most` bytes behind at the latest.
    pub(super) fn find(&self, id: u64, most: u64) -> Option<Loc> {
        let segment = self.segment_of(id)?;
        let part = self.parts.get(&segment)?;
        Some(Loc { segment, found: part.find(id, most)?, torn: part.about.torn.clone() })
    }

    /// The open file of a segment.
    pub(super) fn segment(&self, number: u64) -> Option<&Arc<Segment>> {
        self.parts.get(&number).map(|part| &part.segment)
    }

    /// The lowest id that is not below `id`.
    pub(super) fn entry_from(&self, id: u64) -> Option<u64> {
        let mut best = self.parts.get(&self.dense).and_then(|part| part.next(id));
        for (segment, low) in self.spans.from(id) {
            if best.is_some_and(|best| best < low) {
                break;
            }
            let next = self.parts.get(&segment).and_then(|part| part.next(id));
            best = match (best, next) {
                (Some(best), Some(next)) => Some(best.min(next)),
                (best, next) => best.or(next),
            };
        }
        best
    }

    /// The highest id that is not above `id`.
    pub(super) fn entry_upto(&self, id: u64) -> Option<u64> {
        let mut best = self.parts.get(&self.dense).and_then(|part| part.previous(id));
        for (segment, top) in self.spans.upto(id) {
            if best.is_some_and(|best| best > top) {
                break;
            }
            best = best.max(self.parts.get(&segment).and_then(|part| part.previous(id)));
        }
        best
    }

    /// The smallest key that is not below `from`.
    pub(super) fn key_from(&self, from: &[u8]) -> Option<Vec<u8>> {
        let other = self.kv.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
        let other = other.map(|(key, _)| key.clone());
        let entry =
            key::first_entry_from(from).and_then(|id| self.entry_from(id)).map(|id| key::entry(id).to_vec());
        match (other, entry) {
            (Some(other), Some(entry)) => Some(other.min(entry)),
            (other, entry) => other.or(entry),
        }
    }

    /// The greatest key that is not above `upto`.
    pub(super) fn key_upto(&self, upto: &[u8]) -> Option<Vec<u8>> {
        let other = self.kv.range::<[u8], _>((Bound::Unbounded, Bound::Included(upto))).next_back();
        let other = other.map(|(key, _)| key.clone());
        let entry =
            key::last_entry_upto(upto).and_then(|id| self.entry_upto(id)).map(|id| key::entry(id).to_vec());
        other.max(entry)
    }

    /// How many entries live, and which are the first and the last. Bytes are exact or nearly so.
    pub(super) fn summary(&self) -> Summary {
        Summary {
            count: self.parts.values().map(Part::live).sum(),
            bytes: self.live_bytes(),
            first: self.entry_from(0),
            last: self.entry_upto(u64::MAX),
        }
    }

    /// Bytes of live entries that are known without reading, and where to read for the rest.
    pub(super) fn exact_bytes(&self) -> (u64, Vec<(&Part, Vec<Unread>)>) {
        let (mut known, mut unknown) = (0, Vec::new());
        for part in self.parts.values() {
            match &part.entries {
                Entries::Dense(dense) => known += dense.bytes,
                Entries::Cold(cold) => {
                    let (bytes, stretches) = cold.exact_bytes();
                    known += bytes;
                    unknown.push((part, stretches));
                }
            }
        }
        (known, unknown)
    }

    /// Bytes of the segments' files, as their headers have them.
    pub(super) fn file_bytes(&self) -> u64 {
        self.parts.values().fold(0, |bytes, part| part.segment.header.size.saturating_add(bytes))
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.parts.values().map(Part::live_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::store::log::disk::DiskFile;
    use crate::store::log::segment::Header;

    /// A file that nobody reads.
    struct NoFile;

    impl DiskFile for NoFile {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn read_uncached_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn sync_all(&self) -> io::Result<()> {
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }
    }

    #[test]
    fn an_entry_that_is_stored_again_replaces_every_older_one() {
        let mut index = Index::default();
        let add = |index: &mut Index, number| {
            let header = Header { identity: [1; 16], generation: 1, number, size: 1 << 16, recycled: false };
            let living = Living { number, generation: 1, size: 1 << 16, ..Living::default() };
            index.add_part(Arc::new(Segment::new(header, Arc::new(NoFile), 0)), living);
        };
        // The footers of the first two say that the entry lives, and the segment that said otherwise is gone.
        for number in [9, 13] {
            add(&mut index, number);
            let footer = Footer { end: 20_000, ids: Some((5, 5)), live: vec![(5, 5)], ..Footer::default() };
            index.apply_footer(number, &footer, false);
        }
        add(&mut index, 17);
        index.put(17, 5, Place::new(16_384, 1));
        let live: Vec<u64> = index.parts.values().map(Part::live).collect();
        assert_eq!(live, [0, 0, 1]);
    }
}
