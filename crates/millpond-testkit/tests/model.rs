//! Random operations on a queue over the log, compared with a model of a few lines, with closes and opens in between.
#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use millpond::store::{LogOptions, LogStore};
use millpond::{Builder, Durability, Queue, Reserved, TryPushError};
use millpond_testkit::payload::payload;
use millpond_testkit::random::Random;

const RUNS: u64 = 40;
const STEPS: u64 = 300;

/// What a queue is: entries in order, some of them delivered.
#[derive(Default)]
struct Model {
    entries: BTreeMap<u64, u64>,
    in_flight: BTreeSet<u64>,
    highest: u64,
    nonce: u64,
}

impl Model {
    fn pushed(&mut self, id: u64, nonce: u64) {
        assert!(id > self.highest, "id {id} was given out after {}", self.highest);
        self.highest = id;
        self.entries.insert(id, nonce);
    }

    fn next_ready(&self) -> Option<u64> {
        self.entries.keys().find(|id| !self.in_flight.contains(id)).copied()
    }

    fn remove(&mut self, id: u64) -> bool {
        self.in_flight.remove(&id);
        self.entries.remove(&id).is_some()
    }

    fn next_nonce(&mut self) -> u64 {
        self.nonce += 1;
        self.nonce
    }
}

fn open(directory: &Path, random: &mut Random, capacity: u64) -> Queue {
    // Policy and segment size may change between lives.
    let durability = [Durability::Sync, Durability::Group, Durability::None];
    let durability = durability[usize::try_from(random.below(3)).unwrap()];
    let options = LogOptions { segment_bytes: 64 << (10 + random.below(3)), ..LogOptions::default() };
    let store = LogStore::open_with(directory, options).unwrap();
    assert!(store_is_whole(&store), "damage without a fault");
    Builder::new(store).capacity(capacity).durability(durability).open().unwrap()
}

fn store_is_whole(store: &LogStore) -> bool {
    let report = millpond::store::Store::recovery(store);
    report.clean && report.damage.is_empty() && report.dropped_tail_bytes == 0
}

/// One random step; `held` are the handles this side has.
fn step(queue: &Queue, model: &mut Model, held: &mut Vec<Reserved>, random: &mut Random, capacity: u64) {
    match random.below(10) {
        0..3 => {
            let nonce = model.next_nonce();
            match queue.try_push(payload(nonce)) {
                Ok(id) => model.pushed(id, nonce),
                Err(TryPushError::Full) => assert!(model.entries.len() as u64 >= capacity),
                Err(error) => panic!("{error}"),
            }
        }
        3 => {
            let room = capacity.saturating_sub(model.entries.len() as u64);
            let nonces: Vec<u64> = (0..random.below(8).min(room)).map(|_| model.next_nonce()).collect();
            let payloads: Vec<Vec<u8>> = nonces.iter().copied().map(payload).collect();
            let ids = queue.push_many(&payloads).unwrap();
            assert_eq!(ids.len(), nonces.len());
            ids.into_iter().zip(nonces).for_each(|(id, nonce)| model.pushed(id, nonce));
        }
        4..6 => {
            let item = queue.reserve().unwrap();
            assert_eq!(item.as_ref().map(Reserved::seq), model.next_ready());
            if let Some(item) = item {
                assert_eq!(*item, *payload(model.entries[&item.seq()]));
                model.in_flight.insert(item.seq());
                held.push(item);
            }
        }
        6..8 if !held.is_empty() => {
            let place = usize::try_from(random.below(held.len() as u64)).unwrap();
            let item = held.swap_remove(place);
            let id = item.seq();
            // It may have been acked by id, or nacked by id and delivered again on another handle.
            let holds = model.in_flight.contains(&id) && held.iter().all(|other| other.seq() != id);
            match random.below(3) {
                0 if holds => {
                    assert!(item.ack().unwrap());
                    model.remove(id);
                }
                1 if holds => {
                    assert!(item.nack().unwrap());
                    model.in_flight.remove(&id);
                }
                _ if holds => model.in_flight.retain(|other| *other != id),
                _ => drop(item.ack().unwrap()),
            }
        }
        8 => {
            let ids: Vec<u64> = (0..random.below(4)).map(|_| 1 + random.below(model.highest + 2)).collect();
            let distinct: BTreeSet<u64> = ids.iter().copied().collect();
            let removed = distinct.into_iter().filter(|id| model.remove(*id)).count() as u64;
            assert_eq!(queue.ack_many(&ids).unwrap(), removed);
            held.retain(|item| model.in_flight.contains(&item.seq()));
        }
        _ => {
            let id = 1 + random.below(model.highest + 2);
            assert_eq!(queue.get(id).unwrap(), model.entries.get(&id).copied().map(payload));
        }
    }
    assert_eq!(queue.len(), model.entries.len() as u64);
    assert_eq!(queue.ready_len(), (model.entries.len() - model.in_flight.len()) as u64);
}

#[test]
fn a_queue_on_the_log_is_what_the_model_says() {
    let (mut random, seed) = Random::from_environment();
    println!("model: MILLPOND_SEED={seed}");
    for _ in 0..RUNS {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut model = Model::default();
        let capacity = 1 + random.below(100);
        for _ in 0..=random.below(4) {
            let queue = open(directory.path(), &mut random, capacity);
            let stored: Vec<u64> = queue.iter().map(|entry| entry.unwrap().id).collect();
            assert_eq!(stored, model.entries.keys().copied().collect::<Vec<_>>(), "seed {seed}");
            let mut held = Vec::new();
            for _ in 0..STEPS {
                step(&queue, &mut model, &mut held, &mut random, capacity);
            }
            drop(held);
            model.in_flight.clear();
        }
    }
}
