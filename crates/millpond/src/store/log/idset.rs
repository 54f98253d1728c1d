//! A set of ids that stays small whether they come in long runs or scattered: at most an eighth of a byte for each id
//! of a crowded stretch, four bytes for a run in an empty one.

use std::collections::BTreeMap;

/// Ids of one chunk: their low 16 bits.
const SPAN: u64 = 1 << 16;
const WORDS: usize = 1024;
/// Runs up to which a list of them is no larger than the bitmap.
const RUNS: usize = 2048;
/// Ids below which a bitmap becomes a list again.
const FEW: u32 = 512;

/// The ids of one chunk.
#[derive(Clone, Debug)]
enum Chunk {
    /// Inclusive runs that neither overlap nor touch, in order.
    Runs(Vec<(u16, u16)>),
    Bits(Box<[u64; WORDS]>),
}

/// A set of ids.
#[derive(Clone, Debug, Default)]
pub(super) struct IdSet {
    chunks: BTreeMap<u64, Chunk>,
    len: u64,
}

/// The bits of `low..=high` that lie in this word.
fn mask(word: usize, low: u16, high: u16) -> u64 {
    let (low, high) = (usize::from(low), usize::from(high));
    let from = if low / 64 == word { low % 64 } else { 0 };
    let to = if high / 64 == word { high % 64 } else { 63 };
    (u64::MAX << from) & (u64::MAX >> (63 - to))
}

/// Calls `each` for every run of ones in a word, in order.
fn runs_of(mut word: u64, mut each: impl FnMut(u32, u32)) {
    let mut base = 0;
    while word != 0 {
        let skip = word.trailing_zeros();
        let length = (word >> skip).trailing_ones();
        each(base + skip, base + skip + length - 1);
        base += skip + length;
        word = word.checked_shr(skip + length).unwrap_or(0);
    }
}

/// A number that is known to be below [`SPAN`].
fn low_bits(value: u64) -> u16 {
    u16::try_from(value & (SPAN - 1)).unwrap_or(u16::MAX)
}

fn in_word(word: usize, bit: u32) -> u16 {
    low_bits(word as u64 * 64 + u64::from(bit))
}

fn width(run: (u16, u16)) -> u32 {
    u32::from(run.1) - u32::from(run.0) + 1
}

impl Chunk {
    /// Adds a run and says how many ids are new.
    fn insert(&mut self, low: u16, high: u16) -> u32 {
        match self {
            Self::Runs(runs) => {
                let from = runs.partition_point(|run| u32::from(run.1) + 1 < u32::from(low));
                let to = from + runs[from..].partition_point(|run| u32::from(run.0) <= u32::from(high) + 1);
                let before: u32 = runs[from..to].iter().map(|run| width(*run)).sum();
                let first = runs[from..to].first().map_or(low, |run| run.0.min(low));
                let last = runs[from..to].last().map_or(high, |run| run.1.max(high));
                runs.splice(from..to, [(first, last)]);
                self.shrink();
                width((first, last)) - before
            }
            Self::Bits(bits) => set(bits, low, high),
        }
    }

    /// Takes ids out, calls `gone` for every run of them, and says how many there were.
    fn remove(&mut self, low: u16, high: u16, mut gone: impl FnMut(u16, u16)) -> u32 {
        match self {
            Self::Runs(runs) => {
                let from = runs.partition_point(|run| run.1 < low);
                let to = from + runs[from..].partition_point(|run| run.0 <= high);
                let mut removed = 0;
                for run in &runs[from..to] {
                    let part = (run.0.max(low), run.1.min(high));
                    gone(part.0, part.1);
                    removed += width(part);
                }
                let left = runs[from..to].first().filter(|run| run.0 < low).map(|run| (run.0, low - 1));
                let right = runs[from..to].last().filter(|run| run.1 > high).map(|run| (high + 1, run.1));
                runs.splice(from..to, left.into_iter().chain(right));
                self.shrink();
                removed
            }
            Self::Bits(bits) => {
                let mut removed = 0;
                for (at, word) in
                    bits.iter_mut().enumerate().take(usize::from(high) / 64 + 1).skip(usize::from(low) / 64)
                {
                    let found = *word & mask(at, low, high);
                    *word &= !found;
                    removed += found.count_ones();
                    runs_of(found, |first, last| gone(in_word(at, first), in_word(at, last)));
                }
                if bits.iter().map(|word| word.count_ones()).sum::<u32>() < FEW {
                    let mut runs = Vec::new();
                    self.each(|low, high| push_run(&mut runs, low, high));
                    *self = Self::Runs(runs);
                }
                removed
            }
        }
    }

    /// Turns a list that became too long into a bitmap.
    fn shrink(&mut self) {
        if let Self::Runs(runs) = self
            && runs.len() > RUNS
        {
            let mut bits = Box::new([0; WORDS]);
            for &(low, high) in runs.iter() {
                set(&mut bits, low, high);
            }
            *self = Self::Bits(bits);
        }
    }

    fn is_empty(&self) -> bool {
        // A bitmap becomes a list long before it is empty.
        matches!(self, Self::Runs(runs) if runs.is_empty())
    }

    /// The lowest id that is not below `from`.
    fn next(&self, from: u16) -> Option<u16> {
        match self {
            Self::Runs(runs) => {
                let at = runs.partition_point(|run| run.1 < from);
                runs.get(at).map(|run| run.0.max(from))
            }
            Self::Bits(bits) => (usize::from(from) / 64..WORDS).find_map(|at| {
                let found = bits[at] & mask(at, from, u16::MAX);
                (found != 0).then(|| in_word(at, found.trailing_zeros()))
            }),
        }
    }

    /// The highest id that is not above `upto`.
    fn previous(&self, upto: u16) -> Option<u16> {
        match self {
            Self::Runs(runs) => {
                let at = runs.partition_point(|run| run.0 <= upto);
                runs[..at].last().map(|run| run.1.min(upto))
            }
            Self::Bits(bits) => (0..=usize::from(upto) / 64).rev().find_map(|at| {
                let found = bits[at] & mask(at, 0, upto);
                (found != 0).then(|| in_word(at, found.ilog2()))
            }),
        }
    }

    /// How many ids there are in `low..=high`.
    fn count(&self, low: u16, high: u16) -> u32 {
        match self {
            Self::Runs(runs) => {
                let from = runs.partition_point(|run| run.1 < low);
                let inside = runs[from..].iter().take_while(|run| run.0 <= high);
                inside.map(|run| width((run.0.max(low), run.1.min(high)))).sum()
            }
            Self::Bits(bits) => (usize::from(low) / 64..=usize::from(high) / 64)
                .map(|at| (bits[at] & mask(at, low, high)).count_ones())
                .sum(),
        }
    }

    /// Calls `each` for every run; neighbouring runs may touch.
    fn each(&self, mut each: impl FnMut(u16, u16)) {
        match self {
            Self::Runs(runs) => runs.iter().for_each(|run| each(run.0, run.1)),
            Self::Bits(bits) => {
                for (at, word) in bits.iter().enumerate() {
                    runs_of(*word, |first, last| each(in_word(at, first), in_word(at, last)));
                }
            }
        }
    }
}

/// Sets bits and says how many were not.
fn set(bits: &mut [u64; WORDS], low: u16, high: u16) -> u32 {
    let mut added = 0;
    for (at, word) in bits.iter_mut().enumerate().take(usize::from(high) / 64 + 1).skip(usize::from(low) / 64)
    {
        let wanted = mask(at, low, high);
        added += (wanted & !*word).count_ones();
        *word |= wanted;
    }
    added
}

fn push_run(runs: &mut Vec<(u16, u16)>, low: u16, high: u16) {
    match runs.last_mut() {
        Some(last) if u32::from(last.1) + 1 == u32::from(low) => last.1 = high,
        _ => runs.push((low, high)),
    }
}

/// The chunks that `first..=last` touches, each with its part of the range.
fn parts(first: u64, last: u64) -> impl Iterator<Item = (u64, u16, u16)> {
    let (low, high) = (first / SPAN, last / SPAN);
    (low..=high).map(move |chunk| {
        let from = if chunk == low { low_bits(first) } else { 0 };
        let to = if chunk == high { low_bits(last) } else { u16::MAX };
        (chunk, from, to)
    })
}

impl IdSet {
    /// How many ids there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `first..=last`, which the caller has bounded: every 65,536 ids of it take memory.
    pub(super) fn insert(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        for (chunk, low, high) in parts(first, last) {
            let chunk = self.chunks.entry(chunk).or_insert_with(|| Chunk::Runs(Vec::new()));
            self.len += u64::from(chunk.insert(low, high));
        }
    }

    /// Takes `first..=last` out and calls `gone` for every run of ids that were there.
    pub(super) fn remove(&mut self, first: u64, last: u64, mut gone: impl FnMut(u64, u64)) {
        if first > last {
            return;
        }
        let mut emptied = Vec::new();
        for (number, chunk) in self.chunks.range_mut(first / SPAN..=last / SPAN) {
            let base = number * SPAN;
            let low = if *number == first / SPAN { low_bits(first) } else { 0 };
            let high = if *number == last / SPAN { low_bits(last) } else { u16::MAX };
            let removed =
                chunk.remove(low, high, |from, to| gone(base + u64::from(from), base + u64::from(to)));
            self.len -= u64::from(removed);
            if chunk.is_empty() {
                emptied.push(*number);
            }
        }
        for number in emptied {
            self.chunks.remove(&number);
        }
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.chunks.get(&(id / SPAN)).is_some_and(|chunk| chunk.count(low_bits(id), low_bits(id)) == 1)
    }

    /// The lowest id that is not below `from`.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        self.chunks.range(from / SPAN..).find_map(|(number, chunk)| {
            let low = if *number == from / SPAN { low_bits(from) } else { 0 };
            chunk.next(low).map(|id| number * SPAN + u64::from(id))
        })
    }

    /// The highest id that is not above `upto`.
    pub(super) fn previous(&self, upto: u64) -> Option<u64> {
        self.chunks.range(..=upto / SPAN).rev().find_map(|(number, chunk)| {
            let high = if *number == upto / SPAN { low_bits(upto) } else { u16::MAX };
            chunk.previous(high).map(|id| number * SPAN + u64::from(id))
        })
    }

    /// How many ids there are in `first..=last`.
    pub(super) fn count(&self, first: u64, last: u64) -> u64 {
        if first > last {
            return 0;
        }
        let inside = self.chunks.range(first / SPAN..=last / SPAN).map(|(number, chunk)| {
            let low = if *number == first / SPAN { low_bits(first) } else { 0 };
            let high = if *number == last / SPAN { low_bits(last) } else { u16::MAX };
            u64::from(chunk.count(low, high))
        });
        inside.sum()
    }

    /// Calls `each` for every run of ids, in order; neighbouring runs may touch.
    pub(super) fn each(&self, mut each: impl FnMut(u64, u64)) {
        for (number, chunk) in &self.chunks {
            let base = number * SPAN;
            chunk.each(|low, high| each(base + u64::from(low), base + u64::from(high)));
        }
    }

    /// Inclusive ranges that neither overlap nor touch, in order.
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        self.each(|first, last| match ranges.last_mut() {
            Some(before) if before.1.checked_add(1) == Some(first) => before.1 = last,
            _ => ranges.push((first, last)),
        });
        ranges
    }

    /// At most the bytes these ids take as pieces on disk.
    pub(super) fn pieces_bound(&self) -> u64 {
        let of = |chunk: &Chunk| match chunk {
            Chunk::Runs(runs) => 16 * runs.len() as u64,
            // Two more words: a bitmap on disk begins at its first id, and another chunk's may go on in it.
            Chunk::Bits(_) => 16 + 8 * (WORDS as u64 + 2),
        };
        self.chunks.values().map(of).sum()
    }

    /// Bytes of memory, about.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let of = |chunk: &Chunk| match chunk {
            Chunk::Runs(runs) => runs.capacity() * 4,
            Chunk::Bits(_) => 8 * WORDS,
        };
        self.chunks.values().map(|chunk| 48 + of(chunk)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_a_set_of_ids() {
        for seed in 1..=8_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut random = |bound: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) % bound
            };
            let bases = [0, 65_536 * 3 - 100, u64::MAX - 9000];
            let (mut set, mut model) = (IdSet::default(), BTreeSet::new());
            for step in 0..3000 {
                let base = bases[usize::try_from(random(3)).unwrap()];
                let first = base + random(8000);
                let last = first.saturating_add(if random(3) == 0 { random(900) } else { 0 });
                if random(5) < 3 {
                    set.insert(first, last);
                    model.extend(first..=last);
                } else {
                    let mut gone = Vec::new();
                    set.remove(first, last, |low, high| gone.extend(low..=high));
                    let expected: Vec<u64> = model.range(first..=last).copied().collect();
                    assert_eq!(gone, expected, "seed {seed} step {step}");
                    for id in expected {
                        model.remove(&id);
                    }
                }
                let probe = base + random(9000);
                assert_eq!(set.len(), model.len() as u64, "seed {seed} step {step}");
                assert_eq!(set.contains(probe), model.contains(&probe));
                assert_eq!(set.next(probe), model.range(probe..).next().copied());
                assert_eq!(set.previous(probe), model.range(..=probe).next_back().copied());
                assert_eq!(
                    set.count(first, probe),
                    if first > probe { 0 } else { model.range(first..=probe).count() as u64 }
                );
            }
            let ids: Vec<u64> = set.ranges().into_iter().flat_map(|(first, last)| first..=last).collect();
            assert_eq!(ids, model.iter().copied().collect::<Vec<_>>(), "seed {seed}");
            assert!(set.ranges().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            for (first, last) in set.ranges() {
                set.remove(first, last, |_, _| {});
            }
            assert!(set.is_empty() && set.chunks.is_empty());
        }
    }

    #[test]
    fn memory_is_below_a_byte_for_each_id_that_is_not_alone() {
        let mut run = IdSet::default();
        run.insert(1, 10_000_000);
        assert!(run.bytes() < 20_000, "{}", run.bytes());
        let mut every_second = IdSet::default();
        for id in 0..1_000_000 {
            every_second.insert(id * 2, id * 2);
        }
        assert!(every_second.bytes() < 300_000, "{}", every_second.bytes());
        let mut what_is_left = IdSet::default();
        what_is_left.insert(0, 999_999);
        for id in (0..1_000_000).step_by(2) {
            what_is_left.remove(id, id, |_, _| {});
        }
        assert!(what_is_left.bytes() < 150_000, "{}", what_is_left.bytes());
    }
}
