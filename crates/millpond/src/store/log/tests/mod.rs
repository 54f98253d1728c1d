//! Tests of the log: on real files for what files do, on a simulated disk for what crashes do.

mod basic;
mod crash;
mod damage;
mod faults;
mod fixtures;
mod freeing;
mod golden;
mod lazy;
mod model;
mod recycled;
mod salvage;
mod sim;
mod small;
mod space;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{LogOptions, LogStore, segment};
use crate::key;
use crate::store::{Op, Store};

pub(super) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) const TINY: LogOptions =
    LogOptions { segment_bytes: 64 * 1024, strict: false, verify: false, eager: None };

/// A directory beside the test binary: what lies under `/tmp` may be memory.
pub(super) fn directory() -> TempDir {
    let binary = std::env::current_exe().unwrap();
    tempfile::tempdir_in(binary.parent().unwrap()).unwrap()
}

pub(super) fn open(path: &Path) -> LogStore {
    LogStore::open_with(path, TINY).unwrap()
}

/// Everything in a store, by walking it.
pub(super) fn contents(store: &LogStore) -> Contents {
    let mut found = Contents::new();
    let mut from = Vec::new();
    while let Some((key, value)) = store.seek(&from).unwrap() {
        from.clone_from(&key);
        from.push(0);
        found.insert(key, value);
    }
    found
}

pub(super) fn ids(store: &LogStore) -> Vec<u64> {
    let id = |key: &Vec<u8>| match key::Key::parse(key) {
        Ok(key::Key::Entry(id)) => Some(id),
        _ => None,
    };
    contents(store).keys().filter_map(id).collect()
}

/// A value that tells whose it is.
pub(super) fn value(id: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((id * 31 + at as u64 * 7 + at as u64 / 256) % 251).unwrap()).collect()
}

pub(super) fn put(store: &LogStore, id: u64, bytes: &[u8]) {
    store.commit(&[Op::Put(&key::entry(id), bytes)], true).unwrap();
}

pub(super) fn delete(store: &LogStore, id: u64) {
    store.commit(&[Op::Delete(&key::entry(id))], true).unwrap();
}

/// The segment files, in order.
pub(super) fn segments(path: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = names.filter(|name| name.extension().is_some_and(|end| end == "seg")).collect();
    names.sort();
    names
}

pub(super) fn copy(from: &Path) -> TempDir {
    let to = directory();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

/// Every file with its bytes.
pub(super) fn tree(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|p| (p.clone(), fs::read(&p).unwrap()))
        .collect()
}

/// Numbers that repeat for a seed (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    pub(super) fn size(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }
}
