//! The process that the kill test kills: producers and consumers on one queue, every call and answer on standard output.
//!
//! `kill-worker STORE DIRECTORY sync|group|none FIRST-NONCE SEED`

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a failure ends the process, which fails the test"
)]

use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use millpond::{Builder, Durability, Queue};
use millpond_testkit::journal::{self, Event};
use millpond_testkit::on_store;
use millpond_testkit::payload::payload;
use millpond_testkit::random::Random;
use millpond_testkit::subjects::Subject;

/// Nonces of one producer in one life.
const NONCES: u64 = 1 << 24;

fn say(event: Event) {
    journal::write(&mut io::stdout().lock(), event).expect("the pipe is open");
    io::stdout().flush().expect("the pipe is open");
}

fn produce(queue: &Queue, first: u64, mut random: Random) {
    for nonce in first.. {
        say(Event::Push(nonce));
        let id = queue.push(payload(nonce)).unwrap();
        say(Event::Pushed(nonce, id));
        if random.below(50) == 0 {
            thread::sleep(Duration::from_micros(random.below(2000)));
        }
    }
}

fn consume(queue: &Queue, mut random: Random) {
    while let Some(item) = queue.reserve_timeout(Duration::from_mins(1)).unwrap() {
        match random.below(8) {
            // Left to the next delivery.
            0 => drop(item),
            1 => {
                say(Event::Ack(item.seq()));
                queue.ack_many(&[item.seq()]).unwrap();
                say(Event::Acked(item.seq()));
            }
            _ => {
                say(Event::Ack(item.seq()));
                item.ack().unwrap();
                say(Event::Acked(item.seq()));
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, directory, durability, first, seed] = arguments.as_slice() else {
        panic!("kill-worker STORE DIRECTORY DURABILITY FIRST-NONCE SEED");
    };
    let durability = match durability.as_str() {
        "sync" => Durability::Sync,
        "group" => Durability::Group,
        _ => Durability::None,
    };
    let first: u64 = first.parse().unwrap();
    let random = Random::new(seed.parse().unwrap());
    on_store!(store.as_str(), run(Path::new(directory), durability, first, random))
        .expect("a store of this build");
}

fn run<T: Subject>(directory: &Path, durability: Durability, first: u64, mut random: Random) {
    let store = T::open(directory).unwrap();
    let queue = Builder::new(store).capacity(256).durability(durability).open().unwrap();
    thread::scope(|scope| {
        for producer in 0..4 {
            let (queue, random) = (&queue, Random::new(random.next_u64()));
            scope.spawn(move || produce(queue, first + producer * NONCES, random));
        }
        for _ in 0..2 {
            let (queue, random) = (&queue, Random::new(random.next_u64()));
            scope.spawn(move || consume(queue, random));
        }
    });
}
