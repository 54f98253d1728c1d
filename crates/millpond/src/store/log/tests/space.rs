//! Room on the device: it comes back, and a full disk stops pushes only.

use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::counting::Counting;
use super::freeing::wait_for;
use super::small::{Small, used};
use super::*;
use crate::store::FailureKind;
use crate::store::log::{LogError, frame};

/// Room for more than a hundred entries of 10 KiB: the smallest segments are full of such entries to four fifths.
const BALLAST: usize = 3 << 19;
const LARGE: LogOptions = LogOptions { segment_bytes: 4 << 20, ..TINY };

fn push(store: &LogStore, id: u64, bytes: &[u8]) -> Result<(), LogError> {
    store.commit(&[Op::Put(&key::entry(id), bytes)], true)
}

/// Pushes until the disk is full; every refusal says so. Returns the ids that were answered.
fn push_until_full(store: &LogStore, first: u64, length: usize) -> Vec<u64> {
    let mut kept = Vec::new();
    for id in first..first + 10_000 {
        match push(store, id, &value(id, length)) {
            Ok(()) => kept.push(id),
            Err(error) => {
                assert_eq!(store.classify(&error), FailureKind::NoSpace, "{error}");
                return kept;
            }
        }
    }
    panic!("the disk never fills");
}

#[test]
fn o_06_a_disk_that_was_full_is_used_again() {
    let Some(small) = Small::mount(4096) else { return };
    let ballast = small.path().join("ballast");
    fs::write(&ballast, vec![1; BALLAST]).unwrap();
    let path = small.path().join("queue");
    let store = LogStore::open_with(&path, LARGE).unwrap();
    let mut kept = push_until_full(&store, 1, 10_240);
    for id in 5000..5020 {
        let error = push(&store, id, &value(id, 10_240)).unwrap_err();
        assert_eq!(store.classify(&error), FailureKind::NoSpace, "{error}");
    }
    fs::remove_file(&ballast).unwrap();
    let began = Instant::now();
    push(&store, 6000, &value(6000, 10_240)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let more = (6001..6100).take_while(|id| push(&store, *id, &value(*id, 10_240)).is_ok());
    kept.extend(std::iter::once(6000).chain(more));
    // How many fit depends on the sizes that segments have when the room comes.
    assert!(kept.iter().filter(|id| **id >= 6000).count() >= 60, "{kept:?}");
    assert_eq!(ids(&store), kept);
    // As after a kill: nothing is closed.
    drop(store);
    let store = LogStore::open_with(&path, LARGE).unwrap();
    assert_eq!(ids(&store), kept);
    assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
    for (id, (_, bytes)) in kept.iter().zip(contents(&store)) {
        assert!(bytes == value(*id, 10_240), "{id}");
    }
}

#[test]
fn large_spares_give_their_room_when_the_device_is_full() {
    let Some(small) = Small::mount(8192) else { return };
    let path = small.path().join("queue");
    let store = LogStore::open_with(&path, LARGE).unwrap();
    push(&store, 1, b"first").unwrap();
    store.core().pool.set_size(1 << 20, segment::SMALLEST);
    let is_large = |file: &PathBuf| fs::metadata(file).is_ok_and(|data| data.len() == 1 << 20);
    let spares = || segments(&path).iter().filter(|file| is_large(file)).count();
    assert!(wait_for(|| spares() >= 2));
    small.fill("rest");
    let kept = push_until_full(&store, 2, 10_240);
    // Both stay whole where they are not given up.
    assert!(kept.len() > 60 && spares() <= 1, "{} {}", kept.len(), spares());
}

#[test]
fn o_06_a_limit_on_the_size_of_files_is_a_full_disk() {
    const LIMITED: &str = "MILLPOND_TEST_LIMITED";
    if std::env::var_os(LIMITED).is_none() {
        let name = "store::log::tests::space::o_06_a_limit_on_the_size_of_files_is_a_full_disk";
        // The signal is ignored; else it ends the process.
        let script = "trap '' XFSZ; ulimit -f 300; exec \"$0\" --exact \"$1\" --nocapture";
        let output = Command::new("bash")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env(LIMITED, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        return;
    }
    // No file above 300 KiB: larger segments cannot be made, so smaller ones are.
    let dir = directory();
    let store = LogStore::open_with(dir.path(), LARGE).unwrap();
    for id in 1..=200 {
        push(&store, id, &value(id, 10_240)).unwrap();
    }
    let error = push(&store, 1000, &value(1000, 400_000)).unwrap_err();
    assert_eq!(store.classify(&error), FailureKind::NoSpace, "{error}");
    push(&store, 201, &value(201, 10_240)).unwrap();
    assert_eq!(ids(&store), (1..=201).collect::<Vec<_>>());
    drop(store);
    assert_eq!(ids(&LogStore::open_with(dir.path(), LARGE).unwrap()), (1..=201).collect::<Vec<_>>());
}

/// Fills the disk to the last block and then acks everything in this order.
fn drain_on_a_full_disk(order: impl Fn(&[u64]) -> Vec<u64>, reopen: bool) {
    let Some(small) = Small::mount(4096) else { return };
    let path = small.path().join("queue");
    let mut store = LogStore::open_with(&path, LARGE).unwrap();
    let kept = push_until_full(&store, 1, 10_240);
    assert!(kept.len() > 50, "{}", kept.len());
    small.fill("rest");
    let segments = store.stats().segments;
    for (at, id) in order(&kept).into_iter().enumerate() {
        if reopen && at % 16 == 0 {
            drop(store);
            store = LogStore::open_with(&path, LARGE).unwrap();
            assert_eq!(ids(&store).len(), kept.len() - at);
        }
        store
            .commit(&[Op::Delete(&key::entry(id))], true)
            .unwrap_or_else(|error| panic!("ack {at}: {error}"));
    }
    assert!(ids(&store).is_empty() && segments > 2);
    for id in 20_000..20_010 {
        push(&store, id, &value(id, 10_240)).unwrap();
    }
    drop(store);
    let store = LogStore::open_with(&path, LARGE).unwrap();
    assert_eq!(ids(&store), (20_000..20_010).collect::<Vec<_>>());
    assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
}

#[test]
fn o_07_a_full_disk_can_be_drained() {
    drain_on_a_full_disk(<[u64]>::to_vec, false);
}

#[test]
fn o_07_a_full_disk_can_be_drained_from_everywhere_at_once() {
    // No segment is empty before nearly all are: acks fill segment after segment.
    let scattered = |ids: &[u64]| {
        let mut order = ids.to_vec();
        order.sort_by_key(|id| (id % 7, *id));
        order
    };
    drain_on_a_full_disk(scattered, false);
}

#[test]
fn o_07_a_full_disk_can_be_drained_by_processes_that_are_killed() {
    drain_on_a_full_disk(<[u64]>::to_vec, true);
}

#[test]
fn o_07_a_kill_just_after_the_last_file_was_taken_costs_no_way_out() {
    let Some(small) = Small::mount(4096) else { return };
    let path = small.path().join("queue");
    let store = LogStore::open_with(&path, LARGE).unwrap();
    let kept = push_until_full(&store, 1, 10_240);
    // A segment of nothing but acks; then the last file comes into use, and nothing is written to it.
    store.core().rotate(&mut store.core().turn.lock(), 0, false).unwrap();
    let (first, kept) = kept.split_at(3);
    for id in first {
        delete(&store, *id);
    }
    store.core().rotate(&mut store.core().turn.lock(), 0, false).unwrap();
    let used = store.core().append.lock().active.as_ref().unwrap().segment.number();
    drop(store);
    for file in fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()) {
        let number = segment::number_of(file.file_name().unwrap().to_str().unwrap());
        if number.is_some_and(|(number, temporary)| number > used || temporary) {
            fs::remove_file(file).unwrap();
        }
    }
    small.fill("rest");
    for id in kept {
        // One ack for each open: the last file is taken again and again.
        let store = LogStore::open_with(&path, LARGE).unwrap();
        assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
        store
            .commit(&[Op::Delete(&key::entry(*id))], true)
            .unwrap_or_else(|error| panic!("ack of {id}: {error}"));
    }
    assert!(ids(&LogStore::open_with(&path, LARGE).unwrap()).is_empty());
}

#[test]
fn o_07_pushes_work_again_after_two_segments_of_acks() {
    let Some(small) = Small::mount(4096) else { return };
    let store = LogStore::open_with(small.path().join("queue"), LARGE).unwrap();
    let kept = push_until_full(&store, 1, 10_240);
    small.fill("rest");
    let largest =
        segments(&small.path().join("queue")).iter().map(|file| fs::metadata(file).unwrap().len()).max();
    let mut acked = 0;
    while push(&store, 20_000, &value(1, 10_240)).is_err() {
        delete(&store, kept[acked]);
        acked += 1;
        if acked % 16 == 0 {
            // As much time as an idle log takes to let go.
            thread::sleep(Duration::from_millis(150));
        }
    }
    println!("{acked} of {} entries acked, largest segment {largest:?}", kept.len());
    assert!(acked as u64 * 10_240 <= 2 * largest.unwrap(), "{acked} of {}, {largest:?}", kept.len());
}

#[test]
fn o_23_one_old_entry_keeps_one_small_segment() {
    let dir = directory();
    let store = LogStore::open_with(dir.path(), LARGE).unwrap();
    let bytes = value(1, 102_400);
    for id in 1..=2000 {
        store.commit(&[Op::Put(&key::entry(id), &bytes)], id % 50 == 0).unwrap();
    }
    for id in 2..=2000 {
        store.commit(&[Op::Delete(&key::entry(id))], id % 10 == 0).unwrap();
    }
    assert!(wait_for(|| used(dir.path()) <= 12 << 20), "{} {:?}", used(dir.path()), store.stats());
    assert_eq!(ids(&store), [1]);
    let stats = store.stats();
    assert!(stats.live_bytes >= 102_400 && stats.disk_bytes >= stats.live_bytes, "{stats:?}");
    delete(&store, 1);
    let most = (4 << 20) + 64 * 1024;
    assert!(wait_for(|| used(dir.path()) <= most), "{} {:?}", used(dir.path()), store.stats());
    // Small ones again: the active segment, the reserve and one more, each less than four times the smallest.
    assert!(wait_for(|| used(dir.path()) < 4 * 4 * 64 * 1024), "{} {:?}", used(dir.path()), store.stats());
    assert_eq!(store.stats().live_bytes, 0);
    drop(store);
    assert!(ids(&LogStore::open_with(dir.path(), LARGE).unwrap()).is_empty());
}

#[test]
fn o_23_one_old_entry_in_the_only_other_segment_goes_into_a_small_one() {
    let dir = directory();
    let store = LogStore::open_with(dir.path(), LARGE).unwrap();
    for id in 1..=800 {
        store.commit(&[Op::Put(&key::entry(id), &value(id, 10_000))], false).unwrap();
    }
    for id in 1..800 {
        store.commit(&[Op::Delete(&key::entry(id))], false).unwrap();
    }
    store.close().unwrap();
    let before = used(dir.path());
    assert!(before > 1 << 20, "{before}");
    let store = LogStore::open_with(dir.path(), LARGE).unwrap();
    put(&store, 801, b"next");
    // The active segment, the spares, and one file more.
    let most = 5 * segment::SMALLEST + 4096;
    assert!(wait_for(|| used(dir.path()) <= most), "{} {:?}", used(dir.path()), store.stats());
    drop(store);
    let store = open(dir.path());
    assert_eq!(ids(&store), [800, 801]);
    assert!(store.get(&key::entry(800)).unwrap().unwrap() == value(800, 10_000));
}

#[test]
fn o_23_the_acks_of_39_neighbours_outlive_a_hundred_segments() {
    let dir = directory();
    let store = LogStore::open_with(dir.path(), LARGE).unwrap();
    for id in 1..=40 {
        push(&store, id, &value(id, 1000)).unwrap();
    }
    for id in (1..=40).filter(|id| *id != 20) {
        delete(&store, id);
    }
    let bytes = value(1, 102_400);
    for id in 100..4200 {
        store.commit(&[Op::Put(&key::entry(id), &bytes)], false).unwrap();
        store.commit(&[Op::Delete(&key::entry(id))], false).unwrap();
    }
    let last = segments(dir.path()).pop().unwrap();
    let number = segment::number_of(last.file_name().unwrap().to_str().unwrap()).unwrap().0;
    assert!(number > 100, "{number} files were begun");
    drop(store);
    let store = LogStore::open_with(dir.path(), LARGE).unwrap();
    assert_eq!(ids(&store), [20]);
}

#[test]
fn files_are_used_again_and_their_former_life_is_not_seen() {
    let dir = directory();
    let store = open(dir.path());
    let mut made = 0;
    for id in 1..=400 {
        put(&store, id, &value(id, 5000));
        delete(&store, id);
        made = made.max(segments(dir.path()).len());
        if id % 50 == 0 {
            assert!(wait_for(|| store.stats().segments <= 2));
        }
    }
    put(&store, 1000, b"last");
    let recycled = segments(dir.path()).iter().filter(|file| fs::read(file).unwrap()[16] & 1 == 1).count();
    assert!(recycled > 0, "no file has a former life");
    drop(store);
    let store = open(dir.path());
    assert_eq!(ids(&store), [1000]);
    let report = store.recovery();
    assert!(report.damage.is_empty() && report.dropped_tail_bytes == 0, "{report:?}");
}

#[test]
fn few_old_entries_do_not_keep_their_segments_and_little_is_written_for_it() {
    let dir = directory();
    let disk = Counting::on(dir.path());
    let store = LogStore::open_on(Arc::new(disk.clone()), TINY).unwrap();
    let mut random = Random::new(5);
    let lengths: BTreeMap<u64, usize> = (1..=3000).map(|id| (id, 500 + random.size(3000))).collect();
    for (id, length) in &lengths {
        store.commit(&[Op::Put(&key::entry(*id), &value(*id, *length))], false).unwrap();
    }
    store.commit(&[], true).unwrap();
    let (full, written) = (used(dir.path()), disk.written());
    // One in a hundred stays, so that about every third segment has one.
    let gone: Vec<u64> = lengths.keys().copied().filter(|id| id % 100 != 0).collect();
    for (done, id) in gone.iter().enumerate() {
        store.commit(&[Op::Delete(&key::entry(*id))], done % 50 == 0).unwrap();
    }
    let live: u64 = lengths.iter().filter(|(id, _)| *id % 100 == 0).map(|(_, length)| *length as u64).sum();
    let most = 2 * live + 12 * segment::SMALLEST;
    assert!(full > 4 * most, "{full} {most}");
    let settled = wait_for(|| used(dir.path()) <= most);
    let (left, again) = (used(dir.path()), disk.written() - written);
    println!("{full} bytes on disk became {left}, {live} of them live; {again} bytes were written for it");
    assert!(settled, "{left} {most} {:?}", store.stats());
    // What was stored again is at most a quarter of what went; the rest are the acks themselves: a frame that begins the
    // batch and one of one piece.
    let acks = gone.len() as u64 * (frame::span(0) + frame::span(16));
    assert!(again <= (full - left) / 4 + acks, "{again} bytes written, of these {acks} for acks");
    let expected: Vec<u64> = lengths.keys().copied().filter(|id| id % 100 == 0).collect();
    assert_eq!(ids(&store), expected);
    // As after a kill.
    drop(store);
    let store = LogStore::open_with(dir.path(), LogOptions { verify: true, ..TINY }).unwrap();
    assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
    let found = contents(&store);
    assert_eq!(found.len(), expected.len());
    for id in expected {
        assert!(found[key::entry(id).as_slice()] == value(id, lengths[&id]), "{id}");
    }
}

#[test]
fn acks_that_race_with_compaction_are_kept() {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=2000 {
        store.commit(&[Op::Put(&key::entry(id), &value(id, 1000))], false).unwrap();
    }
    for id in (1..=2000).filter(|id| id % 40 != 0) {
        store.commit(&[Op::Delete(&key::entry(id))], false).unwrap();
    }
    // While what is left is stored again, it is acked by the short way.
    for id in (1..=2000).filter(|id| id % 80 == 0) {
        let key = key::entry(id);
        if !store.try_commit(&[Op::Delete(&key)]).unwrap() {
            store.commit(&[Op::Delete(&key)], false).unwrap();
        }
        thread::sleep(Duration::from_millis(15));
    }
    let expected: Vec<u64> = (1..=2000).filter(|id| id % 80 == 40).collect();
    assert_eq!(ids(&store), expected);
    assert!(wait_for(|| store.stats().rewritten_bytes > 0), "{:?}", store.stats());
    assert_eq!(ids(&store), expected);
    drop(store);
    assert_eq!(ids(&open(dir.path())), expected);
}
