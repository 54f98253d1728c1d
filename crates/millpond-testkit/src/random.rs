//! Reproducible randomness: one seed, one run.

/// Whatever decides: a generator, or the bytes a fuzzer gives.
pub trait Dice {
    /// A number below `bound`, which is at least 1.
    fn below(&mut self, bound: u64) -> u64;

    /// A place in something of `length` elements, which is not empty.
    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }
}

impl Dice for Random {
    fn below(&mut self, bound: u64) -> u64 {
        Random::below(self, bound)
    }
}

/// `SplitMix64` (Steele, Lea, Flood 2014): small, and good enough to choose moments and sizes.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator with the seed in the environment variable `MILLPOND_SEED`, else with one from the clock. Returns the
    /// seed too: every test prints it.
    pub fn from_environment() -> (Self, u64) {
        let given = std::env::var("MILLPOND_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |elapsed| u64::from(elapsed.subsec_nanos()) ^ elapsed.as_secs())
        });
        (Self::new(seed), seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }
}
