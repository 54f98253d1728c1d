//! Calls that fail.

use std::io;

/// A kind of call of the seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Taking the lock.
    Lock,
    /// Listing the names.
    List,
    /// Making a file.
    Create,
    /// Opening a file.
    Open,
    /// Asking for the length of a file.
    Len,
    /// Writing.
    Write,
    /// Reading.
    Read,
    /// Syncing a file.
    Sync,
    /// Renaming.
    Rename,
    /// Unlinking.
    Unlink,
    /// Syncing the directory.
    SyncDir,
    /// Random bytes.
    Random,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 12] = [
        Kind::Lock,
        Kind::List,
        Kind::Create,
        Kind::Open,
        Kind::Len,
        Kind::Write,
        Kind::Read,
        Kind::Sync,
        Kind::Rename,
        Kind::Unlink,
        Kind::SyncDir,
        Kind::Random,
    ];
}

/// A failure that is to come.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The kind of call that fails.
    pub kind: Kind,
    /// How many calls of this kind succeed before.
    pub after: u64,
    /// The error number.
    pub errno: i32,
    /// Every later call of this kind fails too.
    pub for_ever: bool,
    /// A write that fails leaves its first half behind.
    pub half: bool,
}

/// A fault with what it has seen so far.
#[derive(Debug)]
pub(crate) struct Plan {
    fault: Fault,
    seen: u64,
    pub(crate) fired: u64,
}

impl Plan {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, seen: 0, fired: 0 }
    }

    /// The error of this call, if it is the one that fails, and whether half of a write is done.
    pub(crate) fn check(&mut self, kind: Kind) -> Option<(io::Error, bool)> {
        if kind != self.fault.kind {
            return None;
        }
        self.seen += 1;
        let due = self.seen > self.fault.after && (self.fault.for_ever || self.fired == 0);
        due.then(|| {
            self.fired += 1;
            (io::Error::from_raw_os_error(self.fault.errno), self.fault.half)
        })
    }
}
