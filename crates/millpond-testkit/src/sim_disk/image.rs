//! What a power cut may leave: each unsynced sector old or new, each unsynced name there or not, each unsynced size.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::content::{Content, SECTOR, Sector, is_same};
use super::medium::{Inode, Medium, NameOp};
use crate::random::Random;

/// All combinations are tried up to this many; of more, as many are drawn.
pub const COMBINATIONS: usize = 64;
/// Sectors that the cache of a system writes back together.
const PAGE: usize = 8;

/// One thing a power cut decides.
enum Choice {
    /// Which version of a sector is there; the first is the durable one.
    Sector { inode: usize, at: usize, versions: Vec<Sector> },
    /// Whether the file has its new size.
    Size { inode: usize, len: u64 },
    /// Whether what was never written to a new part of a file holds bytes of a former life instead of zeros.
    Stale { inode: usize, from: usize },
    /// Whether a change of names is there.
    Name(usize),
}

impl Choice {
    fn options(&self) -> usize {
        if let Choice::Sector { versions, .. } = self { versions.len() } else { 2 }
    }
}

/// Every power cut at one moment.
pub struct Images<'a> {
    medium: &'a Medium,
    choices: Vec<Choice>,
    /// Files that can have a name afterwards, as they are with nothing chosen.
    base: BTreeMap<usize, Arc<Content>>,
}

impl Medium {
    /// What a power cut now may leave.
    pub fn images(&self) -> Images<'_> {
        let unsynced = self.name_ops.iter().filter_map(NameOp::inode);
        let named: BTreeSet<usize> = self.durable_names.values().copied().chain(unsynced).collect();
        let mut choices: Vec<Choice> = (0..self.name_ops.len()).map(Choice::Name).collect();
        let mut base = BTreeMap::new();
        for (number, inode) in named.iter().filter_map(|number| Some((*number, self.inodes.get(number)?))) {
            base.insert(number, Arc::clone(&inode.durable));
            self.choices_of(number, inode, &mut choices);
        }
        Images { medium: self, choices, base }
    }

    fn choices_of(&self, number: usize, inode: &Inode, choices: &mut Vec<Choice>) {
        for (at, written) in &inode.pending {
            let mut versions = vec![inode.durable.get(*at)];
            for version in written {
                if !versions.iter().any(|known| is_same(known, version)) {
                    versions.push(version.clone());
                }
            }
            if versions.len() > 1 {
                choices.push(Choice::Sector { inode: number, at: *at, versions });
            }
        }
        let len = inode.cached.len;
        if len > inode.durable.len {
            choices.push(Choice::Size { inode: number, len });
            // The blocks may have been another file's: the last one with bytes is the likeliest to confuse.
            let other = |(other, inode): (&usize, &Arc<Inode>)| {
                (*other != number && inode.durable.len > 0).then_some(*other)
            };
            if let Some(from) = self.inodes.iter().rev().find_map(other) {
                choices.push(Choice::Stale { inode: number, from });
            }
        }
    }
}

impl Images<'_> {
    /// How many combinations there are.
    pub fn combinations(&self) -> u128 {
        self.choices.iter().fold(1, |product, choice| product.saturating_mul(choice.options() as u128))
    }

    /// Calls `each` with every image, or with [`COMBINATIONS`] of them drawn by `random`.
    pub fn each(&self, random: &mut Random, each: impl FnMut(Medium)) {
        self.some(COMBINATIONS, random, each);
    }

    /// Calls `each` with every image, or with `most` of them drawn by `random`.
    pub fn some(&self, most: usize, random: &mut Random, mut each: impl FnMut(Medium)) {
        let combinations = self.combinations();
        if combinations <= most as u128 {
            for number in 0..combinations {
                let mut rest = number;
                each(self.image(|choice| {
                    let options = choice.options() as u128;
                    let option = usize::try_from(rest % options).unwrap_or(0);
                    rest /= options;
                    option
                }));
            }
            return;
        }
        for draw in 0..most {
            each(self.draw(draw, random));
        }
    }

    /// One image, drawn by `random`.
    pub fn one(&self, random: &mut Random) -> Medium {
        let draw = usize::try_from(random.below(COMBINATIONS as u64)).unwrap_or(0);
        self.draw(draw, random)
    }

    fn draw(&self, draw: usize, random: &mut Random) -> Medium {
        let last = |choice: &Choice| choice.options() - 1;
        let below =
            |random: &mut Random, bound: usize| usize::try_from(random.below(bound as u64)).unwrap_or(0);
        match draw {
            0 => self.image(|_| 0),
            1 => self.image(last),
            // Written in order, up to somewhere.
            _ if draw.is_multiple_of(4) => {
                let (mut left, count) = (0, below(random, self.choices.len() + 1));
                self.image(|choice| {
                    left += 1;
                    if left <= count { last(choice) } else { 0 }
                })
            }
            // Whole pages.
            _ if draw % 4 == 1 => {
                let mut pages = BTreeMap::new();
                self.image(|choice| match choice {
                    Choice::Sector { inode, at, .. } => {
                        let kept = *pages.entry((*inode, at / PAGE)).or_insert_with(|| random.below(2) == 0);
                        if kept { last(choice) } else { 0 }
                    }
                    other => below(random, other.options()),
                })
            }
            _ => {
                let kept = [10, 50, 90, 97][below(random, 4)];
                self.image(
                    |choice| {
                        if random.below(100) < kept { 1 + below(random, last(choice)) } else { 0 }
                    },
                )
            }
        }
    }

    fn image(&self, mut choose: impl FnMut(&Choice) -> usize) -> Medium {
        let mut files = self.base.clone();
        let mut kept = vec![false; self.medium.name_ops.len()];
        let mut sectors = Vec::new();
        for choice in &self.choices {
            let option = choose(choice);
            if option == 0 {
                continue;
            }
            match choice {
                Choice::Name(at) => kept[*at] = true,
                Choice::Size { inode, len } => {
                    if let Some(content) = files.get_mut(inode) {
                        Arc::make_mut(content).len = *len;
                    }
                }
                Choice::Stale { inode, from } => self.make_stale(files.get_mut(inode), *inode, *from),
                Choice::Sector { inode, at, versions } => {
                    sectors.push((*inode, *at, versions[option].clone()));
                }
            }
        }
        let names = self.medium.names_with(|at| kept[at]);
        for (inode, at, sector) in sectors {
            // A sector behind the end of the file is no part of it.
            if let Some(content) = files.get_mut(&inode).filter(|file| ((at * SECTOR) as u64) < file.len) {
                Arc::make_mut(content).set(at, sector);
            }
        }
        files.retain(|inode, _| names.values().any(|named| named == inode));
        let inodes = files.into_iter().map(|(number, content)| {
            let (durable, cached) = (Arc::clone(&content), content);
            (number, Arc::new(Inode { durable, cached, ..Inode::default() }))
        });
        Medium { inodes: inodes.collect(), durable_names: names.clone(), names, ..Medium::default() }
    }

    /// Bytes of another file in the part whose size is new.
    fn make_stale(&self, file: Option<&mut Arc<Content>>, inode: usize, from: usize) {
        let inodes = &self.medium.inodes;
        let (Some(file), Some(own), Some(other)) = (file, inodes.get(&inode), inodes.get(&from)) else {
            return;
        };
        let content = Arc::make_mut(file);
        let old = usize::try_from(own.durable.len).unwrap_or(0).div_ceil(SECTOR);
        let new = usize::try_from(content.len.min(other.durable.len)).unwrap_or(0) / SECTOR;
        for at in old..new {
            content.set(at, other.durable.get(at));
        }
    }
}
