//! R3: crashes while a crash is being recovered from, three deep. Recovery itself writes nothing, but the first append
//! after it does, and it syncs what a killed process left.

use std::sync::Arc;

use millpond_testkit::ledger::{Crash, Ledger};
use millpond_testkit::life::{Life, Start};
use millpond_testkit::random::Random;
use millpond_testkit::sim_disk::Medium;
use parking_lot::Mutex;

use crate::budget::{Run, budget};
use crate::images::Images;

const DEPTH: u64 = 3;
/// Images of one moment.
const IMAGES: usize = 6;

/// What a life left behind for others to begin with, and what was wrong.
#[derive(Default)]
struct Left {
    starts: Vec<Start>,
    error: Option<String>,
}

/// Lives one life, looks at some images of every moment and keeps one in so many to go on with.
fn live(
    start: Start,
    steps: u64,
    rare: u64,
    seed: u64,
    images: &Arc<Mutex<Images>>,
) -> Result<Vec<Start>, String> {
    let mut random = Random::new(seed);
    let left = Arc::new(Mutex::new(Left::default()));
    let (sink, images, mut dice) = (Arc::clone(&left), Arc::clone(images), Random::new(random.next_u64()));
    let used = start.first;
    let observer = move |medium: &Medium, call: &_, ledger: &Ledger| {
        let (mut left, mut images) = (sink.lock(), images.lock());
        images.moments += 1;
        let mut candidates = vec![(medium.clone(), Crash::Kill)];
        medium.images().some(IMAGES, &mut dice, |image| candidates.push((image, Crash::PowerCut)));
        for (medium, crash) in candidates {
            let judged = images.look(medium.clone()).and_then(|(seen, _)| {
                ledger.judge(&seen, crash)?;
                Ok(seen)
            });
            match judged {
                Err(error) => drop(left.error.get_or_insert(format!("{crash:?} after {call:?}: {error}"))),
                Ok(found) if dice.below(rare) == 0 => {
                    let mut ledger = ledger.clone();
                    // What an uninterrupted open shows is what an interrupted one must show.
                    if crash == Crash::PowerCut {
                        ledger.settle_on(&found);
                    }
                    left.starts.push(Start { medium, ledger, crash, first: used + 1000 });
                }
                Ok(_) => {}
            }
        }
    };
    let mut life = Life::resume(start, seed, observer)?;
    for step in 0..steps {
        let result = life.step(&mut random);
        left.lock().error.take().map_or(result, Err).map_err(|error| format!("step {step}: {error}"))?;
    }
    life.check()?;
    let mut left = left.lock();
    left.error.take().map_or_else(|| Ok(std::mem::take(&mut left.starts)), Err)
}

/// O-04: killed while it recovers, three deep.
#[test]
fn r03_a_crash_while_recovering_from_a_crash_changes_nothing() {
    let (run, mut random) = Run::begin("R3 crashes in recovery");
    let wanted = budget(1000, 20_000, 100_000);
    let images = Arc::new(Mutex::new(Images::default()));
    let (mut lives, mut deep, mut first) = (0, 0, true);
    while deep < wanted {
        let seed = if std::mem::take(&mut first) { run.seed } else { random.next_u64() };
        let mut inner = Random::new(seed);
        let mut starts = vec![Start::default()];
        for depth in 0..=DEPTH {
            let before = images.lock().distinct();
            // The first life is long and leaves few to go on with, the others are a few appends each.
            let (steps, rare) = if depth == 0 { (30, 250) } else { (3, 40) };
            let mut next = Vec::new();
            for start in starts {
                lives += 1;
                match live(start, steps, rare, inner.next_u64(), &images) {
                    Ok(left) => next.extend(left),
                    Err(error) => panic!("depth {depth}, MILLPOND_SEED={seed}: {error}"),
                }
            }
            let mut images = images.lock();
            images.forget();
            deep += if depth > 0 { images.distinct() - before } else { 0 };
            starts = next;
        }
    }
    run.end(&[("lives", lives), ("images behind a first crash", deep)]);
}
