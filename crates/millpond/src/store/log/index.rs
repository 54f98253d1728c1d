//! What is in the log: where each entry lies, the other keys, and the books of every living segment.
//!
//! The same [`Index::apply`] replays a log at open and takes over a batch that was just written, so that what a reader
//! sees now and what the next open finds cannot differ.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::bytes::{get_u32, usize_of};
use super::footer::{Blocks, Footer};
use super::frame::{self, Head};
use super::freed::{self, Freed};
use super::held::Carried;
use super::idset::IdSet;
use super::lost::Lost;
use super::open_record::Living;
use super::part::Part;
use super::pieces;
use super::segment::Segment;
use crate::key;
use crate::store::Summary;

/// Where an entry's frame lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loc {
    pub(super) segment: u64,
    /// Offset in units of the frame alignment.
    unit: u32,
    pub(super) len: u32,
}

impl Loc {
    pub(super) fn offset(self) -> u64 {
        u64::from(self.unit) * frame::ALIGN
    }

    fn place(self) -> (u64, u64) {
        (self.segment, self.offset())
    }
}

/// 64 neighbouring ids.
struct Chunk {
    live: u64,
    locs: [Loc; 64],
}

impl Default for Chunk {
    fn default() -> Self {
        Self { live: 0, locs: [Loc::default(); 64] }
    }
}

fn slot_of(id: u64) -> usize {
    usize_of(id & 63)
}

/// The bits of `first..=last` that fall into this chunk; the range must touch it.
fn mask(chunk: u64, first: u64, last: u64) -> u64 {
    let low = if first >> 6 == chunk { first & 63 } else { 0 };
    let high = if last >> 6 == chunk { last & 63 } else { 63 };
    (u64::MAX << low) & (u64::MAX >> (63 - high))
}

/// The index. It knows every living segment before the first frame that names it is applied.
#[derive(Default)]
pub(super) struct Index {
    chunks: BTreeMap<u64, Box<Chunk>>,
    pub(super) kv: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) parts: BTreeMap<u64, Part>,
    /// Segments without a live entry.
    pub(super) empties: BTreeSet<u64>,
    /// Frames that let segments go and are not vouched for yet.
    pub(super) freed: Vec<Freed>,
    /// The highest id that was ever stored, as far as this log knows.
    pub(super) highest: u64,
    count: u64,
    bytes: u64,
}

impl Index {
    /// Adds a segment that comes into use or was found living.
    pub(super) fn add_part(&mut self, segment: Arc<Segment>, about: Living) {
        self.empties.insert(segment.number());
        self.parts.insert(segment.number(), Part::new(segment, about));
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
                let unit = u32::try_from(offset / frame::ALIGN).unwrap_or(u32::MAX);
                self.put(head.id, Loc { segment, unit, len: head.len });
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
                self.kv.insert(key.to_vec(), value.to_vec());
            }
            frame::KV_DELETE => {
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
        let end = offset + head.span();
        self.freed.push(Freed { segment: head.id, generation, holder: segment, offset, end });
    }

    /// Takes over what another segment held and hands on: `at` holds it from now on, settled before or not.
    pub(super) fn carry(&mut self, at: (u64, u64), carried: &Carried) {
        let Carried { segment: target, ids, lost } = carried;
        let Some(part) = self.parts.get_mut(target) else { return };
        if !carried.fits(part.segment.header.size) {
            return;
        }
        part.lost.extend_from_slice(lost);
        for &(first, last) in ids {
            self.settle(at, *target, first, last);
        }
        if *target != at.0
            && let Some(holder) = self.parts.get_mut(&at.0)
        {
            let held = holder.held.entry(*target).or_default();
            held.lost.extend_from_slice(lost);
            for &(first, last) in ids {
                held.ids.insert(first, last);
            }
        }
    }

    fn apply_lost(&mut self, segment: u64, offset: u64, head: &Head, payload: &[u8]) {
        let Some(lost) = Lost::decode(payload) else { return };
        let target = if head.id == frame::OWN_SEGMENT { segment } else { head.id };
        let same = |part: &Part| part.segment.header.generation == lost.generation;
        if self.parts.get(&target).is_some_and(same) {
            let carried = Carried { segment: target, ids: lost.ids, lost: vec![lost.bytes] };
            self.carry((segment, offset), &carried);
        }
    }

    fn put(&mut self, id: u64, loc: Loc) {
        self.highest = self.highest.max(id);
        let chunk = self.chunks.entry(id >> 6).or_default();
        let (slot, bit) = (slot_of(id), 1 << (id & 63));
        if chunk.live & bit != 0 {
            let old = chunk.locs[slot];
            // Commits become visible in any order; the log's order decides which of two values stays.
            if old.place() >= loc.place() {
                return;
            }
            self.count -= 1;
            self.bytes -= u64::from(old.len);
            if let Some(part) = self.parts.get_mut(&old.segment) {
                part.lose(1, u64::from(old.len));
                if part.live == 0 {
                    self.empties.insert(old.segment);
                }
            }
            // A replaced entry is settled by its successor's segment: were that one freed without passing this on,
            // the old value would come back.
            if old.segment != loc.segment
                && let Some(part) = self.parts.get_mut(&loc.segment)
            {
                part.hold(old.segment, id, id);
            }
        }
        chunk.live |= bit;
        chunk.locs[slot] = loc;
        self.count += 1;
        self.bytes += u64::from(loc.len);
        if let Some(part) = self.parts.get_mut(&loc.segment) {
            if part.live == 0 {
                self.empties.remove(&loc.segment);
            }
            part.gain(id, u64::from(loc.len));
        }
    }

    /// Settles what lies in `target` and was stored before `at`. The segment of `at` holds what it settled.
    fn settle(&mut self, at: (u64, u64), target: u64, first: u64, last: u64) {
        if first > last {
            return;
        }
        let (mut removed, mut bytes) = (0, 0);
        let mut emptied = Vec::new();
        let mut holder = if target == at.0 { None } else { self.parts.get_mut(&at.0) };
        for (number, chunk) in self.chunks.range_mut(first >> 6..=last >> 6) {
            let mut bits = chunk.live & mask(*number, first, last);
            while bits != 0 {
                let slot = bits.trailing_zeros();
                bits &= bits - 1;
                let loc = chunk.locs[slot as usize];
                if loc.segment == target && loc.place() < at {
                    chunk.live &= !(1 << slot);
                    removed += 1;
                    bytes += u64::from(loc.len);
                    if let Some(holder) = &mut holder {
                        let id = (number << 6) + u64::from(slot);
                        holder.hold(target, id, id);
                    }
                }
            }
            if chunk.live == 0 {
                emptied.push(*number);
            }
        }
        for number in emptied {
            self.chunks.remove(&number);
        }
        self.count -= removed;
        self.bytes -= bytes;
        let Some(part) = self.parts.get_mut(&target) else { return };
        part.lose(removed, bytes);
        if part.live == 0 {
            self.empties.insert(target);
        }
    }

    /// Forgets a segment, what it held for others, what others held for it, and entries it still has.
    pub(super) fn remove_part(&mut self, number: u64) {
        self.empties.remove(&number);
        let Some(gone) = self.parts.remove(&number) else { return };
        for part in self.parts.values_mut() {
            part.held.remove(&number);
        }
        if gone.live > 0 {
            for chunk in self.chunks.values_mut() {
                for slot in 0..64 {
                    let loc = chunk.locs[slot];
                    if chunk.live & (1 << slot) != 0 && loc.segment == number {
                        chunk.live &= !(1 << slot);
                        self.count -= 1;
                        self.bytes -= u64::from(loc.len);
                    }
                }
            }
            self.chunks.retain(|_, chunk| chunk.live != 0);
        }
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

    /// The frame of the footer of a segment whose frames end at `end`.
    pub(super) fn footer(&self, number: u64, end: u64) -> Option<Vec<u8>> {
        let part = self.parts.get(&number)?;
        let mut places = Vec::new();
        let mut live = IdSet::default();
        if let Some((low, high)) = part.about.ids {
            for (chunk, found) in self.chunks.range(low >> 6..=high >> 6) {
                for slot in (0..64).filter(|slot| found.live & (1 << slot) != 0) {
                    let loc = found.locs[slot];
                    if loc.segment == number {
                        let id = (chunk << 6) + slot as u64;
                        places.push((loc.offset(), id, loc.len));
                        live.insert(id, id);
                    }
                }
            }
        }
        places.sort_unstable();
        let mut blocks = Blocks::default();
        for (offset, id, len) in places {
            blocks.add(offset, id, len);
        }
        let footer = Footer {
            end,
            ids: part.about.ids,
            live_bytes: part.live_bytes(),
            pinned: part.pinned,
            blocks: blocks.blocks,
            live: live.ranges(),
            held: Vec::new(),
        };
        Some(footer.encode(number, &part.held, part.segment.seed, end))
    }

    /// Where an entry lies.
    pub(super) fn find(&self, id: u64) -> Option<Loc> {
        let chunk = self.chunks.get(&(id >> 6))?;
        (chunk.live & (1 << (id & 63)) != 0).then(|| chunk.locs[slot_of(id)])
    }

    /// The open file of a segment.
    pub(super) fn segment(&self, number: u64) -> Option<&Arc<Segment>> {
        self.parts.get(&number).map(|part| &part.segment)
    }

    /// The lowest id that is not below `id`.
    pub(super) fn entry_from(&self, id: u64) -> Option<u64> {
        self.chunks.range(id >> 6..).find_map(|(number, chunk)| {
            let bits = chunk.live & mask(*number, id, u64::MAX);
            (bits != 0).then(|| (number << 6) + u64::from(bits.trailing_zeros()))
        })
    }

    /// The highest id that is not above `id`.
    pub(super) fn entry_upto(&self, id: u64) -> Option<u64> {
        self.chunks.range(..=id >> 6).rev().find_map(|(number, chunk)| {
            let bits = chunk.live & mask(*number, 0, id);
            (bits != 0).then(|| (number << 6) + u64::from(bits.ilog2()))
        })
    }

    /// The smallest key that is not below `from`.
    pub(super) fn key_from(&self, from: &[u8]) -> Option<Vec<u8>> {
        let other = self.kv.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
        let other = other.map(|(key, _)| key.clone());
        let entry =
            first_entry_from(from).and_then(|id| self.entry_from(id)).map(|id| key::entry(id).to_vec());
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
            last_entry_upto(upto).and_then(|id| self.entry_upto(id)).map(|id| key::entry(id).to_vec());
        other.max(entry)
    }

    pub(super) fn summary(&self) -> Summary {
        Summary {
            count: self.count,
            bytes: self.bytes,
            first: self.entry_from(0),
            last: self.entry_upto(u64::MAX),
        }
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.bytes
    }
}

/// The id bytes of an entry key that may be cut short, filled with zeros.
fn padded(body: &[u8]) -> u64 {
    let mut id = [0; 8];
    let length = body.len().min(8);
    id[..length].copy_from_slice(&body[..length]);
    u64::from_be_bytes(id)
}

/// The lowest id whose key is not below `from`.
fn first_entry_from(from: &[u8]) -> Option<u64> {
    match from.split_first() {
        Some((&key::ENTRY, body)) if body.len() > 8 => padded(body).checked_add(1),
        Some((&key::ENTRY, body)) => Some(padded(body)),
        Some((&kind, _)) if kind > key::ENTRY => None,
        _ => Some(0),
    }
}

/// The highest id whose key is not above `upto`.
fn last_entry_upto(upto: &[u8]) -> Option<u64> {
    match upto.split_first() {
        Some((&key::ENTRY, body)) if body.len() < 8 => padded(body).checked_sub(1),
        Some((&key::ENTRY, body)) => Some(padded(body)),
        Some((&kind, _)) if kind > key::ENTRY => Some(u64::MAX),
        _ => None,
    }
}
