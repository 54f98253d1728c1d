//! Durable pushes of an event queue on RocksDB from many threads, compiled once with the published crate
//! `arch-event-queues` 0.1.1 and once with ours, which has its interface: `PROGRAM DIRECTORY SECONDS PRODUCERS`.
//! Prints one JSON line for each way to push.
//!
//! The published crate writes with `sync` and holds its lock of the next id meanwhile: one fsync for each push, whoever
//! else pushes. Ours answers a push when an fsync that covers it has returned, by default one that it shares with
//! others (`group`), or one of its own (`sync`). The promise is the same in all three.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arch_event_queues::{DurableEventQueue, DurableEventQueueOptions};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, seconds, producers] = arguments.as_slice() else {
        panic!("DIRECTORY SECONDS PRODUCERS");
    };
    let seconds: f64 = seconds.parse().expect("seconds");
    let producers: u64 = producers.parse().expect("producers");
    for (way, options) in ways() {
        let home = Path::new(directory).join(way);
        std::fs::create_dir(&home).expect("a directory");
        let per_second = rate(&home, options, producers, seconds);
        println!("{{\"way\":\"{way}\",\"producers\":{producers},\"perSecond\":{per_second:.1}}}");
    }
}

#[cfg(feature = "millpond")]
fn ways() -> Vec<(&'static str, DurableEventQueueOptions)> {
    let eager = DurableEventQueueOptions::eager;
    let sync = eager().durability(arch_event_queues::millpond::Durability::Sync);
    vec![("group", eager()), ("sync", sync)]
}

#[cfg(not(feature = "millpond"))]
fn ways() -> Vec<(&'static str, DurableEventQueueOptions)> {
    vec![("theirs", DurableEventQueueOptions::default())]
}

/// Pushes per second of `producers` threads for about `seconds`.
fn rate(home: &Path, options: DurableEventQueueOptions, producers: u64, seconds: f64) -> f64 {
    let queue = DurableEventQueue::<Vec<u8>>::open_with_options(home, options).expect("opens");
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                let mut own = 0;
                while !stop.load(Ordering::Relaxed) {
                    queue.push(vec![7; 256]).expect("a push");
                    own += 1;
                }
                done.fetch_add(own, Ordering::Relaxed);
            });
        }
        thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
    });
    done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}
