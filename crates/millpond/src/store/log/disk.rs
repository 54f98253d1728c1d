//! The seam between the log and a file system: one directory, its files, and the calls whose order matters.
//!
//! The log calls nothing else, so that a simulated disk can record, refuse and forget.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The answer to [`Disk::lock`].
pub enum DiskLock {
    /// The directory is ours until the guard is dropped.
    Held(Box<dyn Any + Send + Sync>),
    /// Somebody else holds it.
    Taken {
        /// The process that holds it, where the system says so.
        pid: Option<u32>,
    },
}

/// One directory.
pub trait Disk: Send + Sync {
    /// The directory, for messages.
    fn path(&self) -> &Path;

    /// What tells this directory from others in this process (device and inode), where there is such a thing.
    fn directory(&self) -> Option<(u64, u64)> {
        None
    }

    /// Takes the directory for this owner alone, without waiting.
    fn lock(&self) -> io::Result<DiskLock>;

    /// The names in the directory, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file that must not exist. The name is not durable before [`Disk::sync_dir`].
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing, following no link.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Renames a file, replacing nothing.
    fn rename_new(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name.
    fn unlink(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    fn sync_dir(&self) -> io::Result<()>;

    /// Fills `bytes` with random ones: the identity of a queue and the generation of a file life.
    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
    }

    /// A folder in the directory, made if it is missing; a sync of the directory makes its name durable. A disk without
    /// folders refuses.
    fn folder(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let _ = name;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Lets go of the directory; every later call fails.
    fn release(&self) {}
}

/// One open file.
pub trait DiskFile: Send + Sync {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Writes all of `bytes` at `offset`; after an error any part of them may be written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `bytes` from `offset` as far as the file goes and says how far that was.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Says that this stretch will be read soon. May do nothing.
    fn will_read(&self, offset: u64, bytes: u64) {
        let _ = (offset, bytes);
    }

    /// Like [`DiskFile::read_at`], but from the device rather than from a cache that may hold bytes the device lost.
    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Makes the contents durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;

    /// Makes contents and size durable (`fsync`).
    fn sync_all(&self) -> io::Result<()>;
}
