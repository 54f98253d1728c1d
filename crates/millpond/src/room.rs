//! How much a queue may hold, and whether a push fits.
//!
//! Capacity counts unacked entries, and with a byte limit also the bytes of their values. What lies on the store and what
//! is on its way there count alike, so that the limit holds whatever order commits end in.

use crate::state::State;

/// The limits of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) entries: u64,
    pub(crate) bytes: Option<u64>,
}

/// Entries and the bytes of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

impl Load {
    pub(crate) fn new(entries: usize, bytes: usize) -> Self {
        Self { entries: entries as u64, bytes: bytes as u64 }
    }

    pub(crate) fn add(&mut self, other: Load) {
        self.entries += other.entries;
        self.bytes += other.bytes;
    }

    pub(crate) fn remove(&mut self, other: Load) {
        self.entries = self.entries.saturating_sub(other.entries);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

impl Capacity {
    /// Whether `more` fits on top of `held`. Into an empty queue a push of any size fits: one that is larger than the
    /// byte limit would else never be taken in.
    pub(crate) fn admits(self, held: Load, more: Load) -> bool {
        let entries = held.entries.saturating_add(more.entries) <= self.entries;
        let bytes = self.bytes.is_none_or(|limit| held.bytes.saturating_add(more.bytes) <= limit);
        entries && (bytes || held.entries == 0)
    }

    /// How many of the values that end at `ends` fit on top of `held`, from the first on.
    pub(crate) fn fitting(self, held: Load, ends: &[usize]) -> u64 {
        let free = self.entries.saturating_sub(held.entries);
        let Some(limit) = self.bytes else { return free.min(ends.len() as u64) };
        let free_bytes = limit.saturating_sub(held.bytes);
        let mut fits = ends.iter().take_while(|&&end| end as u64 <= free_bytes).count() as u64;
        if fits == 0 && held.entries == 0 && !ends.is_empty() {
            fits = 1;
        }
        fits.min(free)
    }
}

impl State {
    /// What counts against the capacity: entries that are stored, and pushes under way.
    pub(crate) fn held(&self) -> Load {
        let mut held = Load { entries: self.stored, bytes: self.stored_bytes };
        held.add(self.claimed);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Capacity = Capacity { entries: 4, bytes: Some(100) };

    fn load(entries: u64, bytes: u64) -> Load {
        Load { entries, bytes }
    }

    #[test]
    fn both_limits_hold() {
        assert!(CAPACITY.admits(load(3, 90), load(1, 10)));
        assert!(!CAPACITY.admits(load(3, 90), load(1, 11)));
        assert!(!CAPACITY.admits(load(4, 4), load(1, 1)));
    }

    #[test]
    fn an_oversized_push_needs_an_empty_queue() {
        assert!(CAPACITY.admits(load(0, 0), load(1, 1000)));
        assert!(!CAPACITY.admits(load(1, 1), load(1, 1000)));
        assert!(!CAPACITY.admits(load(0, 0), load(5, 5)), "the number of entries has no such exception");
        assert_eq!(CAPACITY.fitting(load(0, 0), &[1000, 1001]), 1);
        assert_eq!(CAPACITY.fitting(load(1, 1), &[1000]), 0);
    }

    #[test]
    fn what_fits_is_counted_from_the_first_on() {
        assert_eq!(CAPACITY.fitting(load(1, 40), &[20, 50, 70]), 2);
        assert_eq!(CAPACITY.fitting(load(3, 0), &[1, 2, 3]), 1);
        assert_eq!(Capacity { bytes: None, ..CAPACITY }.fitting(load(1, 1 << 40), &[1 << 30]), 1);
    }
}
