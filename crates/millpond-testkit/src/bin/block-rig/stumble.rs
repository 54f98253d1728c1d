//! A process that works until a call fails, tries on, and opens the queue again when its disk is whole:
//! `block-rig stumble STORE DIRECTORY DURABILITY FIRST-NONCE SEED RECORDING`.
//!
//! Beside events it says, a line each: `failed CODE`, `late CODE|answered` for calls after the failure, `stopped` (then it
//! waits for a line), `reopened` or `refused CODE`, `there ID NONCE|foreign` for each entry, `damage ...`.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use millpond::{Builder, Durability, Queue};
use millpond_testkit::journal::Event;
use millpond_testkit::on_store;
use millpond_testkit::payload::{nonce, payload};
use millpond_testkit::random::Random;
use millpond_testkit::subjects::Subject;

use crate::work::{NONCES, Voice, durability, say};

/// Pushes of one producer before it gives up waiting for the fault.
const PUSHES: u64 = 1500;
/// Calls after the failure, and pushes after the next open.
const LATE: u64 = 10;

pub(crate) fn stumble(arguments: &[String]) {
    let [store, directory, policy, first, seed, recording] = arguments else {
        panic!("stumble STORE DIRECTORY DURABILITY FIRST-NONCE SEED RECORDING");
    };
    let life = Life {
        voice: Voice::new(recording),
        first: first.parse().unwrap(),
        has_failed: AtomicBool::new(false),
    };
    let random = Random::new(seed.parse().unwrap());
    on_store!(store.as_str(), live(Path::new(directory), durability(policy), random, &life))
        .expect("a store of this build");
}

struct Life {
    voice: Voice,
    first: u64,
    has_failed: AtomicBool,
}

impl Life {
    fn failed(&self, code: impl std::fmt::Display) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            say(&format!("failed {code}\n"));
        }
    }

    fn produce(&self, queue: &Queue, first: u64) {
        for nonce in first..first + PUSHES {
            if self.has_failed.load(Ordering::Relaxed) {
                break;
            }
            self.voice.say(Event::Push(nonce));
            match queue.push(payload(nonce)) {
                Ok(id) => self.voice.say(Event::Pushed(nonce, id)),
                Err(error) => return self.failed(error.code()),
            }
        }
    }

    /// Acks two of three.
    fn consume(&self, queue: &Queue, is_last: &AtomicBool) {
        while !self.has_failed.load(Ordering::Relaxed) && !is_last.load(Ordering::Relaxed) {
            let item = match queue.reserve_timeout(Duration::from_millis(20)) {
                Ok(Some(item)) => item,
                Ok(None) => continue,
                Err(error) => return self.failed(error.code()),
            };
            let id = item.seq();
            if id.is_multiple_of(3) {
                // Stays in flight, and comes again after the next open.
                std::mem::forget(item);
                continue;
            }
            self.voice.say(Event::Ack(id));
            match item.ack() {
                Ok(_) => self.voice.say(Event::Acked(id)),
                Err(error) => return self.failed(error.code()),
            }
        }
    }
}

fn live<T: Subject>(directory: &Path, policy: Durability, mut random: Random, life: &Life) {
    let open =
        || T::open(directory).map(|store| Builder::new(store).capacity(1 << 20).durability(policy).open());
    let queue = open().unwrap().unwrap();
    let producers = if random.below(3) == 0 { 1 } else { 4 };
    let is_last = AtomicBool::new(false);
    thread::scope(|scope| {
        let consumer = scope.spawn(|| life.consume(&queue, &is_last));
        let all: Vec<_> = (0..producers)
            .map(|producer| {
                let queue = &queue;
                scope.spawn(move || life.produce(queue, life.first + producer * NONCES))
            })
            .collect();
        for producer in all {
            producer.join().unwrap();
        }
        is_last.store(true, Ordering::Relaxed);
        consumer.join().unwrap();
    });
    if life.has_failed.load(Ordering::Relaxed) {
        for late in 0..LATE {
            match queue.try_push(payload(life.first + (late << 40))) {
                Ok(_) => say("late answered\n"),
                Err(_) => say("late refused\n"),
            }
        }
        match queue.ack(queue.iter().next().and_then(Result::ok).map_or(1, |entry| entry.id)) {
            Ok(true) => say("late answered\n"),
            Ok(false) | Err(_) => say("late refused\n"),
        }
    }
    drop(queue.finish());
    drop(queue);
    say("stopped\n");
    io::stdin().read_line(&mut String::new()).unwrap();
    let queue = match open() {
        Ok(Ok(queue)) => queue,
        Ok(Err(error)) => return say(&format!("refused {}\n", error.code())),
        Err(error) => return say(&format!("refused {}\n", error.code())),
    };
    say("reopened\n");
    for damage in queue.recovery().damage {
        say(&format!("damage {damage:?}\n"));
    }
    for entry in &queue {
        let Ok(entry) = entry else { return say("damage: an entry cannot be read\n") };
        match nonce(&entry.payload) {
            Some(nonce) => say(&format!("there {} {nonce}\n", entry.id)),
            None => say(&format!("there {} foreign\n", entry.id)),
        }
    }
    for nonce in (life.first + (1 << 30)..).take(usize::try_from(LATE).unwrap()) {
        life.voice.say(Event::Push(nonce));
        match queue.push(payload(nonce)) {
            Ok(id) => life.voice.say(Event::Pushed(nonce, id)),
            Err(error) => say(&format!("again {}\n", error.code())),
        }
    }
    drop(queue.finish());
}
