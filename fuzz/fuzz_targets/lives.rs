//! Lives of a log whose every decision the fuzzer takes, cut at every call, with the ledger as the judge.

#![no_main]

use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use millpond_testkit::ledger::{Crash, Ledger};
use millpond_testkit::life::{Life, look};
use millpond_testkit::random::{Dice, Random};
use millpond_testkit::sim_disk::Medium;

/// Decisions from the input; when it is used up, all are 0.
struct Bytes<'a>(&'a [u8]);

impl Dice for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        let count = if bound <= 256 { 1 } else { 4 };
        let (now, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        now.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)) % bound.max(1)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut dice = Bytes(bytes);
    let (mut random, error) = (Random::new(dice.below(256)), Arc::new(Mutex::new(None)));
    let found = Arc::clone(&error);
    let observer = move |medium: &Medium, call: &_, ledger: &Ledger| {
        // An image of each moment is enough here: there are many moments and many inputs.
        let images = [(medium.clone(), Crash::Kill), (medium.images().one(&mut random), Crash::PowerCut)];
        for (image, crash) in images {
            if let Err(error) = look(image).and_then(|seen| ledger.judge(&seen, crash)) {
                found.lock().unwrap().get_or_insert(format!("{crash:?} after {call:?}: {error}"));
            }
        }
    };
    let mut life = Life::begin(1, observer).unwrap();
    let mut steps = 0;
    while !dice.0.is_empty() && steps < 16 {
        steps += 1;
        let result = life.step(&mut dice);
        if let Some(error) = error.lock().unwrap().take() {
            panic!("step {steps}: {error}");
        }
        result.unwrap();
    }
    life.check().unwrap();
});
