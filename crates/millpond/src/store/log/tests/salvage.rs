//! Damage is given up once: what is intact is delivered, what is not is kept aside and reported.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::damage::{check_values, filled};
use super::freeing::wait_for;
use super::sim::SimDisk;
use super::*;
use crate::store::FailureKind;
use crate::store::log::{LogError, frame, quarantine, repair, verify};

/// Where the frame of an entry lies: file, offset, generation.
fn place(path: &Path, id: u64) -> (PathBuf, u64, u64) {
    for file in segments(path) {
        let bytes = fs::read(&file).unwrap();
        let Some(header) = segment::Header::decode(&bytes).unwrap() else { continue };
        let is_entry = |at: &usize| {
            frame::parse(&bytes[*at..], header.seed(), *at as u64)
                .is_some_and(|head| head.kind == frame::ENTRY && head.id == id)
        };
        if let Some(at) = (0..bytes.len() - 64).step_by(8).find(is_entry) {
            return (file, at as u64, header.generation);
        }
    }
    panic!("{id} is in no file")
}

fn flip(file: &Path, at: u64) {
    let handle = OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    handle.read_exact_at(&mut byte, at).unwrap();
    handle.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

fn kept_aside(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = path.join(quarantine::FOLDER);
    if folder.exists() { tree(&folder) } else { BTreeMap::new() }
}

/// Everything, with no payload trusted to a footer.
fn open_verifying(path: &Path) -> LogStore {
    LogStore::open_with(path, LogOptions { verify: true, ..TINY }).unwrap()
}

#[test]
fn o03_damage_is_given_up_once_and_its_bytes_are_kept_aside() {
    let dir = filled(150, 1000);
    let (file, at, generation) = place(dir.path(), 30);
    let original = fs::read(&file).unwrap();
    flip(&file, at + 24 + 500);
    let damaged = fs::read(&file).unwrap();
    let before = tree_of_files(dir.path());
    let store = open_verifying(dir.path());
    let found = check_values(&store, 1000);
    let whole: Vec<u64> = (1..=150).filter(|id| *id != 30).collect();
    assert_eq!(found, whole);
    let report = store.recovery();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!(report.damage[0].file, file.file_name().unwrap().to_str().unwrap());
    assert!((report.damage[0].first_id..=report.damage[0].last_id).contains(&Some(30)), "{report:?}");
    assert_eq!(store.stats().damaged, 1);
    drop(before);
    put(&store, 200, &value(200, 1000));
    let kept = kept_aside(dir.path());
    let name = quarantine::name(generation, at);
    assert_eq!(kept.len(), 1);
    let range = usize::try_from(at).unwrap()..usize::try_from(at).unwrap() + 24 + 1000;
    assert_eq!(kept[&dir.path().join(quarantine::FOLDER).join(&name)], damaged[range.clone()]);
    assert_ne!(original[range.clone()], damaged[range]);
    drop(store);
    // The second open finds nothing new, and adds nothing.
    for _ in 0..2 {
        let store = open_verifying(dir.path());
        assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
        assert_eq!(check_values(&store, 1000).len(), 150);
        put(&store, 200, &value(200, 1000));
        assert_eq!(kept_aside(dir.path()), kept);
    }
    // The segment is no longer kept: it goes with its last entry.
    let store = open_verifying(dir.path());
    for id in ids(&store) {
        delete(&store, id);
    }
    assert!(wait_for(|| store.stats().segments == 1), "{:?}", store.stats());
    store.close().unwrap();
    assert!(!file.exists());
    assert_eq!(kept_aside(dir.path()), kept);
}

fn tree_of_files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    segments(path).into_iter().map(|file| (file.clone(), fs::read(&file).unwrap())).collect()
}

#[test]
fn a_read_that_does_not_check_twice_gives_its_entry_up() {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=60 {
        put(&store, id, &value(id, 3000));
    }
    let (file, at, _) = place(dir.path(), 7);
    flip(&file, at + 24 + 1);
    assert_eq!(store.get(&key::entry(7)).unwrap(), None);
    assert_eq!(store.take_lost().iter().map(|lost| (lost.id, lost.bytes)).collect::<Vec<_>>(), [(7, 3000)]);
    assert!(store.take_lost().is_empty());
    let rest: Vec<u64> = (1..=60).filter(|id| *id != 7).collect();
    assert_eq!(check_values(&store, 3000), rest);
    let report = store.recovery();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!((report.damage[0].first_id, report.damage[0].offset), (Some(7), at));
    assert_eq!(store.stats().damaged, 1);
    assert_eq!(store.summary().unwrap().count, 59);
    assert_eq!(kept_aside(dir.path()).len(), 1);
    drop(store);
    let store = open_verifying(dir.path());
    assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
    assert_eq!(check_values(&store, 3000), rest);
}

#[test]
fn strict_gives_nothing_up() {
    let dir = directory();
    let strict = LogOptions { strict: true, ..TINY };
    let store = LogStore::open_with(dir.path(), strict).unwrap();
    for id in 1..=60 {
        put(&store, id, &value(id, 3000));
    }
    let (file, at, _) = place(dir.path(), 7);
    flip(&file, at + 24 + 1);
    for _ in 0..3 {
        let error = store.get(&key::entry(7)).unwrap_err();
        assert_eq!(store.classify(&error), FailureKind::Corrupt);
        assert!(matches!(&error, LogError::Corrupt { path, offset, .. } if *path == file && *offset == at));
    }
    assert_eq!(store.summary().unwrap().count, 60);
    drop(store);
    let before = tree_of_files(dir.path());
    assert!(matches!(LogStore::open_with(dir.path(), strict), Err(LogError::Corrupt { .. })));
    assert_eq!(tree_of_files(dir.path()), before);
    assert!(kept_aside(dir.path()).is_empty());
}

#[test]
fn without_room_in_quarantine_the_rest_is_delivered_all_the_same() {
    let dir = filled(150, 1000);
    let (file, at, _) = place(dir.path(), 30);
    flip(&file, at + 24 + 500);
    // A file has the name of the folder.
    fs::write(dir.path().join(quarantine::FOLDER), b"in the way").unwrap();
    let store = open_verifying(dir.path());
    put(&store, 151, &value(151, 1000));
    drop(store);
    let store = open_verifying(dir.path());
    assert!(store.recovery().damage.is_empty(), "{:?}", store.recovery());
    assert_eq!(check_values(&store, 1000).len(), 150);
}

#[test]
fn a_read_that_fails_loses_nothing() {
    let disk = SimDisk::new();
    let store = LogStore::open_on(Arc::new(disk.clone()), TINY).unwrap();
    for id in 1..=3 {
        put(&store, id, &value(id, 1000));
    }
    disk.0.state.lock().fail_reads = true;
    for _ in 0..3 {
        let error = store.get(&key::entry(2)).unwrap_err();
        assert_eq!(store.classify(&error), FailureKind::NotWritten, "{error}");
    }
    disk.0.state.lock().fail_reads = false;
    assert_eq!(store.get(&key::entry(2)).unwrap().unwrap(), value(2, 1000));
    assert!(store.take_lost().is_empty() && store.recovery().damage.is_empty());
    put(&store, 4, b"goes on");
}

#[test]
fn o05_a_directory_that_is_deleted_beneath_the_log() {
    let dir = directory();
    let path = dir.path().join("queue");
    let store = open(&path);
    for id in 1..=100 {
        put(&store, id, &value(id, 5000));
    }
    // The thread makes files meanwhile.
    while fs::remove_dir_all(&path).is_err() && path.exists() {}
    // What fits the segment in use is as good as before; nothing is answered behind the next change of segment.
    let answered = (101..=200).take_while(|id| {
        let (key, bytes) = (key::entry(*id), value(*id, 5000));
        store.commit(&[Op::Put(&key, &bytes)], true).is_ok()
    });
    assert!(answered.count() <= 10);
    let error = store.commit(&[Op::Put(&key::entry(300), &value(300, 5000))], true).unwrap_err();
    assert!(store.io_details(&error).unwrap().path.starts_with(&path), "{error}");
    let refused = (1..=100).filter_map(|id| store.get(&key::entry(id)).err());
    let mut refusals = 0;
    for error in refused {
        assert!(store.io_details(&error).unwrap().path.starts_with(&path), "{error}");
        refusals += 1;
    }
    assert!(refusals > 0 && store.take_lost().is_empty());
}

#[test]
fn o05_a_segment_that_is_deleted_beneath_the_log() {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=150 {
        put(&store, id, &value(id, 5000));
    }
    let file = segments(dir.path())[1].clone();
    fs::remove_file(&file).unwrap();
    // Enough other segments are read to close every descriptor of it.
    let mut failed = Vec::new();
    for _ in 0..2 {
        failed = (1..=150).filter(|id| store.get(&key::entry(*id)).is_err()).collect();
    }
    assert!(!failed.is_empty() && failed.len() <= 13, "{failed:?}");
    let error = store.get(&key::entry(failed[0])).unwrap_err();
    assert_eq!(store.io_details(&error).unwrap().path, file);
    put(&store, 151, b"goes on");
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.recovery().damage.len(), 1, "{:?}", store.recovery());
    assert_eq!(ids(&store).len(), 151 - failed.len());
}

#[test]
fn verify_looks_beside_a_running_owner_and_changes_nothing() {
    let dir = directory();
    let store = open(dir.path());
    for id in 1..=150 {
        put(&store, id, &value(id, 1000));
    }
    let before = tree_of_files(dir.path());
    let found = verify(dir.path()).unwrap();
    assert_eq!((found.entries, found.bytes), (150, 150_000));
    assert!(found.recovery.damage.is_empty() && found.quarantined == 0, "{found:?}");
    assert_eq!(tree_of_files(dir.path()), before);
    // An owner that writes, fills and lets segments go all the while never looks damaged.
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 1000..1600 {
                put(&store, id, &value(id, 2000));
                delete(&store, id);
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut looks = 0;
        while !done.load(std::sync::atomic::Ordering::Acquire) || looks == 0 {
            let found = verify(dir.path()).unwrap();
            assert!(found.recovery.damage.is_empty(), "{found:?}");
            assert!((150..=152).contains(&found.entries), "{found:?}");
            looks += 1;
        }
    });
    assert!(matches!(repair(dir.path()), Err(LogError::Locked { .. })));
    assert!(verify(dir.path().join("none")).is_err() && !dir.path().join("none").exists());
}

#[test]
fn repair_makes_a_log_that_strict_opens() {
    let dir = filled(250, 1000);
    let files = segments(dir.path());
    let (file, at, _) = place(dir.path(), 10);
    flip(&file, at + 24 + 500);
    fs::remove_file(&files[1]).unwrap();
    let found = verify(dir.path()).unwrap();
    assert_eq!(found.recovery.damage.len(), 2, "{found:?}");
    let repaired = repair(dir.path()).unwrap();
    assert_eq!(repaired.found.damage, found.recovery.damage);
    assert!(repaired.after.recovery.damage.is_empty(), "{repaired:?}");
    assert_eq!((repaired.after.quarantined, repaired.after.entries), (1, found.entries));
    let strict = LogOptions { strict: true, ..TINY };
    let store = LogStore::open_with(dir.path(), strict).unwrap();
    assert_eq!(check_values(&store, 1000).len() as u64, found.entries);
    store.close().unwrap();
    // Once more changes nothing.
    let before = tree_of_files(dir.path());
    let again = repair(dir.path()).unwrap();
    assert!(again.found.damage.is_empty());
    assert_eq!(tree_of_files(dir.path()), before);
}
