//! A door that is opened once.

use std::sync::atomic::{AtomicU32, Ordering};

const SHUT: u32 = 0;
const OPEN: u32 = 1;

/// Threads wait at it until it is open; all of them wake by one call of the system. What was written before it was opened
/// is seen behind it.
#[derive(Default)]
pub(crate) struct Latch(AtomicU32);

impl Latch {
    pub(crate) fn open(&self) {
        self.0.store(OPEN, Ordering::Release);
        atomic_wait::wake_all(&raw const self.0);
    }

    pub(crate) fn wait(&self) {
        while self.0.load(Ordering::Acquire) == SHUT {
            // Returns at once when it was opened since.
            atomic_wait::wait(&self.0, SHUT);
        }
    }
}
