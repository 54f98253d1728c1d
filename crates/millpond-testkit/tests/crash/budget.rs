//! How much is tried.

use std::time::Instant;

use millpond_testkit::random::Random;

/// One number for each size of run.
pub(crate) fn budget(taste: u64, slice: u64, full: u64) -> u64 {
    match std::env::var("MILLPOND_CRASH").as_deref() {
        Ok("full") => full,
        Ok("slice") => slice,
        Ok("taste") | Err(_) => taste,
        Ok(other) => panic!("MILLPOND_CRASH={other}: taste, slice or full"),
    }
}

/// A run that counts and says so at its end.
pub(crate) struct Run {
    name: &'static str,
    pub(crate) seed: u64,
    began: Instant,
}

impl Run {
    pub(crate) fn begin(name: &'static str) -> (Self, Random) {
        let (random, seed) = Random::from_environment();
        println!("{name}: MILLPOND_SEED={seed}");
        (Self { name, seed, began: Instant::now() }, random)
    }

    /// Prints the counts.
    pub(crate) fn end(&self, counts: &[(&str, u64)]) {
        let seconds = self.began.elapsed().as_secs_f64();
        let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        println!("{}: {} in {seconds:.1} s, MILLPOND_SEED={}", self.name, counts.join(", "), self.seed);
    }
}
