//! The books of one living segment.

use std::sync::Arc;

use super::cold::{Cold, Stretch};
use super::dense::{Dense, Place};
use super::freed;
use super::held::HeldFor;
use super::open_record::Living;
use super::segment::Segment;

/// The entries of a segment.
pub(super) enum Entries {
    /// It is written to, or was just read from end to end.
    Dense(Dense),
    /// It is only read.
    Cold(Cold),
}

/// Where an entry lies, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    At(Place),
    /// In one of these stretches, the likeliest first.
    In(Vec<Stretch>),
}

/// What is known of a segment in use.
pub(super) struct Part {
    pub(super) segment: Arc<Segment>,
    /// What the next open record will say of it.
    pub(super) about: Living,
    pub(super) entries: Entries,
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
            entries: Entries::Dense(Dense::default()),
            held: HeldFor::new(),
            lost: Vec::new(),
            pinned: false,
            damaged: false,
            leaving: false,
        }
    }

    /// Entries that are not settled.
    pub(super) fn live(&self) -> u64 {
        match &self.entries {
            Entries::Dense(dense) => dense.len,
            Entries::Cold(cold) => cold.live.len(),
        }
    }

    /// Bytes of their values, exact or nearly so.
    pub(super) fn live_bytes(&self) -> u64 {
        match &self.entries {
            Entries::Dense(dense) => dense.bytes,
            Entries::Cold(cold) => cold.bytes(),
        }
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        match &self.entries {
            Entries::Dense(dense) => dense.get(id).is_some(),
            Entries::Cold(cold) => cold.live.contains(id),
        }
    }

    /// Where a live entry lies. What is worth reading with it ends `most` bytes behind at the latest.
    pub(super) fn find(&self, id: u64, most: u64) -> Option<Found> {
        match &self.entries {
            Entries::Dense(dense) => dense.get(id).map(Found::At),
            Entries::Cold(cold) if cold.live.contains(id) => {
                Some(Found::In(cold.places_of(id, most).collect()))
            }
            Entries::Cold(_) => None,
        }
    }

    pub(super) fn next(&self, id: u64) -> Option<u64> {
        match &self.entries {
            Entries::Dense(dense) => dense.next(id),
            Entries::Cold(cold) => cold.live.next(id),
        }
    }

    pub(super) fn previous(&self, id: u64) -> Option<u64> {
        match &self.entries {
            Entries::Dense(dense) => dense.previous(id),
            Entries::Cold(cold) => cold.live.previous(id),
        }
    }

    pub(super) fn put(&mut self, id: u64, place: Place) {
        let (low, high) = self.about.ids.unwrap_or((id, id));
        self.about.ids = Some((low.min(id), high.max(id)));
        if let Entries::Dense(dense) = &mut self.entries {
            dense.insert(id, place);
        }
    }

    /// Settles what was stored before offset `before` and calls `gone` for every run of ids.
    pub(super) fn settle(&mut self, first: u64, last: u64, before: u64, mut gone: impl FnMut(u64, u64)) {
        match &mut self.entries {
            Entries::Dense(dense) => dense.remove(first, last, before, |id| gone(id, id)),
            Entries::Cold(cold) => cold.remove(first, last, gone),
        }
    }

    pub(super) fn hold(&mut self, target: u64, first: u64, last: u64) {
        self.held.entry(target).or_default().ids.insert(first, last);
    }

    /// Whether it may go, and letting it go gives back more than it costs: its acks for others are written again, so
    /// that a log of nothing but acks would otherwise copy itself for ever.
    pub(super) fn is_worth_freeing(&self) -> bool {
        let idle = self.live() == 0 && !self.damaged && !self.pinned && !self.leaving;
        idle && freed::bytes_bound(&self.held) <= self.segment.header.size / 2
    }
}
