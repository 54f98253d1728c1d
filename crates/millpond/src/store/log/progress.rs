//! Telling how far a slow open has come.

use std::time::{Duration, Instant};

/// How often it is told, and when first.
const EVERY: Duration = Duration::from_secs(1);

/// How far an open has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenProgress {
    /// Bytes of segment files that are done.
    pub done: u64,
    /// Bytes of all segment files in use.
    pub total: u64,
}

/// Tells about once a second.
pub(super) struct Progress<'a> {
    pub(super) total: u64,
    /// Bytes of segments that are done as a whole.
    pub(super) done: u64,
    told: Instant,
    calls: u32,
    tell: &'a mut dyn FnMut(OpenProgress),
}

impl<'a> Progress<'a> {
    pub(super) fn new(tell: &'a mut dyn FnMut(OpenProgress)) -> Self {
        Self { total: 0, done: 0, told: Instant::now(), calls: 0, tell }
    }

    /// Reading has come to `at` in the segment that is being read.
    pub(super) fn reached(&mut self, at: u64) {
        self.calls = self.calls.wrapping_add(1);
        // The clock is not asked for every small frame; a large one takes its time anyway.
        if self.calls.is_multiple_of(64) && self.told.elapsed() >= EVERY {
            self.told = Instant::now();
            (self.tell)(OpenProgress {
                done: self.done.saturating_add(at).min(self.total),
                total: self.total,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_when_a_second_has_passed() {
        let mut told = Vec::new();
        let mut tell = |progress| told.push(progress);
        let mut progress = Progress::new(&mut tell);
        (progress.total, progress.done) = (1000, 300);
        (0..200).for_each(|_| progress.reached(50));
        let Some(long_ago) = progress.told.checked_sub(EVERY) else { return };
        progress.told = long_ago;
        (0..200).for_each(|_| progress.reached(60));
        assert_eq!(told, [OpenProgress { done: 360, total: 1000 }]);
    }
}
