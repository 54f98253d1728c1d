//! R1: long random lives, cut at every call, with every choice of what reached the disk.

use std::sync::Arc;

use millpond_testkit::ledger::{Crash, Ledger};
use millpond_testkit::life::Life;
use millpond_testkit::random::Random;
use millpond_testkit::sim_disk::{Call, Medium};
use parking_lot::Mutex;

use crate::budget::{Run, budget};
use crate::images::Images;

const STEPS: u64 = 60;

/// Looks at every image of one moment.
fn judge(images: &mut Images, random: &mut Random, medium: &Medium, ledger: &Ledger) -> Result<(), String> {
    images.moments += 1;
    let mut result = Ok(());
    let mut check = |image: Medium, crash: Crash| {
        let judged = images.look(image).and_then(|(seen, _)| ledger.judge(&seen, crash));
        if result.is_ok() {
            result = judged.map_err(|error| format!("{crash:?}: {error}"));
        }
    };
    check(medium.clone(), Crash::Kill);
    medium.images().each(random, |image| check(image, Crash::PowerCut));
    result
}

fn life(seed: u64, images: &Arc<Mutex<Images>>) -> Result<(), String> {
    let mut random = Random::new(seed);
    let (images, mut dice) = (Arc::clone(images), Random::new(random.next_u64()));
    let failure = Arc::new(Mutex::new(None));
    let found = Arc::clone(&failure);
    let mut last = Vec::new();
    let mut life = Life::begin(seed, move |medium: &Medium, call: &Call, ledger: &Ledger| {
        last.push(call.clone());
        let mut found = found.lock();
        if found.is_none()
            && let Err(error) = judge(&mut images.lock(), &mut dice, medium, ledger)
        {
            let from = last.len().saturating_sub(12);
            *found = Some(format!("{error}\nafter call {}: ... {:?}", last.len(), &last[from..]));
        }
    })?;
    for step in 0..STEPS {
        let result = life.step(&mut random);
        let failed = failure.lock().take().map_or(result, Err);
        failed.map_err(|error| format!("step {step}: {error}"))?;
    }
    life.check()
}

/// O-10: what was answered is on the disk when the power goes. On real file systems: `just power-cut`.
#[test]
fn r01_what_was_durable_survives_every_power_cut() {
    let (run, mut random) = Run::begin("R1 random lives");
    let wanted = budget(1500, 100_000, 1_000_000);
    let images = Arc::new(Mutex::new(Images::default()));
    let mut lives = 0;
    while images.lock().distinct() < wanted {
        // The first life's seed is the one that is printed, so that a failing life can be repeated alone.
        let seed = if lives == 0 { run.seed } else { random.next_u64() };
        if let Err(error) = life(seed, &images) {
            panic!("life {lives}, MILLPOND_SEED={seed}: {error}");
        }
        images.lock().forget();
        lives += 1;
    }
    let images = images.lock();
    let counts = [("lives", lives), ("moments", images.moments), ("images", images.distinct())];
    run.end(&[counts[0], counts[1], counts[2], ("judgements", images.judged)]);
}
