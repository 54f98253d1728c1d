//! A race on purpose, under the lock the queue uses on one side only: ThreadSanitizer must find it, or its silence about
//! everything else means nothing. Built by `just tsan`, never by cargo.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

struct Racy(UnsafeCell<u64>);

// SAFETY: none. It is the fault that is to be found.
unsafe impl Sync for Racy {}

static VALUE: Racy = Racy(UnsafeCell::new(0));
static STARTED: AtomicU32 = AtomicU32::new(0);

fn bump() {
    STARTED.fetch_add(1, Ordering::Relaxed);
    while STARTED.load(Ordering::Relaxed) < 2 {}
    for _ in 0..1000 {
        // SAFETY: none, see above.
        unsafe { *VALUE.0.get() += 1 };
    }
}

/// Named as the harness, whose frames every test has: a suppression that hid those would hide this race too.
mod test {
    pub(super) fn run_test() {
        super::bump();
    }
}

fn main() {
    let other = thread::spawn(test::run_test);
    test::run_test();
    let _ = other.join();
}
