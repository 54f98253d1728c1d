//! Open files of segments that are only read: a few at a time, however many segments there are.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::{Disk, DiskFile};

/// Files kept open.
const OPEN: usize = 8;

/// The files that were used last.
pub(super) struct Handles {
    disk: Arc<dyn Disk>,
    open: Mutex<VecDeque<(String, Arc<dyn DiskFile>)>>,
}

impl Handles {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, open: Mutex::new(VecDeque::new()) }
    }

    /// A file that is opened when it is used.
    pub(super) fn file(self: &Arc<Self>, name: String) -> Arc<dyn DiskFile> {
        Arc::new(LazyFile { handles: Arc::clone(self), name })
    }

    /// Closes a file, so that its space is free once its name is gone.
    pub(super) fn forget(&self, name: &str) {
        self.open.lock().retain(|(held, _)| held != name);
    }

    /// Closes everything.
    pub(super) fn clear(&self) {
        self.open.lock().clear();
    }

    fn get(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|(held, _)| held == name)
            && let Some(found) = open.remove(at)
        {
            let file = Arc::clone(&found.1);
            open.push_front(found);
            return Ok(file);
        }
        let file = self.disk.open(name)?;
        open.truncate(OPEN - 1);
        open.push_front((name.to_owned(), Arc::clone(&file)));
        Ok(file)
    }
}

/// INVARIANT: nothing is written through this. A failed write shows up only at the descriptors that were open when
/// it failed, so the file that is written to keeps its own.
struct LazyFile {
    handles: Arc<Handles>,
    name: String,
}

impl DiskFile for LazyFile {
    fn len(&self) -> io::Result<u64> {
        self.handles.get(&self.name)?.len()
    }

    fn write_all_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.handles.get(&self.name)?.read_at(bytes, offset)
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        if let Ok(file) = self.handles.get(&self.name) {
            file.will_read(offset, bytes);
        }
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.handles.get(&self.name)?.read_uncached_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.handles.get(&self.name)?.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.handles.get(&self.name)?.sync_all()
    }
}
