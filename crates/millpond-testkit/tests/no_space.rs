//! A full file system under a store: pushes are refused as such, what was answered stays, and the store accepts again
//! when there is room. Needs the right to mount; says so where it is missing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use millpond::{Builder, Durability, ErrorCode, Queue};
use millpond_testkit::subjects::Subject;
use millpond_testkit::tests_on;

/// A small file system in memory, gone at the end of the test.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(path: &'a Path) -> Option<Self> {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=48m", "tmpfs"]).arg(path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(path))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0).output());
    }
}

fn open<T: Subject>(directory: &Path) -> Queue {
    Builder::new(T::open(directory).unwrap()).durability(Durability::Sync).capacity(10_000).open().unwrap()
}

fn a_full_disk_refuses_and_accepts_again<T: Subject>() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(_small) = Small::mount(scratch.path()) else {
        println!("SKIPPED: this user may not mount a file system");
        return;
    };
    let ballast = scratch.path().join("ballast");
    fs::write(&ballast, vec![0; 24 << 20]).unwrap();
    let queue = open::<T>(&scratch.path().join("queue"));
    let mut answered = Vec::new();
    let refused = loop {
        match queue.push(vec![7; 100_000]) {
            Ok(id) => answered.push(id),
            Err(error) => break error,
        }
        assert!(answered.len() < 1000, "the disk never fills");
    };
    assert_eq!(refused.code(), ErrorCode::NoSpace, "{refused}");
    fs::remove_file(&ballast).unwrap();
    for _ in 0..3 {
        answered.push(queue.push(vec![8; 100_000]).unwrap());
    }
    println!("{}: {} answered", T::NAME, answered.len());
    drop(queue);
    let queue = open::<T>(&scratch.path().join("queue"));
    let stored: Vec<u64> = queue.iter().map(|entry| entry.unwrap().id).collect();
    assert!(answered.iter().all(|id| stored.contains(id)), "{answered:?} {stored:?}");
}

// sled is left out: on a full disk its flush waits for ever (docs/durability.md).
tests_on! { log = millpond_testkit::subjects::Log: a_full_disk_refuses_and_accepts_again }
#[cfg(feature = "redb")]
tests_on! { redb = millpond_testkit::subjects::Redb: a_full_disk_refuses_and_accepts_again }
#[cfg(feature = "rocksdb")]
tests_on! { rocksdb = millpond_testkit::subjects::Rocks: a_full_disk_refuses_and_accepts_again }
