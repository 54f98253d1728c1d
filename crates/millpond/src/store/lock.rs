//! Who owns a directory: one lock of the kernel between processes, one registry within the process. Every store that
//! keeps files takes the same one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, Stat, major, minor};
use rustix::io::{Errno, retry_on_intr};

/// Directories (device, inode) that this process holds.
static HELD: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// The answer to an attempt to take a directory.
pub(in crate::store) enum Lock {
    /// It is ours until the guard is dropped.
    Held(Guard),
    /// Somebody else holds it: this process, where the system says so.
    Taken(Option<u32>),
}

/// A held lock.
pub(in crate::store) struct Guard {
    // ORDER: fields drop in this order. The kernel's lock goes first, so that whoever finds the place in the registry
    // free finds the lock free too.
    _file: OwnedFd,
    _entry: Registered,
}

/// Takes the directory for this owner alone, without waiting; `open_lock` opens its lock file.
pub(in crate::store) fn take(
    directory: impl AsFd,
    open_lock: impl FnOnce() -> io::Result<OwnedFd>,
) -> io::Result<Lock> {
    let stat = rustix::fs::fstat(directory)?;
    // ORDER: the registry comes first, so that a second open in this process touches no file at all.
    let Some(entry) = Registered::new(stat.st_dev, stat.st_ino) else {
        return Ok(Lock::Taken(Some(std::process::id())));
    };
    let file = open_lock()?;
    match retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(Lock::Held(Guard { _file: file, _entry: entry })),
        Err(Errno::WOULDBLOCK) => Ok(Lock::Taken(holder(&rustix::fs::fstat(&file)?))),
        Err(error) => Err(error.into()),
    }
}

/// A place in the registry, given back on drop.
struct Registered {
    directory: (u64, u64),
}

impl Registered {
    /// Registers a directory, or says that it is taken.
    fn new(device: u64, inode: u64) -> Option<Self> {
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

/// The owner of a locked directory in words, for messages.
pub(super) fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another owner".to_owned(), |pid| format!("process {pid}"))
}

/// The process that holds the lock on this file, as `/proc/locks` tells it. Information only.
fn holder(stat: &Stat) -> Option<u32> {
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
