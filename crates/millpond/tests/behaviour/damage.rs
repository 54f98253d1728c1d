//! What a queue does when its log is damaged: what is lost is told and counts as acked, the rest is delivered.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use millpond::store::{LogOptions, LogStore};
use millpond::{Builder, Queue};
use tempfile::TempDir;

/// Smaller segments than are common, so that a few entries fill several.
fn open(path: &Path, capacity: u64) -> Queue {
    let options = LogOptions { segment_bytes: 64 * 1024, ..LogOptions::default() };
    Builder::new(LogStore::open_with(path, options).unwrap()).capacity(capacity).open().unwrap()
}

fn payload(id: u64, length: usize) -> Vec<u8> {
    let mut bytes = format!("entry {id} ").into_bytes();
    bytes.resize(length, b'.');
    bytes
}

/// A log with entries of this length, closed.
fn filled(count: u64, length: usize) -> TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let queue = open(dir.path(), 10_000);
    for id in 1..=count {
        assert_eq!(queue.push(payload(id, length)).unwrap(), id);
    }
    queue.close();
    dir
}

fn segments(path: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "seg")).collect();
    files.sort();
    files
}

/// Changes a byte in the payload of an entry; says where.
fn damage(path: &Path, id: u64, length: usize) -> (PathBuf, u64) {
    let wanted = payload(id, length);
    let place = |file: PathBuf| {
        let bytes = fs::read(&file).unwrap();
        let at = bytes.windows(length).position(|window| window == wanted)?;
        Some((file, at as u64))
    };
    let (file, at) = segments(path).into_iter().find_map(place).unwrap();
    let handle = OpenOptions::new().write(true).open(&file).unwrap();
    handle.write_all_at(b"!", at + length as u64 / 2).unwrap();
    (file, at)
}

fn drain(queue: &Queue) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some(item) = queue.reserve().unwrap() {
        assert!(item.ack().unwrap());
        ids.push(item.seq());
    }
    ids
}

#[test]
fn a_lost_entry_makes_room_and_the_next_one_is_delivered() {
    let dir = filled(4, 900);
    damage(dir.path(), 2, 900);
    let queue = open(dir.path(), 4);
    assert_eq!(queue.len(), 4);
    let first = queue.reserve().unwrap().unwrap();
    assert_eq!(first.seq(), 1);
    let second = queue.reserve().unwrap().unwrap();
    assert_eq!((second.seq(), &second[..]), (3, payload(3, 900).as_slice()));
    assert_eq!(queue.len(), 3);
    assert_eq!(queue.stats().store.damaged, 1);
    assert_eq!(queue.recovery().damage[0].first_id, Some(2));
    // There is room for one more.
    let id = queue.try_push(payload(5, 900)).unwrap();
    assert!(queue.try_push(payload(6, 900)).is_err());
    first.ack().unwrap();
    second.ack().unwrap();
    assert_eq!(drain(&queue), [4, id]);
    assert_eq!((queue.len(), queue.stats().store.live_bytes), (0, 0));
}

#[test]
fn o_05_ids_stay_above_the_old_ones_whichever_segment_is_missing() {
    let dir = filled(60, 3000);
    let files = segments(dir.path());
    assert!(files.len() >= 3);
    for missing in &files {
        let copy = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for file in files.iter().filter(|file| *file != missing) {
            fs::copy(file, copy.path().join(file.file_name().unwrap())).unwrap();
        }
        let queue = open(copy.path(), 100);
        let report = queue.recovery();
        let id = queue.push(b"next").unwrap();
        if report.damage.is_empty() {
            // Nothing names the newest one; the end that is not clean says that something may be missing.
            assert!(!report.clean && id > 60, "{report:?} {id}");
        } else {
            assert!(id > 1 << 32, "{report:?} {id}");
        }
        assert!(queue.len() < 61);
    }
}

/// Clock ticks of this process so far, a hundred in a second.
fn ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn o_03_a_damaged_queue_is_drained_and_rests() {
    let dir = filled(1000, 1024);
    let (file, _) = damage(dir.path(), 500, 1024);
    let began = Instant::now();
    let queue = open(dir.path(), 10_000);
    let whole: Vec<u64> = (1..=1000).filter(|id| *id != 500).collect();
    assert_eq!(drain(&queue), whole);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let report = queue.recovery();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!(report.damage[0].file, file.file_name().unwrap().to_str().unwrap());
    assert_eq!((report.damage[0].first_id, report.damage[0].last_id), (Some(500), Some(500)));
    let kept: Vec<_> = fs::read_dir(dir.path().join("quarantine")).unwrap().collect();
    assert_eq!(kept.len(), 1);
    // Drained segments go for a while; then nothing is done any more.
    thread::sleep(Duration::from_secs(3));
    let before = ticks();
    thread::sleep(Duration::from_secs(2));
    let spent = ticks() - before;
    assert!(spent <= 10, "{spent} of 200 ticks at rest");
    let began = Instant::now();
    queue.close();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
