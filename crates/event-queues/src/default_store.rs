//! The store behind `open(path)`.

use std::fs;
use std::path::Path;

use millpond::Failure;
#[cfg(not(feature = "rocksdb"))]
use millpond::store::LogStore as Chosen;
#[cfg(feature = "rocksdb")]
use millpond::store::RocksStore as Chosen;

use crate::error::DurableEventQueueError;

/// The store that [`DurableEventQueue::open`](crate::DurableEventQueue::open) uses: RocksDB with the feature `rocksdb`,
/// else millpond's segmented log.
///
/// A directory that the other of the two has written is refused, so that a build with another feature does not take a
/// full queue for an empty one. [`with_store`](crate::DurableEventQueue::with_store) opens any store.
pub type DefaultStore = Chosen;

/// What is said about each of the two.
const ROCKSDB: &str = "a RocksDB database";
const LOG: &str = "a segmented log";

pub(crate) fn open(path: &Path) -> Result<DefaultStore, DurableEventQueueError> {
    let (other, opens) = if cfg!(feature = "rocksdb") { (LOG, ROCKSDB) } else { (ROCKSDB, LOG) };
    if found(path) == Some(other) {
        return Err(DurableEventQueueError::OtherStore { found: other, opens });
    }
    Ok(DefaultStore::open(path).map_err(Failure::from)?)
}

/// Which of the two stores has files in the directory. What cannot be listed is left to the store to judge.
fn found(path: &Path) -> Option<&'static str> {
    fs::read_dir(path).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?;
        // RocksDB names its manifest in this file, and writes it first.
        if name == "CURRENT" {
            return Some(ROCKSDB);
        }
        name.strip_suffix(".seg").filter(|stem| stem.bytes().all(|byte| byte.is_ascii_digit())).map(|_| LOG)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_tell_the_store() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(found(&dir.path().join("missing")), None);
        fs::write(dir.path().join("LOCK"), b"").unwrap();
        fs::write(dir.path().join("notes.seg"), b"").unwrap();
        assert_eq!(found(dir.path()), None);
        let segment = dir.path().join("0000000000000001.seg");
        fs::write(&segment, b"").unwrap();
        assert_eq!(found(dir.path()), Some(LOG));
        fs::remove_file(segment).unwrap();
        fs::write(dir.path().join("CURRENT"), b"").unwrap();
        assert_eq!(found(dir.path()), Some(ROCKSDB));
    }

    #[test]
    fn the_files_of_the_other_store_are_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let name = if cfg!(feature = "rocksdb") { "0000000000000001.seg" } else { "CURRENT" };
        fs::write(dir.path().join(name), b"not empty").unwrap();
        let error = open(dir.path()).err().unwrap();
        assert_eq!(error.code(), millpond::ErrorCode::Unsupported);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
