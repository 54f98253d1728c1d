//! Who owns a directory: one lock of the kernel between processes, one registry within the process.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::fs::{Stat, major, minor};

/// Directories (device, inode) that this process holds.
static HELD: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// A place in the registry, given back on drop.
pub(super) struct Registered {
    directory: (u64, u64),
}

impl Registered {
    /// Registers a directory, or says that it is taken.
    pub(super) fn new(device: u64, inode: u64) -> Option<Self> {
        let directory = (device, inode);
        let is_new = HELD.lock().insert(directory);
        // ORDER: the place is made only when it is ours; one that is dropped at once would free the other's.
        is_new.then(|| Self { directory })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        HELD.lock().remove(&self.directory);
    }
}

/// A held lock.
pub(super) struct Guard {
    // ORDER: fields drop in this order. The kernel's lock goes first, so that whoever finds the place in the registry
    // free finds the lock free too.
    _file: OwnedFd,
    _entry: Registered,
}

impl Guard {
    pub(super) fn new(file: OwnedFd, entry: Registered) -> Self {
        Self { _file: file, _entry: entry }
    }
}

/// The process that holds the lock on this file, as `/proc/locks` tells it. Information only.
pub(super) fn holder(stat: &Stat) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{}", major(stat.st_dev), minor(stat.st_dev), stat.st_ino);
    let table = fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let kind = fields.next()?;
        let pid = fields.nth(2)?;
        let file = fields.next()?;
        (kind == "FLOCK" && file == wanted).then(|| pid.parse().ok()).flatten()
    })
}
