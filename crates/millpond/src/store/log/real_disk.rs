//! The seam on a real directory: every call is relative to one opened directory descriptor.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{Advice, AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use super::disk::{Disk, DiskFile, DiskLock};
use super::error::LogError;
use super::lock;

const LOCK_NAME: &str = "LOCK";
const DIRECTORY_MODE: u32 = 0o700;

/// A directory of the file system.
pub(super) struct RealDisk {
    path: PathBuf,
    /// `None` once it was released.
    directory: Mutex<Option<Arc<OwnedFd>>>,
}

impl RealDisk {
    /// Opens the directory, making it and its parents where they are missing.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let directory = match open_directory(path) {
            Err(Errno::NOENT) => {
                make_directory(path)?;
                open_directory(path)
            }
            other => other,
        };
        let directory = directory.map_err(|error| match error {
            Errno::NOTDIR => LogError::NotADirectory { path: path.to_path_buf() },
            other => LogError::io("openat", path.to_path_buf(), other.into()),
        })?;
        Ok(Self { path: path.to_path_buf(), directory: Mutex::new(Some(Arc::new(directory))) })
    }

    fn at(&self) -> rustix::io::Result<Arc<OwnedFd>> {
        self.directory.lock().clone().ok_or(Errno::BADF)
    }

    fn open_file(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let at = self.at()?;
        retry_on_intr(|| rustix::fs::openat(&at, name, flags, Mode::RUSR | Mode::WUSR))
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
fn make_directory(path: &Path) -> Result<(), LogError> {
    let above = parent(path);
    if above != Path::new(".") && above != path && !above.exists() {
        make_directory(above)?;
    }
    match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            if error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) {
                Err(LogError::NotADirectory { path: path.to_path_buf() })
            } else {
                Err(LogError::write("mkdir", path.to_path_buf(), error))
            }
        }
        _ => sync_path(above).map_err(|error| LogError::io("fsync", above.to_path_buf(), error)),
    }
}

impl Disk for RealDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn directory(&self) -> Option<(u64, u64)> {
        rustix::fs::fstat(self.at().ok()?).ok().map(|stat| (stat.st_dev, stat.st_ino))
    }

    fn lock(&self) -> io::Result<DiskLock> {
        let stat = rustix::fs::fstat(self.at()?)?;
        // ORDER: the registry comes first, so that a second open in this process touches no file at all.
        let Some(entry) = lock::Registered::new(stat.st_dev, stat.st_ino) else {
            return Ok(DiskLock::Taken { pid: Some(std::process::id()) });
        };
        let file = self.open_lock()?;
        match retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(DiskLock::Held(Box::new(lock::Guard::new(file, entry)))),
            Err(Errno::WOULDBLOCK) => Ok(DiskLock::Taken { pid: lock::holder(&rustix::fs::fstat(&file)?) }),
            Err(error) => Err(error.into()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.at()?)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.open_file(name, OFlags::CREATE | OFlags::EXCL)?;
        Ok(Arc::new(RealFile { file }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.open_file(name, OFlags::empty())?;
        Ok(Arc::new(RealFile { file }))
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        let at = &self.at()?;
        match rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE) {
            // Some file systems know no flags; a link replaces nothing either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(at, from, at, to, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(at, from, AtFlags::empty())?)
            }
            other => Ok(other?),
        }
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.at()?, name, AtFlags::empty())?)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let at = self.at()?;
        Ok(retry_on_intr(|| rustix::fs::fsync(&at))?)
    }

    fn release(&self) {
        *self.directory.lock() = None;
    }
}

struct RealFile {
    file: OwnedFd,
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.file)?;
        u64::try_from(stat.st_size).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = retry_on_intr(|| rustix::io::pwrite(&self.file, bytes, offset))?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[count..];
            offset += count as u64;
        }
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            let from = offset + filled as u64;
            let count = retry_on_intr(|| rustix::io::pread(&self.file, &mut bytes[filled..], from))?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        Ok(filled)
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        // Only whole pages are dropped, so the range is widened to page bounds (64 KiB is the largest page in use).
        const PAGE: u64 = 64 * 1024;
        let from = offset / PAGE * PAGE;
        let to = (offset + bytes.len() as u64).next_multiple_of(PAGE);
        // Advice only: a file system that ignores it gives cached bytes, which are checked all the same.
        let _ = rustix::fs::fadvise(&self.file, from, std::num::NonZeroU64::new(to - from), Advice::DontNeed);
        self.read_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fdatasync(&self.file))?)
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(&self.file))?)
    }
}
