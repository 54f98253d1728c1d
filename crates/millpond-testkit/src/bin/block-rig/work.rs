//! A process that works on a queue on a recorded disk and says, for each call and answer, how long the recording was:
//! `block-rig work STORE DIRECTORY sync|group|none FIRST-NONCE SEED ANSWERS close|kill RECORDING`.
//!
//! It ends after so many answers, by closing the queue or as kill -9 does.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use millpond::{Builder, Durability, Queue};
use millpond_testkit::journal::{Event, Placed};
use millpond_testkit::on_store;
use millpond_testkit::payload::payload;
use millpond_testkit::random::Random;
use millpond_testkit::subjects::Subject;

/// Nonces of one producer in one life.
pub(crate) const NONCES: u64 = 1 << 24;

/// What is said to whom.
pub(crate) struct Voice {
    recording: File,
}

impl Voice {
    pub(crate) fn new(recording: &str) -> Self {
        Self { recording: File::open(recording).unwrap() }
    }

    /// Says an event with one write, and where the recording stands.
    pub(crate) fn say(&self, event: Event) {
        let at = self.recording.metadata().unwrap().len();
        say(&Placed { at, event }.to_string());
    }
}

/// Writes a text with one call.
pub(crate) fn say(text: &str) {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("the pipe is open");
}

pub(crate) fn durability(name: &str) -> Durability {
    match name {
        "sync" => Durability::Sync,
        "group" => Durability::Group,
        _ => Durability::None,
    }
}

/// One life.
struct Life {
    voice: Voice,
    /// Answers to come before the end.
    left: AtomicU64,
    is_killed: bool,
    is_over: AtomicBool,
}

impl Life {
    /// Counts an answer. The last one ends the life.
    fn answered(&self, queue: &Queue, event: Event) {
        self.voice.say(event);
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            if self.is_killed {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
            }
            self.is_over.store(true, Ordering::Relaxed);
            queue.close();
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn produce(&self, queue: &Queue, first: u64, mut random: Random) {
        for nonce in first.. {
            if self.is_over() {
                break;
            }
            self.voice.say(Event::Push(nonce));
            match queue.push(payload(nonce)) {
                Ok(id) => self.answered(queue, Event::Pushed(nonce, id)),
                // It waited for room when the life ended.
                Err(error) => return assert!(self.is_over(), "{error}"),
            }
            if random.below(50) == 0 {
                thread::sleep(Duration::from_micros(random.below(2000)));
            }
        }
    }

    fn consume(&self, queue: &Queue, mut random: Random) {
        while !self.is_over() {
            let Some(item) = queue.reserve_timeout(Duration::from_millis(20)).unwrap() else { continue };
            let id = item.seq();
            match random.below(8) {
                // Left to the next delivery.
                0 => drop(item),
                1 => {
                    self.voice.say(Event::Ack(id));
                    queue.ack_many(&[id]).unwrap();
                    self.answered(queue, Event::Acked(id));
                }
                _ => {
                    self.voice.say(Event::Ack(id));
                    item.ack().unwrap();
                    self.answered(queue, Event::Acked(id));
                }
            }
        }
    }
}

pub(crate) fn work(arguments: &[String]) {
    let [store, directory, policy, first, seed, answers, end, recording] = arguments else {
        panic!("work STORE DIRECTORY DURABILITY FIRST-NONCE SEED ANSWERS close|kill RECORDING");
    };
    let life = Life {
        voice: Voice::new(recording),
        left: AtomicU64::new(answers.parse().unwrap()),
        is_killed: end == "kill",
        is_over: AtomicBool::new(false),
    };
    let (first, random) = (first.parse().unwrap(), Random::new(seed.parse().unwrap()));
    on_store!(store.as_str(), live(Path::new(directory), durability(policy), first, random, &life))
        .expect("a store of this build");
}

fn live<T: Subject>(directory: &Path, policy: Durability, first: u64, mut random: Random, life: &Life) {
    let queue = Builder::new(T::open(directory).unwrap()).capacity(64).durability(policy).open().unwrap();
    // A lone producer shows the order of one call after the other, many share commits.
    let producers = if random.below(3) == 0 { 1 } else { 4 };
    thread::scope(|scope| {
        for producer in 0..producers {
            let (queue, random) = (&queue, Random::new(random.next_u64()));
            scope.spawn(move || life.produce(queue, first + producer * NONCES, random));
        }
        for _ in 0..2 {
            let (queue, random) = (&queue, Random::new(random.next_u64()));
            scope.spawn(move || life.consume(queue, random));
        }
    });
    queue.finish().unwrap();
}
