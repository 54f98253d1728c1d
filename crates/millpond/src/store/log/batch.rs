//! One commit as bytes: a run of frames, complete but for their place.

use super::error::LogError;
use super::frame;
use super::freed;
use super::held::HeldFor;
use super::index::Index;
use super::pieces;
use super::planted::{self, Fault};
use super::salvage::GivenUp;
use crate::key::{self, Key};
use crate::store::Op;

/// Buffers above this are given back after use.
const KEPT: usize = 16 * 1024 * 1024;
/// The largest batch: the index counts offsets in 32 bits of 8 bytes, and one segment holds the whole batch.
const LARGEST: u64 = 8 << 30;

/// Builds batches. It is reused, so that a commit allocates nothing.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Deletes that are not in a frame yet: target segment and inclusive ranges.
    acks: Vec<(u64, Vec<(u64, u64)>)>,
    /// Bounds of the ids in `acks`, and of the ids put so far.
    deleted: Bounds,
    stored: Bounds,
}

#[derive(Clone, Copy)]
struct Bounds {
    low: u64,
    high: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { low: u64::MAX, high: 0 }
    }
}

impl Bounds {
    fn add(&mut self, id: u64) {
        self.low = self.low.min(id);
        self.high = self.high.max(id);
    }

    fn may_hold(self, id: u64) -> bool {
        self.low <= id && id <= self.high
    }
}

/// What kinds of operations there are in a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    /// Keys that are not entries.
    pub(super) others: bool,
    /// Entries that are stored.
    pub(super) puts: bool,
}

/// Whether an operation stores an entry.
pub(super) fn is_entry_put(op: &Op<'_>) -> bool {
    matches!(op, Op::Put(key, _) if matches!(Key::parse(key), Ok(Key::Entry(_))))
}

/// Refuses what cannot be written, before anything is.
pub(super) fn check(ops: &[Op<'_>]) -> Result<Kinds, LogError> {
    let (mut bytes, mut others, mut puts) = (0_u64, false, false);
    for op in ops {
        let (Op::Put(key, _) | Op::Delete(key)) = *op;
        let is_entry = matches!(Key::parse(key)?, Key::Entry(_));
        others |= !is_entry;
        puts |= is_entry && matches!(op, Op::Put(..));
        let value = if let Op::Put(_, value) = *op { value.len() as u64 } else { 0 };
        // The key rides in the payload of other keys, with four bytes for its length.
        let payload = if is_entry { value } else { value + key.len() as u64 + 4 };
        if payload > u64::from(u32::MAX) {
            return Err(LogError::TooLarge { bytes: payload });
        }
        bytes = bytes.saturating_add(frame::span(payload));
    }
    if bytes > LARGEST {
        return Err(LogError::TooLarge { bytes });
    }
    Ok(Kinds { others, puts })
}

impl Batch {
    /// Builds a batch of frames that give up `lost`, of `ops`, and of frames that let the segments `frees` go.
    pub(super) fn build(&mut self, ops: &[Op<'_>], index: &Index, frees: &[u64], given_up: &[GivenUp]) {
        self.clear();
        frame::begin(&mut self.bytes, frame::BATCH, 0, 0);
        let head = self.bytes.len();
        frame::finish(&mut self.bytes, head - frame::HEAD);
        for GivenUp { segment, lost } in given_up {
            let start = frame::begin(&mut self.bytes, frame::LOST, 0, *segment);
            lost.encode(&mut self.bytes);
            frame::finish(&mut self.bytes, start);
        }
        for (done, op) in ops.iter().enumerate() {
            match *op {
                Op::Put(key, value) => match Key::parse(key) {
                    Ok(Key::Entry(id)) => self.entry(id, value),
                    _ => self.other(frame::KV_PUT, key, value),
                },
                Op::Delete(key) => match Key::parse(key) {
                    Ok(Key::Entry(id)) => self.delete(id, &ops[..done], index),
                    _ => self.other(frame::KV_DELETE, key, &[]),
                },
            }
        }
        self.flush_acks();
        for number in frees {
            if let Some(part) = index.parts.get(number) {
                let start = frame::begin(&mut self.bytes, frame::FREED, 0, *number);
                let nothing = HeldFor::default();
                let forwarded = if planted::is(Fault::FreeBeforeForwarding) { &nothing } else { &part.held };
                freed::encode(&mut self.bytes, part.segment.header.generation, forwarded);
                frame::finish(&mut self.bytes, start);
            }
        }
    }

    /// Builds the batch that ends a life well.
    pub(super) fn build_closing(&mut self) {
        self.clear();
        let start = frame::begin(&mut self.bytes, frame::BATCH, frame::CLOSED, 0);
        frame::finish(&mut self.bytes, start);
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() <= frame::HEAD
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Completes the frames for their place.
    pub(super) fn seal(&mut self, mark: u64, seed: u32, base: u64) {
        frame::seal(&mut self.bytes, mark, seed, base);
    }

    /// Gives back the memory of an unusually large batch.
    pub(super) fn trim(&mut self) {
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.acks.clear();
        self.deleted = Bounds::default();
        self.stored = Bounds::default();
    }

    fn entry(&mut self, id: u64, value: &[u8]) {
        // ORDER: a delete of this id that came first must come first in the log too.
        if self.deleted.may_hold(id) {
            self.flush_acks();
        }
        self.stored.add(id);
        let start = frame::begin(&mut self.bytes, frame::ENTRY, 0, id);
        self.bytes.extend_from_slice(value);
        frame::finish(&mut self.bytes, start);
    }

    fn other(&mut self, kind: u8, key: &[u8], value: &[u8]) {
        let start = frame::begin(&mut self.bytes, kind, 0, 0);
        if kind == frame::KV_PUT {
            // INVARIANT: `check` bounded key and value together.
            let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
            self.bytes.extend_from_slice(&length.to_le_bytes());
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        frame::finish(&mut self.bytes, start);
    }

    fn delete(&mut self, id: u64, before: &[Op<'_>], index: &Index) {
        let put_here = self.stored.may_hold(id) && {
            let wanted = key::entry(id);
            before.iter().any(|op| matches!(op, Op::Put(key, _) if *key == wanted))
        };
        let target = if put_here { Some(frame::OWN_SEGMENT) } else { index.segment_of(id) };
        let Some(target) = target else { return };
        self.deleted.add(id);
        let at = self.acks.iter().rposition(|(segment, _)| *segment == target).unwrap_or_else(|| {
            self.acks.push((target, Vec::new()));
            self.acks.len() - 1
        });
        let ranges = &mut self.acks[at].1;
        match ranges.last_mut() {
            Some((first, last)) if *first <= id && id <= *last => {}
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => ranges.push((id, id)),
        }
    }

    fn flush_acks(&mut self) {
        for (target, mut ranges) in self.acks.drain(..) {
            let start = frame::begin(&mut self.bytes, frame::ACK, 0, target);
            merge(&mut ranges);
            pieces::encode(&mut self.bytes, &ranges);
            frame::finish(&mut self.bytes, start);
        }
        self.deleted = Bounds::default();
    }
}

/// Sorts ranges and joins those that overlap or touch.
fn merge(ranges: &mut Vec<(u64, u64)>) {
    if ranges.len() < 2 {
        return;
    }
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let joins = next.0 <= before.1.saturating_add(1);
        if joins {
            before.1 = before.1.max(next.1);
        }
        joins
    });
}
