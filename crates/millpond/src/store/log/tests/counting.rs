//! A directory that counts what is read and written.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::store::log::real_disk::RealDisk;
use crate::store::log::{Disk, DiskFile, DiskLock};

#[derive(Default)]
struct Counts {
    /// Bytes read, by the name of the file.
    read: BTreeMap<String, u64>,
    /// Bytes written that are not the zeros of a new file.
    written: u64,
}

#[derive(Clone)]
pub(super) struct Counting {
    disk: Arc<RealDisk>,
    counts: Arc<Mutex<Counts>>,
}

impl Counting {
    pub(super) fn on(path: &Path) -> Self {
        Self { disk: Arc::new(RealDisk::open(path).unwrap()), counts: Arc::default() }
    }

    pub(super) fn read(&self, name: &str) -> u64 {
        self.counts.lock().read[name]
    }

    pub(super) fn written(&self) -> u64 {
        self.counts.lock().written
    }

    fn file(&self, file: Arc<dyn DiskFile>, name: &str) -> Arc<dyn DiskFile> {
        Arc::new(CountingFile { file, name: name.to_owned(), counts: Arc::clone(&self.counts) })
    }
}

impl Disk for Counting {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn lock(&self) -> io::Result<DiskLock> {
        self.disk.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(self.disk.create(name)?, name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(self.disk.open(name)?, name))
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename_new(from, to)
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        self.disk.unlink(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }
}

struct CountingFile {
    file: Arc<dyn DiskFile>,
    name: String,
    counts: Arc<Mutex<Counts>>,
}

impl CountingFile {
    fn count(&self, bytes: usize) -> usize {
        *self.counts.lock().read.entry(self.name.clone()).or_default() += bytes as u64;
        bytes
    }
}

impl DiskFile for CountingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.iter().any(|byte| *byte != 0) {
            self.counts.lock().written += bytes.len() as u64;
        }
        self.file.write_all_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset).map(|got| self.count(got))
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_uncached_at(bytes, offset).map(|got| self.count(got))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
