//! The numbered clauses of [`millpond::store::Store`] as checks, one function each; a store of your own can be put
//! under them too. Each panics at what does not hold.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    reason = "a check that fails panics"
)]

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::Path;

use millpond::store::{FailureKind, Op, Store, Summary};
use millpond::{ErrorCode, key};

use crate::random::Random;
use crate::subjects::Subject;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A directory for one check, below the folder of the build, removed at its end.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn body(kind: u8, id: u64) -> Vec<u8> {
    let mut key = key::entry(id).to_vec();
    key[0] = kind;
    key
}

/// A key of any kind.
fn random_key(random: &mut Random) -> Vec<u8> {
    let id = [random.below(40), 250 + random.below(12), u64::MAX - random.below(3)];
    let id = id[usize::try_from(random.below(3)).unwrap()];
    match random.below(6) {
        0 => key::META_KEY.to_vec(),
        1 => body(key::ATTEMPT, id),
        2 => body(key::DUE, id),
        3 => [&[key::DEDUPE][..], &id.to_le_bytes()[..usize::try_from(random.below(9)).unwrap()]].concat(),
        _ => key::entry(id).to_vec(),
    }
}

fn random_value(random: &mut Random) -> Vec<u8> {
    let length = if random.below(20) == 0 { random.below(100_000) } else { random.below(60) };
    (0..length).map(|at| u8::try_from((at * 7 + length) % 251).unwrap()).collect()
}

fn put(id: u64, value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (key::entry(id).to_vec(), value.to_vec())
}

fn commit_pairs<S: Store>(store: &S, pairs: &[(Vec<u8>, Vec<u8>)], durable: bool) {
    let ops: Vec<Op<'_>> = pairs.iter().map(|(key, value)| Op::Put(key, value)).collect();
    store.commit(&ops, durable).unwrap();
}

/// Every pair, read forwards.
fn pairs<S: Store>(store: &S) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut found, mut from) = (Vec::new(), Vec::new());
    while let Some((key, value)) = store.seek(&from).unwrap() {
        from.clone_from(&key);
        from.push(0);
        found.push((key, value));
    }
    found
}

/// Copies the files of a store as another process would find them if this one were killed now.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What another process finds in a copy of the store's files.
fn after_kill<T: Subject>(directory: &Path) -> Model {
    let other = scratch();
    copy(directory, other.path());
    pairs(&T::open(other.path()).unwrap()).into_iter().collect()
}

/// Compares every way of reading with the model, at keys that are there and at keys that are not.
fn compare<S: Store>(store: &S, model: &Model, random: &mut Random) {
    let mut probes: Vec<Vec<u8>> = (0..20).map(|_| random_key(random)).collect();
    probes.extend([Vec::new(), vec![0xFF], vec![0xFF; 12], vec![key::ENTRY]]);
    for probe in &probes {
        let pair =
            |found: Option<(&Vec<u8>, &Vec<u8>)>| found.map(|(key, value)| (key.clone(), value.clone()));
        let above = pair(model.range::<[u8], _>((Bound::Included(&probe[..]), Bound::Unbounded)).next());
        let below = pair(model.range::<[u8], _>((Bound::Unbounded, Bound::Included(&probe[..]))).next_back());
        assert_eq!(store.get(probe).unwrap().as_ref(), model.get(probe), "get {probe:?}");
        assert_eq!(
            store.next_key(probe).unwrap(),
            above.as_ref().map(|(key, _)| key.clone()),
            "next_key {probe:?}"
        );
        assert_eq!(store.seek(probe).unwrap(), above, "seek {probe:?}");
        assert_eq!(store.seek_back(probe).unwrap(), below, "seek_back {probe:?}");
    }
    assert_eq!(store.summary().unwrap(), summary(model));
}

fn summary(model: &Model) -> Summary {
    let mut summary = Summary::default();
    for (found, value) in model {
        if let Ok(key::Key::Entry(id)) = key::Key::parse(found) {
            summary.count += 1;
            summary.bytes += value.len() as u64;
            summary.first.get_or_insert(id);
            summary.last = Some(id);
        }
    }
    summary
}

/// 1. Readers see everything a returned commit applied, and nothing else; all kinds of keys, random operations, opens
///    in between.
pub fn clause_1_readers_see_what_a_returned_commit_applied<T: Subject>() {
    let (mut random, seed) = Random::from_environment();
    println!("{}: MILLPOND_SEED={seed}", T::NAME);
    let directory = scratch();
    let mut model = Model::new();
    for life in 0..if T::IS_ON_DISK { 4 } else { 1 } {
        let store = T::open(directory.path()).unwrap();
        compare(&store, &model, &mut random);
        for _ in 0..40 {
            let changes: Vec<(Vec<u8>, Option<Vec<u8>>)> = (0..random.below(12))
                .map(|_| {
                    let value = (random.below(3) > 0).then(|| random_value(&mut random));
                    (random_key(&mut random), value)
                })
                .collect();
            let ops: Vec<Op<'_>> = changes
                .iter()
                .map(|(key, value)| match value {
                    Some(value) => Op::Put(key, value),
                    None => Op::Delete(key),
                })
                .collect();
            store.commit(&ops, random.below(4) == 0).unwrap();
            for (key, value) in changes {
                match value {
                    Some(value) => drop(model.insert(key, value)),
                    None => drop(model.remove(&key)),
                }
            }
            compare(&store, &model, &mut random);
        }
        // A clean close keeps non-durable commits too; the last life of each two ends without one.
        if life % 2 == 0 {
            store.close().unwrap();
        } else {
            store.commit(&[], true).unwrap();
        }
    }
}

/// 2. Keys are ordered as byte strings, forwards and backwards, across kinds and lengths.
pub fn clause_2_keys_are_ordered_as_byte_strings<T: Subject>() {
    let mut random = Random::new(2);
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    let model: Model = (0..200).map(|_| random_key(&mut random)).map(|key| (key.clone(), key)).collect();
    let shuffled: Vec<_> = model.clone().into_iter().rev().collect();
    commit_pairs(&store, &shuffled, true);
    assert_eq!(pairs(&store), model.clone().into_iter().collect::<Vec<_>>());
    let mut backwards = Vec::new();
    let mut upto = vec![0xFE; 32];
    while let Some((key, value)) = store.seek_back(&upto).unwrap() {
        store.commit(&[Op::Delete(&key)], false).unwrap();
        upto.clone_from(&key);
        backwards.push((key, value));
    }
    assert_eq!(backwards, model.into_iter().rev().collect::<Vec<_>>());
}

/// 3. What `commit(.., true)` answered, and every earlier commit, is in the files. (That the files are on the device is
///    shown by the system calls, and by the images of the block device.)
pub fn clause_3_a_durable_commit_keeps_every_earlier_one<T: Subject>() {
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    let mut model = Model::new();
    for round in 0..10 {
        let unsynced = [put(3 * round, b"earlier"), put(3 * round + 1, &[9; 5000])];
        let synced = [put(3 * round + 2, b"durable")];
        commit_pairs(&store, &unsynced, false);
        commit_pairs(&store, &synced, true);
        model.extend(unsynced.into_iter().chain(synced));
        if T::IS_ON_DISK {
            assert_eq!(after_kill::<T>(directory.path()), model, "round {round}");
        }
    }
}

/// 4. `commit(.., false)` is visible to the readers of the process; it survives the process where the store says so.
pub fn clause_4_a_non_durable_commit_is_visible<T: Subject>() {
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    commit_pairs(&store, &[put(1, b"a")], false);
    assert_eq!(store.get(&key::entry(1)).unwrap().as_deref(), Some(&b"a"[..]));
    if T::KEEPS_UNSYNCED {
        assert_eq!(after_kill::<T>(directory.path()).len(), 1);
    }
    store.close().unwrap();
    if T::IS_ON_DISK {
        drop(store);
        assert_eq!(pairs(&T::open(directory.path()).unwrap()).len(), 1, "a clean close keeps it");
    }
}

/// 5. Operations of one commit apply in order, and a key may be put again after its delete.
pub fn clause_5_operations_apply_in_order<T: Subject>() {
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    let (one, two) = (key::entry(1), key::entry(2));
    let ops = [
        Op::Put(&one, b"first"),
        Op::Put(&one, b"second, longer"),
        Op::Put(&two, b"x"),
        Op::Delete(&two),
        Op::Delete(&one),
        Op::Put(&one, b"third"),
    ];
    store.commit(&ops, true).unwrap();
    assert_eq!(pairs(&store), [put(1, b"third")]);
    store.commit(&[Op::Delete(&one), Op::Delete(&two)], true).unwrap();
    assert_eq!(pairs(&store), []);
    assert_eq!(store.summary().unwrap(), Summary::default());
    store.commit(&[Op::Put(&one, b"again")], true).unwrap();
    assert_eq!(pairs(&store), [put(1, b"again")]);
    assert_eq!(store.summary().unwrap(), Summary { count: 1, bytes: 5, first: Some(1), last: Some(1) });
    drop(store);
    if T::IS_ON_DISK {
        assert_eq!(pairs(&T::open(directory.path()).unwrap()), [put(1, b"again")]);
    }
}

/// 6 (with close). A store that was closed accepts no call; on disk it can be opened again at once. That a store which
///   failed accepts nothing more is shown under injected errors.
pub fn clause_6_a_closed_store_accepts_nothing<T: Subject>() {
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    commit_pairs(&store, &[put(1, b"a")], true);
    store.close().unwrap();
    let one = key::entry(1);
    let closed = |error: <T::Store as Store>::Error| {
        assert_eq!(store.classify(&error), FailureKind::Closed, "{error}");
    };
    closed(store.commit(&[Op::Delete(&one)], true).unwrap_err());
    closed(store.get(&one).unwrap_err());
    closed(store.seek(&one).unwrap_err());
    closed(store.next_key(&one).unwrap_err());
    closed(store.summary().unwrap_err());
    closed(store.close().unwrap_err());
    // The lock is given back by the close, not by the drop.
    let again = T::open(directory.path()).unwrap();
    assert_eq!(pairs(&again), [put(1, b"a")]);
}

/// 7. An empty durable commit makes earlier non-durable ones durable.
pub fn clause_7_an_empty_durable_commit_makes_earlier_ones_durable<T: Subject>() {
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    commit_pairs(&store, &[put(1, b"a")], true);
    commit_pairs(&store, &[put(2, b"b")], false);
    store.commit(&[], true).unwrap();
    store.commit(&[], false).unwrap();
    if T::IS_ON_DISK {
        assert_eq!(
            after_kill::<T>(directory.path()).into_iter().collect::<Vec<_>>(),
            [put(1, b"a"), put(2, b"b")]
        );
    }
}

/// Only a store in memory has entries that are reached under a queue's lock, and they are those of the other methods.
pub fn clause_8_memory_is_the_same_entries<T: Subject>() {
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    assert_eq!(store.memory().is_some(), !T::IS_ON_DISK);
    let Some(memory) = store.memory() else { return };
    memory.put(7, vec![1, 2]);
    memory.put(7, vec![3]);
    commit_pairs(&store, &[put(9, b"nine")], false);
    assert_eq!(pairs(&store), [put(7, &[3]), put(9, b"nine")]);
    assert_eq!((memory.get(9).as_deref(), memory.get(8)), (Some(&b"nine"[..]), None));
    assert_eq!((memory.remove(9).as_deref(), memory.remove(9)), (Some(&b"nine"[..]), None));
    store.commit(&[Op::Delete(&key::entry(7))], false).unwrap();
    assert_eq!(memory.get(7), None);
    assert!(pairs(&store).is_empty());
}

/// A commit with a key of a kind this version does not know is refused whole, and the store goes on.
pub fn unknown_kinds_are_refused_and_nothing_is_written<T: Subject>() {
    let directory = scratch();
    let store = T::open(directory.path()).unwrap();
    let good = key::entry(1);
    for bad in
        [&[][..], &[0, 0], &[1, 2], &[9, 0, 0, 0, 0, 0, 0, 0, 0], &[0xFF], &[0xFF, 0, 0, 0, 0, 0, 0, 0, 1]]
    {
        for op in [Op::Put(bad, b"x"), Op::Delete(bad)] {
            let error = store.commit(&[Op::Put(&good, b"a"), op], true).unwrap_err();
            assert_eq!(store.classify(&error), FailureKind::NotWritten, "{error}");
        }
        assert_eq!(store.get(bad).unwrap(), None);
    }
    assert_eq!(pairs(&store), []);
    commit_pairs(&store, &[put(1, b"a")], true);
    assert_eq!(pairs(&store), [put(1, b"a")]);
}

/// A directory has one owner; the second is told who the first is, and nothing is left when the first goes.
pub fn a_directory_has_one_owner<T: Subject>() {
    let directory = scratch();
    let path = directory.path().join("made/by/open");
    let store = T::open(&path).unwrap();
    for _ in 0..3 {
        let refused = T::open(&path).err().unwrap();
        assert_eq!(refused.code(), ErrorCode::Locked);
        assert!(refused.message().contains(&format!("process {}", std::process::id())), "{refused}");
    }
    drop(store);
    drop(T::open(&path).unwrap());
    let file = directory.path().join("file");
    fs::write(&file, b"").unwrap();
    assert_eq!(T::open(&file).err().unwrap().code(), ErrorCode::NotADirectory);
}

/// Nobody else may read what is queued: the directory has mode 0700, every file that is there after an open or a close
/// mode 0600.
pub fn files_are_the_owners_alone<T: Subject>() {
    let directory = scratch();
    let path = directory.path().join("queue");
    let store = T::open(&path).unwrap();
    check_modes(&path);
    commit_pairs(&store, &[put(1, &vec![7; 100_000])], true);
    store.close().unwrap();
    check_modes(&path);
    let store = T::open(&path).unwrap();
    check_modes(&path);
    assert!(store.stats().disk_bytes > 0);
}

fn check_modes(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700, "{}", path.display());
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            check_modes(&path);
        } else {
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{}", path.display());
        }
    }
}
