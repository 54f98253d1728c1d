//! What the timed benches (`benches/core`) and the counted paths (`src/bin/hot-paths.rs`) share.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// What is pushed unless a bench is about something else.
pub const PAYLOAD: [u8; 256] = [7; 256];

/// So many entries that no push ever waits for room.
pub const CAPACITY: u64 = 1 << 40;

/// How long `producers` threads take to call `push` so many times together. Starting the threads is not counted.
pub fn timed(producers: u64, pushes: u64, push: impl Fn() + Sync) -> Duration {
    if producers == 1 {
        let started = Instant::now();
        (0..pushes).for_each(|_| push());
        return started.elapsed();
    }
    let gate = Barrier::new(usize::try_from(producers).unwrap_or(usize::MAX).saturating_add(1));
    let (gate, push) = (&gate, &push);
    let mut started = Instant::now();
    thread::scope(|scope| {
        for producer in 0..producers {
            let own = pushes / producers + u64::from(producer < pushes % producers);
            scope.spawn(move || {
                gate.wait();
                (0..own).for_each(|_| push());
            });
        }
        gate.wait();
        started = Instant::now();
    });
    started.elapsed()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn threads_share_the_pushes_and_leave_none_out() {
        for (producers, pushes) in [(1, 5), (4, 3), (4, 4), (16, 1000)] {
            let done = AtomicU64::new(0);
            timed(producers, pushes, || {
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(done.into_inner(), pushes, "{producers} producers");
        }
    }
}
