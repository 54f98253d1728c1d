//! What a store that a library keeps can fail with.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::directory::{Refused, is_no_space};
use super::lock::owner;
use super::{FailureKind, IoDetails};
use crate::key::UnknownKey;

/// A failure of a store whose files a library keeps (redb, sled, `RocksDB`). No message carries payload bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The system refused a call.
    #[error("{operation} failed on {}: {source}", path.display())]
    Io {
        /// The call, as far as the library tells it.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// There is no room on the device, in the quota or below the file size limit. The store accepts again when there
    /// is.
    #[error("no space: {operation} failed on {}: {source}", path.display())]
    NoSpace {
        /// The call, as far as the library tells it.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// Another owner holds the directory.
    #[error("{} is locked by {}", path.display(), owner(*pid))]
    Locked {
        /// The queue directory.
        path: PathBuf,
        /// The process that holds it, where the system says so.
        pid: Option<u32>,
    },
    /// The library found stored bytes that do not check.
    #[error("{} is damaged: {text}", path.display())]
    Corrupt {
        /// The file or directory.
        path: PathBuf,
        /// What the library says.
        text: String,
    },
    /// The directory belongs to another store. Nothing in it was changed.
    #[error("{} holds a queue of another store: {found}", path.display())]
    OtherStore {
        /// The queue directory.
        path: PathBuf,
        /// The file that tells.
        found: String,
    },
    /// The path is there and is not a directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// An earlier write failed in a way that leaves the content of the disk unknown, so nothing more is accepted.
    #[error("an earlier failure stopped the store: {text}")]
    Poisoned {
        /// The failure in words.
        text: String,
        /// The system's part of it.
        io: Option<IoDetails>,
    },
    /// A key of a kind this version does not know.
    #[error(transparent)]
    UnknownKey(#[from] UnknownKey),
    /// One value is larger than the library can hold.
    #[error("{bytes} bytes are too large for one value")]
    TooLarge {
        /// The size asked for.
        bytes: u64,
    },
    /// The library failed in some other way.
    #[error("{}: {text}", path.display())]
    Library {
        /// The file or directory.
        path: PathBuf,
        /// What the library says.
        text: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl LibraryError {
    /// A failed call that may have been for lack of room.
    pub(super) fn write(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
        // A library may pass the kind on and lose the number.
        if is_no_space(&source) || full.contains(&source.kind()) {
            Self::NoSpace { operation, path, source }
        } else {
            Self::Io { operation, path, source }
        }
    }

    /// A failed call that can have no harmless reason: after a failed fsync nothing is known, whatever its number.
    pub(super) fn sync(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_path_buf(), source }
    }

    pub(crate) fn classify(&self) -> FailureKind {
        match self {
            Self::Io { .. } | Self::Poisoned { .. } | Self::Library { .. } => FailureKind::Unknown,
            Self::NoSpace { .. } => FailureKind::NoSpace,
            Self::Locked { .. } => FailureKind::Locked,
            Self::Corrupt { .. } => FailureKind::Corrupt,
            Self::NotADirectory { .. } => FailureKind::NotADirectory,
            Self::OtherStore { .. } | Self::UnknownKey(_) | Self::TooLarge { .. } => FailureKind::NotWritten,
            Self::Closed => FailureKind::Closed,
        }
    }

    pub(crate) fn io_details(&self) -> Option<IoDetails> {
        match self {
            Self::Io { operation, path, source } | Self::NoSpace { operation, path, source } => {
                let errno = source.raw_os_error();
                Some(IoDetails { operation, path: path.clone(), errno })
            }
            Self::Poisoned { io, .. } => io.clone(),
            _ => None,
        }
    }
}

impl From<Refused> for LibraryError {
    fn from(refused: Refused) -> Self {
        if refused.is_not_a_directory() {
            return Self::NotADirectory { path: refused.path };
        }
        match refused.operation {
            "fsync" => Self::sync("fsync", &refused.path, refused.source),
            operation => Self::write(operation, &refused.path, refused.source),
        }
    }
}
