//! Files that are not as they were written.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::*;
use crate::store::log::LogError;

/// Damage shows at once where everything is read.
fn open(path: &Path) -> LogStore {
    LogStore::open_with(path, LogOptions { verify: true, ..TINY }).unwrap()
}

/// Where the last byte that is not zero lies.
fn used(path: &Path) -> u64 {
    fs::read(path).unwrap().iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

pub(super) fn filled(count: u64, length: usize) -> tempfile::TempDir {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=count {
        put(&store, id, &value(id, length));
    }
    store.close().unwrap();
    dir
}

pub(super) fn check_values(store: &LogStore, length: usize) -> Vec<u64> {
    for (key, bytes) in contents(store) {
        if let Ok(key::Key::Entry(id)) = key::Key::parse(&key) {
            assert!(bytes == value(id, length), "a wrong byte in {id}");
        }
    }
    ids(store)
}

#[test]
fn o01_every_cut_of_the_tail() {
    let dir = filled(20, 100);
    let file = segments(dir.path()).pop().unwrap();
    let original = fs::read(&file).unwrap();
    let end = used(&file);
    // The closing batch takes 24 bytes; before it the last entry, with its batch header.
    let last = end.next_multiple_of(8) - 24 - (24 + 24 + 104);
    for cut in last..=end {
        for noise in [false, true] {
            let mut bytes = original.clone();
            if noise {
                bytes[usize::try_from(cut).unwrap()..usize::try_from(end).unwrap()].fill(0xa5);
            } else {
                bytes.truncate(usize::try_from(cut).unwrap());
            }
            fs::write(&file, &bytes).unwrap();
            let store = open(dir.path());
            let found = check_values(&store, 100);
            assert!(found.len() >= 19 && found[..19] == (1..=19).collect::<Vec<_>>(), "cut {cut}");
            let report = store.recovery();
            // A crash leaves no shorter file, so that is said.
            assert_eq!(report.damage.is_empty(), noise, "cut {cut}: {report:?}");
            assert!(
                report.damage.iter().all(|damage| damage.reason == "the file is too short"),
                "{report:?}"
            );
            if cut < end - 24 && cut > last + 48 && !noise {
                assert!(report.dropped_tail_bytes > 0 || found.len() == 20, "cut {cut}");
            }
            if cut == last || cut == end {
                put(&store, 50, &value(50, 100));
                drop(store);
                let again = open(dir.path());
                assert_eq!(check_values(&again, 100).len(), found.len() + 1);
                assert!(again.recovery().damage.is_empty());
                drop(again);
                for extra in segments(dir.path()) {
                    if extra != file {
                        fs::remove_file(extra).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn o02_zeros_at_the_end_lose_nothing() {
    let dir = filled(10, 100);
    for more in [1, 7, 511, 4096, 1 << 20] {
        let copy = copy(dir.path());
        let file = segments(copy.path()).pop().unwrap();
        let length = fs::metadata(&file).unwrap().len();
        OpenOptions::new().write(true).open(&file).unwrap().set_len(length + more).unwrap();
        let store = open(copy.path());
        assert!(store.recovery().clean);
        assert_eq!(check_values(&store, 100).len(), 10);
        put(&store, 11, &value(11, 100));
        drop(store);
        assert_eq!(check_values(&open(copy.path()), 100).len(), 11);
    }
}

#[test]
fn o02_zeroed_data_is_missing_and_reported() {
    let dir = filled(100, 1000);
    let file = &segments(dir.path())[0];
    let middle = used(file) / 2 / 512 * 512;
    OpenOptions::new().write(true).open(file).unwrap().write_all_at(&[0; 4096], middle).unwrap();
    let store = open(dir.path());
    let found = check_values(&store, 1000);
    assert!((93..=96).contains(&found.len()), "{}", found.len());
    let report = store.recovery();
    let lost: Vec<u64> = (1..=100).filter(|id| !found.contains(id)).collect();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!(report.damage[0].first_id, lost.first().copied());
    assert_eq!(report.damage[0].last_id, lost.last().copied());
}

#[test]
fn o03_one_flipped_bit_costs_one_entry_at_most() {
    let dir = filled(150, 1000);
    let files = segments(dir.path());
    assert!(files.len() >= 3);
    let mut random = Random::new(3);
    for round in 0..120 {
        let file = &files[random.size(files.len())];
        let at = if round < 40 { random.below(17_000) } else { random.below(used(file)) };
        let handle = OpenOptions::new().read(true).write(true).open(file).unwrap();
        let mut byte = [0];
        handle.read_exact_at(&mut byte, at).unwrap();
        handle.write_all_at(&[byte[0] ^ 1 << random.below(8)], at).unwrap();
        let store = open(dir.path());
        let found = check_values(&store, 1000);
        let report = store.recovery();
        assert!(found.len() >= 149, "{} {at}: {} {report:?}", file.display(), found.len());
        if found.len() == 149 {
            let lost = (1..=150).find(|id| !found.contains(id));
            let tail = *file == files[files.len() - 1];
            assert!(
                report.damage.iter().any(|one| one.first_id <= lost && one.last_id >= lost) || tail,
                "{report:?}"
            );
            assert!(!report.damage.is_empty() || report.dropped_tail_bytes > 0, "{report:?}");
            drop(store);
            if !report.damage.is_empty() {
                let strict = LogOptions { strict: true, ..TINY };
                assert!(matches!(LogStore::open_with(dir.path(), strict), Err(LogError::Corrupt { .. })));
            }
        }
        handle.write_all_at(&byte, at).unwrap();
    }
    assert!(open(dir.path()).recovery().clean);
}

#[test]
fn o05_a_missing_segment_is_reported_with_its_ids() {
    let dir = filled(250, 1000);
    let files = segments(dir.path());
    let whole: Vec<u64> = (1..=250).collect();
    for (at, file) in files.iter().enumerate() {
        let copy = copy(dir.path());
        fs::remove_file(copy.path().join(file.file_name().unwrap())).unwrap();
        let store = open(copy.path());
        let found = check_values(&store, 1000);
        let report = store.recovery();
        if at + 1 == files.len() {
            assert!(!report.clean);
        } else {
            assert_eq!(report.damage.len(), 1, "{report:?}");
            let (first, last) = (report.damage[0].first_id.unwrap(), report.damage[0].last_id.unwrap());
            let rest: Vec<u64> = whole.iter().copied().filter(|id| !(first..=last).contains(id)).collect();
            assert_eq!(found, rest);
        }
        put(&store, 1000, &value(1000, 1000));
        drop(store);
        assert_eq!(check_values(&open(copy.path()), 1000).len(), found.len() + 1);
    }
}

#[test]
fn both_headers_gone_still_delivers_what_the_record_knows() {
    let dir = filled(150, 1000);
    let file = segments(dir.path())[0].clone();
    let handle = OpenOptions::new().write(true).open(&file).unwrap();
    handle.write_all_at(&[0; 8192], 0).unwrap();
    let store = open(dir.path());
    assert_eq!(check_values(&store, 1000).len(), 150);
    assert_eq!(store.recovery().damage.len(), 1);
    assert!(store.recovery().damage[0].reason.contains("header"));
}

#[test]
fn both_open_records_gone_is_damage_and_the_entries_stay() {
    let dir = filled(150, 1000);
    for file in segments(dir.path()) {
        let copy = copy(dir.path());
        let path = copy.path().join(file.file_name().unwrap());
        let handle = OpenOptions::new().write(true).open(&path).unwrap();
        for at in [8192 + 8, 12_288 + 8] {
            handle.write_all_at(&[0xee; 4], at).unwrap();
        }
        let store = open(copy.path());
        assert_eq!(check_values(&store, 1000).len(), 150, "{}", path.display());
        assert_eq!(store.recovery().damage.len(), 1, "{:?}", store.recovery());
    }
}

#[test]
fn strays_are_reported_and_left_alone() {
    let (dir, other) = (filled(30, 1000), filled(30, 10));
    let stray = dir.path().join("0000000000000900.seg");
    fs::copy(&segments(other.path())[0], &stray).unwrap();
    let junk = dir.path().join("0000000000000901.seg");
    fs::write(&junk, [7; 9000]).unwrap();
    // Two of ours, so that the majority is clear.
    let store = open(dir.path());
    put(&store, 31, &value(31, 1000));
    store.close().unwrap();
    let store = open(dir.path());
    assert_eq!(check_values(&store, 1000), (1..=31).collect::<Vec<_>>());
    assert_eq!(store.recovery().damage.len(), 2);
    put(&store, 32, &value(32, 1000));
    store.close().unwrap();
    assert!(stray.exists() && junk.exists());
    assert!(segments(dir.path()).last().unwrap() > &junk);
}
