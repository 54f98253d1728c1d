//! What the log can fail with.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::key::UnknownKey;
use crate::store::directory::is_no_space;
use crate::store::{FailureKind, IoDetails};

/// A failure of the segmented log. No message carries payload bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// A system call failed.
    #[error("{operation} failed on {}: {source}", path.display())]
    Io {
        /// The system call.
        operation: &'static str,
        /// The file or directory it was applied to.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// There is no room on the device, in the quota or below the file size limit. The log accepts again when there is.
    #[error("no space: {operation} failed on {}: {source}", path.display())]
    NoSpace {
        /// The system call.
        operation: &'static str,
        /// The file or directory it was applied to.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// Another owner holds the directory.
    #[error("{} is locked by {}", path.display(), holder(*pid))]
    Locked {
        /// The queue directory.
        path: PathBuf,
        /// The process that holds it, where the system says so.
        pid: Option<u32>,
    },
    /// Stored bytes do not check.
    #[error("{} is damaged at offset {offset}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// What is wrong, in a few words.
        reason: &'static str,
    },
    /// The directory was written by a newer format. Nothing in it was changed.
    #[error("written by newer format {found}, this is {known}")]
    NewerFormat {
        /// The format found.
        found: u32,
        /// The newest format this version knows.
        known: u32,
    },
    /// The directory uses something that must be understood and is not known here. Nothing in it was changed.
    #[error("written by a newer version: unknown {what} {bits:#x}")]
    UnknownFeature {
        /// The kind of thing.
        what: &'static str,
        /// Its bits.
        bits: u32,
    },
    /// The path is there and is not a directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory belongs to another store. Nothing in it was changed.
    #[error("{} holds a queue of another store: {found}", path.display())]
    OtherStore {
        /// The queue directory.
        path: PathBuf,
        /// The file that tells.
        found: String,
    },
    /// An earlier write or fsync failed, so nothing more is accepted. Reading goes on.
    #[error("an earlier failure stopped the log: {operation} on {}: {text}", path.display())]
    Poisoned {
        /// The system call that failed first.
        operation: &'static str,
        /// What it was applied to.
        path: PathBuf,
        /// Its error number, if the system gave one.
        errno: Option<i32>,
        /// Its error in words.
        text: String,
    },
    /// A key of a kind this version does not know.
    #[error(transparent)]
    UnknownKey(#[from] UnknownKey),
    /// One commit, or one value, is larger than the format can hold.
    #[error("{bytes} bytes are too large for one commit")]
    TooLarge {
        /// The size asked for.
        bytes: u64,
    },
    /// Reading everything at open needs more memory than it may use. Nothing was changed; an open that reads later works.
    #[error("the backlog needs {needed} bytes of memory, the limit is {limit}")]
    NeedsMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another owner".to_owned(), |pid| format!("process {pid}"))
}

impl LogError {
    /// A failed call that can have no harmless reason.
    pub(super) fn io(operation: &'static str, path: PathBuf, source: io::Error) -> Self {
        Self::Io { operation, path, source }
    }

    /// A failed write or creation: lack of room is told apart, because it poisons nothing.
    pub(super) fn write(operation: &'static str, path: PathBuf, source: io::Error) -> Self {
        if is_no_space(&source) {
            Self::NoSpace { operation, path, source }
        } else {
            Self::Io { operation, path, source }
        }
    }

    /// Whether the log must stop: the state of the disk is not known after it.
    pub(super) fn poisons(&self) -> bool {
        // A file that could not be made (EMFILE, EACCES) changed nothing.
        matches!(self, Self::Io { operation, .. } if !harmless(operation))
    }

    pub(crate) fn classify(&self) -> FailureKind {
        match self {
            Self::Io { operation, .. } if harmless(operation) => FailureKind::NotWritten,
            Self::Io { .. } | Self::Poisoned { .. } => FailureKind::Unknown,
            Self::NoSpace { .. } => FailureKind::NoSpace,
            Self::Locked { .. } => FailureKind::Locked,
            Self::Corrupt { .. } => FailureKind::Corrupt,
            Self::NewerFormat { .. } | Self::UnknownFeature { .. } => FailureKind::NewerFormat,
            Self::NotADirectory { .. } => FailureKind::NotADirectory,
            Self::UnknownKey(_)
            | Self::TooLarge { .. }
            | Self::OtherStore { .. }
            | Self::NeedsMemory { .. } => FailureKind::NotWritten,
            Self::Closed => FailureKind::Closed,
        }
    }

    pub(crate) fn io_details(&self) -> Option<IoDetails> {
        let details = |operation: &'static str, path: &Path, errno: Option<i32>| {
            Some(IoDetails { operation, path: path.to_path_buf(), errno })
        };
        match self {
            Self::Io { operation, path, source } | Self::NoSpace { operation, path, source } => {
                details(operation, path, source.raw_os_error())
            }
            Self::Poisoned { operation, path, errno, .. } => details(operation, path, *errno),
            _ => None,
        }
    }
}

/// Operations after whose failure the disk is as it was.
fn harmless(operation: &str) -> bool {
    matches!(operation, "openat" | "pread" | "clone" | "getrandom" | "getdents")
}
