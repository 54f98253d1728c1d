//! The stores that are compared.

use std::path::Path;

#[cfg(feature = "rocksdb")]
use millpond::store::RocksStore;
#[cfg(feature = "sled")]
use millpond::store::SledStore;
use millpond::store::{LogStore, MemStore, RedbStore};
use millpond::{Builder, Durability, Queue};
use millpond_bench::CAPACITY;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Mem,
    Log,
    Redb,
    #[cfg(feature = "sled")]
    Sled,
    #[cfg(feature = "rocksdb")]
    Rocks,
}

impl Backend {
    pub(crate) const ALL: &[Self] = &[
        Self::Mem,
        Self::Log,
        Self::Redb,
        #[cfg(feature = "sled")]
        Self::Sled,
        #[cfg(feature = "rocksdb")]
        Self::Rocks,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mem => "mem",
            Self::Log => "log",
            Self::Redb => "redb",
            #[cfg(feature = "sled")]
            Self::Sled => "sled",
            #[cfg(feature = "rocksdb")]
            Self::Rocks => "rocksdb",
        }
    }

    /// An empty queue.
    pub(crate) fn open(self, directory: &Path, durability: Durability) -> Queue {
        let builder = match self {
            Self::Mem => Builder::new(MemStore::new()),
            Self::Log => Builder::new(LogStore::open(directory).expect("the log opens")),
            Self::Redb => Builder::new(RedbStore::open(directory).expect("redb opens")),
            #[cfg(feature = "sled")]
            Self::Sled => Builder::new(SledStore::open(directory).expect("sled opens")),
            #[cfg(feature = "rocksdb")]
            Self::Rocks => Builder::new(RocksStore::open(directory).expect("RocksDB opens")),
        };
        builder.capacity(CAPACITY).durability(durability).open().expect("the queue opens")
    }
}
