//! A queue directory on the file system: made with its own modes, known by one descriptor, owned by one lock.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::lock::{self, Lock};

const LOCK_NAME: &str = "LOCK";
const DIRECTORY_MODE: u32 = 0o700;

/// Names by which a directory tells whose it is. The log's segments tell by their ending. Persisted, never reuse.
const LIBRARIES: [&str; 3] = ["queue.redb", "sled", "rocksdb"];
const SEGMENT: &str = "seg";

/// A call of the system that failed.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) operation: &'static str,
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

impl Refused {
    pub(super) fn new(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self { operation, path: path.to_path_buf(), source: source.into() }
    }

    /// Whether the path, or something above it, is there and is no directory.
    pub(super) fn is_not_a_directory(&self) -> bool {
        self.source.raw_os_error() == Some(Errno::NOTDIR.raw_os_error())
    }
}

/// Whether an error of a write means that there was no room.
pub(super) fn is_no_space(error: &io::Error) -> bool {
    [Errno::NOSPC, Errno::DQUOT, Errno::FBIG]
        .iter()
        .any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

/// An opened directory; every call is relative to its descriptor.
pub(super) struct Directory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Directory {
    /// Opens the directory, making it and its parents where they are missing.
    pub(super) fn open(path: &Path) -> Result<Self, Refused> {
        let descriptor = match open_directory(path) {
            Err(Errno::NOENT) => {
                make(path)?;
                open_directory(path)
            }
            other => other,
        };
        let descriptor = descriptor.map_err(|error| Refused::new("openat", path, error))?;
        Ok(Self { path: path.to_path_buf(), descriptor })
    }

    /// Opens a directory that is there.
    pub(super) fn look(path: &Path) -> Result<Self, Refused> {
        let descriptor = open_directory(path).map_err(|error| Refused::new("openat", path, error))?;
        Ok(Self { path: path.to_path_buf(), descriptor })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode: what tells this directory from others.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        rustix::fs::fstat(&self.descriptor).ok().map(|stat| (stat.st_dev, stat.st_ino))
    }

    /// Takes the directory for this owner alone, without waiting.
    pub(super) fn lock(&self) -> io::Result<Lock> {
        lock::take(self, || self.open_lock())
    }

    /// Opens a file for reading and writing, following no link; one that is made has mode 0600.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry_on_intr(|| rustix::fs::openat(self, name, flags, Mode::RUSR | Mode::WUSR))
    }

    /// Opens a file for reading only, following no link.
    pub(super) fn open_to_read(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry_on_intr(|| rustix::fs::openat(self, name, flags, Mode::empty()))
    }

    /// A directory in it, made where it is missing; a sync of this one makes its name durable. Follows no link.
    pub(super) fn below(&self, name: &str) -> io::Result<Self> {
        match rustix::fs::mkdirat(self, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.look_below(name)
    }

    /// A directory in it that is there. Follows no link.
    pub(super) fn look_below(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = retry_on_intr(|| rustix::fs::openat(self, name, flags, Mode::empty()))?;
        Ok(Self { path: self.path.join(name), descriptor })
    }

    /// The names in it, in any order.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The name of something in it that belongs to another store than the one named, which would show an empty queue
    /// beside what is stored. The log is named by the ending of its segments.
    pub(super) fn other_store(&self, own: &str) -> io::Result<Option<String>> {
        let is_others = |name: &String| {
            let is_segment = Path::new(name).extension().is_some_and(|ending| ending == SEGMENT);
            (is_segment && own != SEGMENT) || (LIBRARIES.contains(&name.as_str()) && name != own)
        };
        Ok(self.list()?.into_iter().find(is_others))
    }

    /// Makes the names in it durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(self))?)
    }

    fn open_lock(&self) -> io::Result<OwnedFd> {
        match self.open_file(LOCK_NAME, OFlags::empty()) {
            Err(Errno::NOENT) => {
                // CRASH: a directory made by an opener that died has a name that may still be lost; whoever makes
                // the lock file makes the name of the directory durable first.
                sync_path(parent(&self.path))?;
                Ok(self.open_file(LOCK_NAME, OFlags::CREATE)?)
            }
            other => Ok(other?),
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    retry_on_intr(|| {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    })
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => Path::new("/"),
    }
}

fn sync_path(path: &Path) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::fsync(open_directory(path)?))?)
}

/// Makes a directory and what is missing above it; each new name is durable before this returns.
pub(super) fn make(path: &Path) -> Result<(), Refused> {
    let above = parent(path);
    if above != Path::new(".") && above != path && !above.exists() {
        make(above)?;
    }
    match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Refused::new("mkdir", path, error)),
        _ => sync_path(above).map_err(|error| Refused::new("fsync", above, error)),
    }
}
