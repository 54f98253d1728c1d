//! What threads that push and wait can reach at best: as many threads, the same commit, and no queue between them.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// Arrivals per second of `threads` threads. The last one to arrive makes `commit` for all of them, and all of them wake
/// by one call of the system: each commit takes in everybody, and nobody does anything else.
pub fn rate(threads: u32, seconds: f64, commit: impl Fn() + Sync) -> f64 {
    let (arrived, round, stop) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
    let done = AtomicU64::new(0);
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let own = round.load(Ordering::Acquire);
                    if stop.load(Ordering::Acquire) {
                        break;
                    }
                    if arrived.fetch_add(1, Ordering::AcqRel) + 1 < threads {
                        while round.load(Ordering::Acquire) == own {
                            atomic_wait::wait(&round, own);
                        }
                        continue;
                    }
                    arrived.store(0, Ordering::Release);
                    commit();
                    done.fetch_add(u64::from(threads), Ordering::Relaxed);
                    // ORDER: whoever is let through sees the end, or all of them go on.
                    stop.store(started.elapsed().as_secs_f64() >= seconds, Ordering::Release);
                    round.fetch_add(1, Ordering::AcqRel);
                    atomic_wait::wake_all(&raw const round);
                }
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}
