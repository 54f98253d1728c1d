//! Damage in the write-ahead log of `RocksDB`, which a killed process leaves behind: in the middle it is refused, an
//! unfinished record at the end is dropped.
#![cfg(feature = "rocksdb")]
#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use millpond::store::RocksStore;
use millpond::{Builder, ErrorCode, Failure, Queue};
use millpond_testkit::random::Random;

const PUSHES: usize = 20;

/// A queue whose process was killed after so many pushes, and its log with what is in it.
struct Killed {
    folder: tempfile::TempDir,
    log: PathBuf,
    written: Vec<u8>,
}

impl Killed {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let directory = folder.path().join("queue");
        let killed = Command::new(env!("CARGO_BIN_EXE_script-worker"))
            .args(["rocksdb", directory.to_str().unwrap(), "sync"])
            .args([&["push"; PUSHES][..], &["kill"]].concat())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&killed.stdout).matches("pushed").count(), PUSHES);
        let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "log");
        let logs = fs::read_dir(directory.join("rocksdb")).unwrap().map(|entry| entry.unwrap().path());
        let log = logs.filter(is_log).max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        let written = fs::read(&log).unwrap();
        assert!(written.len() > PUSHES * 200);
        Self { folder, log, written }
    }

    /// Opens a copy of the directory in which the log is `log`; an open queue changes its files.
    fn open_with(&self, log: &[u8]) -> (tempfile::TempDir, Result<Queue, Failure>) {
        let other = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        copy(self.folder.path(), other.path());
        fs::write(other.path().join(self.log.strip_prefix(self.folder.path()).unwrap()), log).unwrap();
        let queue = open(&other.path().join("queue"));
        (other, queue)
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(path, target).unwrap();
        }
    }
}

fn open(directory: &Path) -> Result<Queue, Failure> {
    Ok(Builder::new(RocksStore::open(directory)?).open()?)
}

fn ids(queue: &Queue) -> Vec<u64> {
    queue.iter().map(|entry| entry.unwrap().id).collect()
}

#[test]
fn damage_in_the_middle_is_refused_at_open() {
    let killed = Killed::new();
    let (mut random, seed) = Random::from_environment();
    println!("MILLPOND_SEED={seed}");
    let (_copy, intact) = killed.open_with(&killed.written);
    assert_eq!(ids(&intact.unwrap()), (1..=20).collect::<Vec<_>>());
    // Every part of a record is hit: checksum, length, kind, payload.
    let first = killed.written.len() as u64 / 4;
    let positions: Vec<u64> = (first..first + 40).chain((0..60).map(|_| random.below(3 * first))).collect();
    let mut accepted = Vec::new();
    for position in positions {
        let mut damaged = killed.written.clone();
        damaged[usize::try_from(position).unwrap()] ^= 0x10;
        match killed.open_with(&damaged).1 {
            Ok(queue) => accepted.push((position, ids(&queue).len())),
            Err(error) => assert_eq!(error.code(), ErrorCode::Corrupt, "byte {position}: {error}"),
        }
    }
    assert!(accepted.is_empty(), "(byte, entries left): {accepted:?}");
}

#[test]
fn an_unfinished_record_at_the_end_is_dropped() {
    let killed = Killed::new();
    for cut in [1, 7, 100, 199] {
        let (_copy, queue) = killed.open_with(&killed.written[..killed.written.len() - cut]);
        let queue = queue.unwrap();
        assert_eq!(ids(&queue), (1..20).collect::<Vec<_>>(), "{cut} bytes are missing");
        assert!(queue.push(b"x").unwrap() >= 20);
    }
}
