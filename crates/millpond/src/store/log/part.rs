//! The books of one living segment.

use std::sync::Arc;

use super::freed;
use super::held::HeldFor;
use super::open_record::Living;
use super::segment::Segment;

/// What is known of a segment in use.
pub(super) struct Part {
    pub(super) segment: Arc<Segment>,
    /// What the next open record will say of it.
    pub(super) about: Living,
    /// Entries that are not settled.
    pub(super) live: u64,
    live_bytes: u64,
    /// What was written here about entries of other living segments: it must outlive those entries.
    pub(super) held: HeldFor,
    /// Stretches of it that are given up: nothing in them is damage.
    pub(super) lost: Vec<(u64, u64)>,
    /// It holds frames of a newer version that may be skipped but not dropped.
    pub(super) pinned: bool,
    /// Some of its bytes do not check: it is kept for whoever wants to look at them.
    pub(super) damaged: bool,
    /// A frame that lets it go is written.
    pub(super) leaving: bool,
}

impl Part {
    pub(super) fn new(segment: Arc<Segment>, about: Living) -> Self {
        Self {
            segment,
            about,
            live: 0,
            live_bytes: 0,
            held: HeldFor::new(),
            lost: Vec::new(),
            pinned: false,
            damaged: false,
            leaving: false,
        }
    }

    pub(super) fn gain(&mut self, id: u64, bytes: u64) {
        self.live += 1;
        self.live_bytes += bytes;
        let (low, high) = self.about.ids.unwrap_or((id, id));
        self.about.ids = Some((low.min(id), high.max(id)));
    }

    /// Bytes of the values of these entries.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(super) fn lose(&mut self, entries: u64, bytes: u64) {
        self.live -= entries;
        self.live_bytes -= bytes;
    }

    pub(super) fn hold(&mut self, target: u64, first: u64, last: u64) {
        self.held.entry(target).or_default().ids.insert(first, last);
    }

    /// Whether it may go, and letting it go gives back more than it costs: its acks for others are written again, so
    /// that a log of nothing but acks would otherwise copy itself for ever.
    pub(super) fn is_worth_freeing(&self) -> bool {
        let idle = self.live == 0 && !self.damaged && !self.pinned && !self.leaving;
        idle && freed::bytes_bound(&self.held) <= self.segment.header.size / 2
    }
}
