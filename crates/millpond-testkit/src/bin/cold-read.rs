//! How fast a cold backlog is delivered, beside `dd bs=1M` of equally cold files.
//!
//! `cold-read FOLDER [ITEMS]` prints rates and whether the bar is met, and fails if it is not. Files are made cold by
//! `fadvise DONTNEED` after an fsync.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and ends where it fails"
)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use millpond::store::LogStore;
use millpond::{Builder, Durability, Queue};
use rustix::fs::{Advice, fadvise};

const ITEMS: u64 = 200_000;
const ITEM: usize = 4096;
const ROUNDS: usize = 5;
/// Acks of one commit.
const GROUP: usize = 256;
/// Rate of reserving beside `dd`, at least.
const BAR: f64 = 0.7;

fn open(path: &Path) -> Queue {
    let store = LogStore::open(path).expect("the log opens");
    Builder::new(store).capacity(1 << 40).durability(Durability::Group).open().expect("the queue opens")
}

fn segments(path: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = names.filter(|name| name.extension().is_some_and(|end| end == "seg")).collect();
    names.sort();
    names
}

/// Drops the files from the page cache.
fn cool(path: &Path) {
    for name in segments(path) {
        let file = File::open(name).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }
}

fn dd(path: &Path) -> Duration {
    let start = Instant::now();
    for name in segments(path) {
        let status = Command::new("dd")
            .args(["bs=1M", "of=/dev/null", &format!("if={}", name.display())])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
    }
    start.elapsed()
}

/// Reserves everything; with `acks` settles it in groups.
fn drain(path: &Path, items: u64, acks: bool) -> Duration {
    let start = Instant::now();
    let queue = open(path);
    let (mut count, mut bytes) = (0, 0);
    let mut group = Vec::new();
    while let Some(item) = queue.reserve().unwrap() {
        count += 1;
        bytes += item.len();
        if acks {
            group.push(item.seq());
            if group.len() == GROUP {
                queue.ack_many(&group).unwrap();
                group.clear();
            }
        }
        // It stays in flight, as an item that is being worked on.
        item.detach();
    }
    queue.ack_many(&group).unwrap();
    let took = start.elapsed();
    assert_eq!((count, bytes), (items, usize::try_from(items).unwrap() * ITEM));
    took
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn all(folder: &Path, items: u64) -> ExitCode {
    let path = folder.join("cold");
    {
        let queue = open(&path);
        let payload = [9; ITEM];
        let group = vec![&payload[..]; 500];
        for _ in 0..items / 500 {
            queue.push_many(&group).unwrap();
        }
    }
    let mebibytes = f64::from(u32::try_from((items * ITEM as u64) >> 10).unwrap()) / 1024.0;
    println!("{items} items of {ITEM} bytes, {mebibytes:.0} MiB in {} segments", segments(&path).len());
    let (mut raw, mut reserved) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        cool(&path);
        raw.push(mebibytes / dd(&path).as_secs_f64());
        cool(&path);
        reserved.push(mebibytes / drain(&path, items, false).as_secs_f64());
    }
    let warm = mebibytes / drain(&path, items, false).as_secs_f64();
    cool(&path);
    let acked = mebibytes / drain(&path, items, true).as_secs_f64();
    let (raw, reserved) = (median(raw), median(reserved));
    println!("dd bs=1M: {raw:.0} MiB/s cold (median of {ROUNDS})");
    println!("reserve only: {reserved:.0} MiB/s cold (median of {ROUNDS}), {warm:.0} MiB/s warm");
    println!("reserve and ack in groups of {GROUP}: {acked:.0} MiB/s cold");
    let met = reserved >= BAR * raw;
    println!(
        "reserve beside dd: {:.2} x (bar {BAR} x) {}",
        reserved / raw,
        if met { "pass" } else { "MISS" }
    );
    ExitCode::from(u8::from(!met))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words {
        [folder] => all(folder.as_ref(), ITEMS),
        [folder, items] => all(folder.as_ref(), items.parse().unwrap()),
        _ => {
            println!("cold-read FOLDER [ITEMS]");
            ExitCode::FAILURE
        }
    }
}
