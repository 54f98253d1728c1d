//! Random lives of one queue on a store that stops at any write: many producers and consumers on real threads, random
//! sizes, a tight capacity. Each life is judged by the oracle. `MILLPOND_SEED` repeats a run's choices; which thread
//! comes first is the machine's.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use millpond::{Builder, Durability, Queue, Reserved};
use millpond_testkit::fault_store::{Disk, FaultStore, Faults};
use millpond_testkit::journal::Journal;
use millpond_testkit::oracle::judge;
use millpond_testkit::payload::payload;
use millpond_testkit::random::Random;
use parking_lot::Mutex;

const LIVES: u64 = 300;
const PRODUCERS: u64 = 6;
const CONSUMERS: u64 = 2;
const PUSHES: u64 = 30;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// What the threads of one life share.
struct Life {
    queue: Queue,
    journal: Mutex<Journal>,
    nonce: AtomicU64,
    /// Items somebody holds.
    held: Mutex<BTreeSet<u64>>,
    /// An ack that returned promises that the entry is gone for good.
    acks_are_durable: bool,
    over: AtomicBool,
}

impl Life {
    fn next_nonce(&self) -> u64 {
        let nonce = self.nonce.fetch_add(1, Ordering::SeqCst);
        self.journal.lock().pushes.insert(nonce);
        nonce
    }

    fn pushed(&self, id: u64, nonce: u64) {
        let before = self.journal.lock().pushed.insert(id, nonce);
        assert_eq!(before, None, "id {id} was given out twice");
    }

    fn produce(&self, random: &mut Random) {
        for _ in 0..PUSHES {
            let nonce = self.next_nonce();
            let bytes = payload(nonce);
            let id = match random.below(6) {
                0 => self.queue.try_push(bytes).ok(),
                1 => self.queue.push_with(bytes, None, Some(Duration::from_micros(random.below(500)))).ok(),
                2 => block_on(self.queue.push_async(bytes)).ok(),
                // Dropped at once, or later: then it is stored or not, and nobody was told.
                3 => {
                    let push = self.queue.push_async(bytes);
                    thread::sleep(Duration::from_micros(random.below(100)));
                    drop(push);
                    None
                }
                4 => {
                    let other = self.next_nonce();
                    let ids = self.queue.push_many(&[bytes, payload(other)]).ok();
                    ids.map(|ids| {
                        self.pushed(ids[1], other);
                        ids[0]
                    })
                }
                _ => self.queue.push_with(bytes, Some(Durability::Sync), None).ok(),
            };
            if let Some(id) = id {
                self.pushed(id, nonce);
            }
        }
    }

    fn consume(&self, random: &mut Random) {
        while !self.over.load(Ordering::SeqCst) {
            let items = match random.below(3) {
                0 => self.queue.reserve_many(3).unwrap_or_default(),
                1 => {
                    // Given up before it is polled to its end.
                    let mut wait = self.queue.reserve_async();
                    let polled = pin!(&mut wait).poll(&mut Context::from_waker(Waker::noop()));
                    match polled {
                        Poll::Ready(item) => item.unwrap_or_default().into_iter().collect(),
                        Poll::Pending => Vec::new(),
                    }
                }
                _ => {
                    let item = self.queue.reserve_timeout(Duration::from_micros(random.below(500)));
                    item.unwrap_or_default().into_iter().collect()
                }
            };
            for item in items {
                assert!(self.held.lock().insert(item.seq()), "entry {} is held twice", item.seq());
                self.settle(&item, random);
            }
        }
    }

    fn settle(&self, item: &Reserved, random: &mut Random) {
        let id = item.seq();
        let choice = random.below(8);
        if choice < 6 {
            self.journal.lock().acks.insert(id);
        }
        // No longer this thread's from here on, whatever the settle brings.
        self.held.lock().remove(&id);
        let gone = match choice {
            0..3 => item.ack().is_ok_and(|gone| gone),
            3..5 => block_on(item.ack_async()).is_ok_and(|gone| gone),
            5 => block_on(self.queue.ack_many_async(&[id, id])).is_ok_and(|removed| removed == 1),
            6 => {
                item.nack().unwrap();
                false
            }
            _ => false,
        };
        if gone && self.acks_are_durable {
            self.journal.lock().acked.insert(id);
        }
    }
}

fn one_life(disk: &Arc<Disk>, journal: Journal, nonce: u64, random: &mut Random) -> (Journal, u64) {
    let durability = [Durability::Sync, Durability::Group, Durability::None];
    let durability = durability[usize::try_from(random.below(3)).unwrap()];
    let keeps = durability != Durability::None;
    let durable_acks = random.below(3) > 0;
    let cuts = keeps && random.below(2) == 0;
    let mut builder = Builder::new(FaultStore(Arc::clone(disk))).durability(durability);
    builder = builder.capacity(2 + random.below(6)).durable_acks(durable_acks);
    if random.below(2) == 0 {
        builder = builder.capacity_bytes(1 + random.below(6000));
    }
    let queue = builder.open().unwrap();
    disk.set_faults(Faults {
        // Whatever a store without durability had not hardened may be gone after a stop, and that is no fault.
        stops: if keeps { [0, 40, 150][usize::try_from(random.below(3)).unwrap()] } else { 0 },
        no_space: [0, 10, 50][usize::try_from(random.below(3)).unwrap()],
        inline: random.below(3),
    });
    let acks_are_durable = durable_acks || !(cuts || keeps);
    let life = Life {
        queue,
        journal: Mutex::new(journal),
        nonce: AtomicU64::new(nonce),
        held: Mutex::default(),
        acks_are_durable,
        over: AtomicBool::new(false),
    };
    let mut seeds: Vec<Random> = (0..PRODUCERS + CONSUMERS).map(|_| Random::new(random.next_u64())).collect();
    thread::scope(|scope| {
        let life = &life;
        // Each is joined: how a scope waits for the others is not seen by ThreadSanitizer.
        let consumers: Vec<_> = seeds
            .drain(..usize::try_from(CONSUMERS).unwrap())
            .map(|mut random| scope.spawn(move || life.consume(&mut random)))
            .collect();
        let producers: Vec<_> =
            seeds.into_iter().map(|mut random| scope.spawn(move || life.produce(&mut random))).collect();
        let mut ended: Vec<_> = producers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        life.over.store(true, Ordering::SeqCst);
        ended.extend(consumers.into_iter().map(thread::ScopedJoinHandle::join));
        for end in ended {
            end.unwrap();
        }
    });
    let Life { queue, journal, nonce, .. } = life;
    disk.set_faults(Faults::default());
    // Pushes whose future was dropped may be in line still; the flush stands behind them.
    let _ = queue.flush();
    let stats = queue.stats();
    assert_eq!(
        (stats.length, stats.claimed, stats.waiting_pushes, stats.in_flight),
        (disk.entries(), 0, 0, 0),
        "the counts follow the store"
    );
    assert_eq!(stats.ready, stats.length);
    assert_eq!(stats.poisoned, disk.is_stopped());
    if cuts {
        disk.stop();
    }
    drop(queue);
    if disk.is_stopped() {
        disk.crash();
    }
    (journal.into_inner(), nonce.into_inner())
}

/// The lives of one disk, each judged. Returns how many operations they were at least.
fn lives(seed: u64) -> usize {
    let mut random = Random::new(seed);
    println!("seed {seed}");
    let disk = Disk::new(random.next_u64());
    let (mut journal, mut nonce, mut delivered) = (Journal::default(), 1, 0);
    // The judge's own entry is none of a producer's.
    journal.pushes.insert(0);
    for life in 0..LIVES {
        (journal, nonce) = one_life(&disk, journal, nonce, &mut random);
        let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group).open().unwrap();
        let verdict = judge(&queue, &mut journal).unwrap();
        assert!(verdict.violations.is_empty(), "seed {seed} life {life}: {:#?}", verdict.violations);
        delivered += verdict.delivered;
    }
    let (acknowledged, commits) = (journal.pushed.len(), disk.commits());
    println!(
        "seed {seed}: {LIVES} lives, {acknowledged} acknowledged, {delivered} redelivered, {commits} commits"
    );
    assert!(acknowledged > 5000, "too little load to mean anything");
    // Each push, and of each entry that was acked its delivery and its ack; what was given back is not counted.
    journal.pushes.len() + 2 * journal.acks.len()
}

#[test]
fn a_machine_of_many_producers_loses_nothing() {
    let (mut random, seed) = Random::from_environment();
    let wanted: usize = std::env::var("MILLPOND_OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (mut operations, mut disks) = (lives(seed), 1);
    while operations < wanted {
        operations += lives(random.next_u64());
        disks += 1;
    }
    println!("machine: {operations} operations on {disks} disks");
}
