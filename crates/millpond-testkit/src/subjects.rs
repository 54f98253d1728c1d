//! The stores of this crate as one list, so that every test of stores runs on all of them.

use std::path::Path;

use millpond::Failure;
use millpond::store::{LogOptions, LogStore, MemStore, Store};

/// A store that is tested.
pub trait Subject: 'static {
    /// The store.
    type Store: Store + 'static;

    /// Its name, as the workers take it.
    const NAME: &'static str;

    /// Whether it keeps anything when the process ends.
    const IS_ON_DISK: bool = true;

    /// Whether a non-durable commit survives the end of the process.
    const KEEPS_UNSYNCED: bool;

    /// Whether a file of this name (below the queue directory) holds entries.
    fn holds_entries(file: &str) -> bool;

    /// Opens it.
    ///
    /// # Errors
    /// That of the store.
    fn open(directory: &Path) -> Result<Self::Store, Failure>;
}

fn has_ending(file: &str, ending: &str) -> bool {
    Path::new(file).extension().is_some_and(|found| found == ending)
}

/// [`MemStore`].
#[derive(Debug)]
pub struct Mem;

impl Subject for Mem {
    type Store = MemStore;
    const NAME: &'static str = "mem";
    const IS_ON_DISK: bool = false;
    const KEEPS_UNSYNCED: bool = false;

    fn holds_entries(_file: &str) -> bool {
        false
    }

    fn open(_directory: &Path) -> Result<MemStore, Failure> {
        Ok(MemStore::new())
    }
}

/// [`LogStore`], with small segments, so that changes of segment and their freeing happen often.
#[derive(Debug)]
pub struct Log;

impl Subject for Log {
    type Store = LogStore;
    const NAME: &'static str = "log";
    const KEEPS_UNSYNCED: bool = true;

    fn holds_entries(file: &str) -> bool {
        has_ending(file, "seg")
    }

    fn open(directory: &Path) -> Result<LogStore, Failure> {
        let options = LogOptions { segment_bytes: 64 << 10, ..LogOptions::default() };
        Ok(LogStore::open_with(directory, options)?)
    }
}

/// [`millpond::store::RedbStore`].
#[cfg(feature = "redb")]
#[derive(Debug)]
pub struct Redb;

#[cfg(feature = "redb")]
impl Subject for Redb {
    type Store = millpond::store::RedbStore;
    const NAME: &'static str = "redb";
    const KEEPS_UNSYNCED: bool = false;

    fn holds_entries(file: &str) -> bool {
        file == "queue.redb"
    }

    fn open(directory: &Path) -> Result<Self::Store, Failure> {
        Ok(millpond::store::RedbStore::open(directory)?)
    }
}

/// [`millpond::store::SledStore`].
#[cfg(feature = "sled")]
#[derive(Debug)]
pub struct Sled;

#[cfg(feature = "sled")]
impl Subject for Sled {
    type Store = millpond::store::SledStore;
    const NAME: &'static str = "sled";
    const KEEPS_UNSYNCED: bool = false;

    fn holds_entries(file: &str) -> bool {
        file == "sled/db" || file.starts_with("sled/blobs/")
    }

    fn open(directory: &Path) -> Result<Self::Store, Failure> {
        Ok(millpond::store::SledStore::open(directory)?)
    }
}

/// [`millpond::store::RocksStore`].
#[cfg(feature = "rocksdb")]
#[derive(Debug)]
pub struct Rocks;

#[cfg(feature = "rocksdb")]
impl Subject for Rocks {
    type Store = millpond::store::RocksStore;
    const NAME: &'static str = "rocksdb";
    const KEEPS_UNSYNCED: bool = true;

    fn holds_entries(file: &str) -> bool {
        file.starts_with("rocksdb/") && has_ending(file, "log")
    }

    fn open(directory: &Path) -> Result<Self::Store, Failure> {
        Ok(millpond::store::RocksStore::open(directory)?)
    }
}

/// Runs a function that is generic over [`Subject`] on the store of this name; `None` when the build has no such
/// store.
#[macro_export]
macro_rules! on_store {
    ($name:expr, $function:ident($($argument:expr),*)) => {
        match $name {
            "mem" => Some($function::<$crate::subjects::Mem>($($argument),*)),
            "log" => Some($function::<$crate::subjects::Log>($($argument),*)),
            #[cfg(feature = "redb")]
            "redb" => Some($function::<$crate::subjects::Redb>($($argument),*)),
            #[cfg(feature = "sled")]
            "sled" => Some($function::<$crate::subjects::Sled>($($argument),*)),
            #[cfg(feature = "rocksdb")]
            "rocksdb" => Some($function::<$crate::subjects::Rocks>($($argument),*)),
            _ => None,
        }
    };
}

/// One test for each of these functions on one store. The functions are in scope and generic over [`Subject`].
#[macro_export]
macro_rules! tests_on {
    ($module:ident = $subject:ty: $($test:ident),* $(,)?) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::$test::<$subject>();
                }
            )*
        }
    };
}

/// One test for each of these functions on every store that keeps files.
#[macro_export]
macro_rules! tests_on_disk_stores {
    ($($body:tt)*) => {
        $crate::tests_on! { log = $crate::subjects::Log: $($body)* }
        #[cfg(feature = "redb")]
        $crate::tests_on! { redb = $crate::subjects::Redb: $($body)* }
        #[cfg(feature = "sled")]
        $crate::tests_on! { sled = $crate::subjects::Sled: $($body)* }
        #[cfg(feature = "rocksdb")]
        $crate::tests_on! { rocksdb = $crate::subjects::Rocks: $($body)* }
    };
}

/// One test for each of these functions on every store.
#[macro_export]
macro_rules! tests_on_all_stores {
    ($($body:tt)*) => {
        $crate::tests_on! { mem = $crate::subjects::Mem: $($body)* }
        $crate::tests_on_disk_stores! { $($body)* }
    };
}
