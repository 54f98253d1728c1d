//! The seam on a real directory: every call is relative to one opened directory descriptor.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{Advice, AtFlags, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use super::disk::{Disk, DiskFile, DiskLock};
use super::error::LogError;
use crate::store::directory::{Directory, Refused};
use crate::store::lock::Lock;

/// A directory of the file system.
pub(super) struct RealDisk {
    path: PathBuf,
    /// `None` once it was released.
    directory: Mutex<Option<Arc<Directory>>>,
}

impl RealDisk {
    /// Opens the directory, making it and its parents where they are missing.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let directory = Directory::open(path).map_err(|refused| {
            let is_not_a_directory = refused.is_not_a_directory();
            let Refused { operation, path, source } = refused;
            match operation {
                _ if is_not_a_directory => LogError::NotADirectory { path },
                "mkdir" => LogError::write(operation, path, source),
                _ => LogError::io(operation, path, source),
            }
        })?;
        match directory.other_store("seg") {
            Ok(None) => {
                let path = directory.path().to_path_buf();
                Ok(Self { path, directory: Mutex::new(Some(Arc::new(directory))) })
            }
            Ok(Some(found)) => Err(LogError::OtherStore { path: path.to_path_buf(), found }),
            Err(error) => Err(LogError::io("getdents", path.to_path_buf(), error)),
        }
    }

    /// Opens a directory that is there, to look at it.
    pub(super) fn look(path: &Path) -> Result<Self, LogError> {
        let directory = Directory::look(path).map_err(|refused| {
            if refused.is_not_a_directory() {
                return LogError::NotADirectory { path: refused.path };
            }
            LogError::io(refused.operation, refused.path, refused.source)
        })?;
        Ok(Self::of(directory))
    }

    /// A folder in it that is there.
    pub(super) fn look_below(&self, name: &str) -> io::Result<Self> {
        Ok(Self::of(self.at()?.look_below(name)?))
    }

    /// Opens a file for reading only.
    pub(super) fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(RealFile { file: self.at()?.open_to_read(name)? }))
    }

    fn of(directory: Directory) -> Self {
        Self { path: directory.path().to_path_buf(), directory: Mutex::new(Some(Arc::new(directory))) }
    }

    fn at(&self) -> io::Result<Arc<Directory>> {
        self.directory.lock().clone().ok_or_else(|| Errno::BADF.into())
    }
}

impl Disk for RealDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn directory(&self) -> Option<(u64, u64)> {
        self.at().ok()?.identity()
    }

    fn lock(&self) -> io::Result<DiskLock> {
        Ok(match self.at()?.lock()? {
            Lock::Held(guard) => DiskLock::Held(Box::new(guard)),
            Lock::Taken(pid) => DiskLock::Taken { pid },
        })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.at()?.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.at()?.open_file(name, OFlags::CREATE | OFlags::EXCL)?;
        Ok(Arc::new(RealFile { file }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.at()?.open_file(name, OFlags::empty())?;
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
        self.at()?.sync()
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(Self::of(self.at()?.below(name)?)))
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

    fn will_read(&self, offset: u64, bytes: u64) {
        // Advice only: without it the read takes as long as it takes.
        let _ = rustix::fs::fadvise(&self.file, offset, std::num::NonZeroU64::new(bytes), Advice::WillNeed);
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
