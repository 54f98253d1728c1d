//! The books of one living segment.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::freed;
use super::open_record::Living;
use super::ranges::Ranges;
use super::segment::Segment;

/// What is known of a segment in use.
pub(super) struct Part {
    pub(super) segment: Arc<Segment>,
    /// What the next open record will say of it.
    pub(super) about: Living,
    /// Entries that are not settled.
    pub(super) live: u64,
    live_bytes: u64,
    /// Acks written here that settle entries of other living segments: they must outlive those entries.
    pub(super) held: BTreeMap<u64, Ranges>,
    /// Some of its bytes do not check: it is kept for whoever wants to look at them.
    pub(super) damaged: bool,
    /// A frame that lets it go is written.
    pub(super) leaving: bool,
}

impl Part {
    pub(super) fn new(segment: Arc<Segment>, about: Living) -> Self {
        Self { segment, about, live: 0, live_bytes: 0, held: BTreeMap::new(), damaged: false, leaving: false }
    }

    pub(super) fn gain(&mut self, id: u64, bytes: u64) {
        self.live += 1;
        self.live_bytes += bytes;
        let (low, high) = self.about.ids.unwrap_or((id, id));
        self.about.ids = Some((low.min(id), high.max(id)));
    }

    pub(super) fn lose(&mut self, entries: u64, bytes: u64) {
        self.live -= entries;
        self.live_bytes -= bytes;
    }

    pub(super) fn hold(&mut self, target: u64, first: u64, last: u64) {
        self.held.entry(target).or_default().insert(first, last);
    }

    /// Whether it may go, and letting it go gives back more than it costs: its acks for others are written again, so
    /// that a log of nothing but acks would otherwise copy itself for ever.
    pub(super) fn is_worth_freeing(&self) -> bool {
        let idle = self.live == 0 && !self.damaged && !self.leaving;
        idle && freed::bytes_of(&self.held) <= self.segment.header.size / 2
    }
}
