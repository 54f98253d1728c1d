//! Files with a former life: what it left is neither read again and again nor taken for a torn tail.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::store::log::real_disk::RealDisk;
use crate::store::log::{Disk, DiskFile, DiskLock, frame};

const OPTIONS: LogOptions =
    LogOptions { segment_bytes: 1024 * 1024, strict: false, verify: false, eager: None };

type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

/// A directory that counts the bytes that are read from each file.
struct Counting {
    disk: RealDisk,
    counts: Counts,
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
        self.disk.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(name)?;
        Ok(Arc::new(CountingFile { file, name: name.to_owned(), counts: Arc::clone(&self.counts) }))
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
    counts: Counts,
}

impl CountingFile {
    fn count(&self, bytes: usize) -> usize {
        *self.counts.lock().entry(self.name.clone()).or_default() += bytes as u64;
        bytes
    }
}

impl DiskFile for CountingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
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

/// A log whose segment in use had a former life, as one of its spares had. It is left as a kill leaves it, or
/// closed.
fn used_again(path: &Path, last: &[(u64, usize)], closes: bool) {
    let store = LogStore::open_with(path, OPTIONS).unwrap();
    let change = |op: Op<'_>| store.commit(&[op], false).unwrap();
    // Enough is stored for the log to want large segments.
    (1..20).for_each(|id| change(Op::Put(&key::entry(id), &value(id, 200_000))));
    let bytes = value(0, 60_000);
    let mut ids = 20..5000;
    loop {
        let active =
            store.core().append.lock().active.as_ref().map(|active| (active.segment.header, active.end));
        let (header, end) = active.unwrap();
        let later = |file: &PathBuf| *file > path.join(segment::name(header.number));
        // A good part of what the former life left is still there.
        if header.recycled && end < header.size / 4 && recycled(path).keys().any(later) {
            break;
        }
        let id = ids.next().expect("files are used again");
        change(Op::Put(&key::entry(id), &bytes));
        change(Op::Delete(&key::entry(id)));
    }
    for (id, length) in last {
        put(&store, *id, &value(*id, *length));
    }
    if closes {
        store.close().unwrap();
    }
}

/// Files that say that they had a former life, with their sizes.
fn recycled(path: &Path) -> BTreeMap<PathBuf, u64> {
    let of_two_lives = |file: &PathBuf| {
        let mut start = vec![0; 2 * segment::BLOCK_BYTES];
        // The log takes names away meanwhile.
        File::open(file).ok()?.read_exact_at(&mut start, 0).ok()?;
        let header = segment::Header::decode(&start).unwrap()?;
        header.recycled.then_some(header.size)
    };
    segments(path).into_iter().filter_map(|file| Some((file.clone(), of_two_lives(&file)?))).collect()
}

/// The file with the last entry, and where the frame of that one begins.
fn last_frame(path: &Path, id: u64) -> (PathBuf, u64) {
    let files = recycled(path);
    let found = files.into_keys().find_map(|file| {
        let bytes = fs::read(&file).unwrap();
        let seed = segment::Header::decode(&bytes).unwrap().unwrap().seed();
        let is_it = |at: &usize| {
            frame::parse(&bytes[*at..], seed, *at as u64)
                .is_some_and(|head| (head.kind, head.id) == (frame::ENTRY, id))
        };
        let at = (0..bytes.len() - frame::HEAD).step_by(8).find(is_it)?;
        Some((file, at as u64))
    });
    found.expect("the segment in use had a former life")
}

#[test]
fn a_spare_with_a_former_life_is_read_once_at_open() {
    let dir = directory();
    used_again(dir.path(), &[(5000, 100)], false);
    let (active, _) = last_frame(dir.path(), 5000);
    let spares: Vec<_> = recycled(dir.path()).into_iter().filter(|(file, _)| *file > active).collect();
    assert!(!spares.is_empty(), "no spare had a former life");
    let counts = Counts::default();
    let disk = Counting { disk: RealDisk::open(dir.path()).unwrap(), counts: Arc::clone(&counts) };
    let store = LogStore::open_on(Arc::new(disk), OPTIONS).unwrap();
    assert_eq!(ids(&store).last(), Some(&5000));
    for (spare, size) in spares {
        let name = spare.file_name().unwrap().to_str().unwrap();
        let read = counts.lock()[name];
        // Reads overlap by a little; a second look would be as much again.
        assert!(read <= size + size / 8 + 16 * 1024, "{read} bytes of {name} were read, it has {size}");
    }
}

#[test]
fn what_a_former_life_left_is_no_torn_tail() {
    let dir = directory();
    used_again(dir.path(), &[(5000, 1000), (5001, 1000)], false);
    let (file, at) = last_frame(dir.path(), 5001);
    let report = open(dir.path()).recovery();
    assert_eq!((report.clean, report.dropped_tail_bytes, report.damage.len()), (false, 0, 0), "{report:?}");
    // Torn in this life: the payload of the last entry is not what its header says.
    let handle = OpenOptions::new().write(true).open(&file).unwrap();
    handle.write_all_at(&[0xEE; 512], at + 512).unwrap();
    let store = open(dir.path());
    let report = store.recovery();
    assert_eq!((report.clean, report.damage.len()), (false, 0), "{report:?}");
    assert_eq!(report.dropped_tail_bytes, frame::span(1000), "{report:?}");
    assert_eq!(ids(&store).last(), Some(&5000));
}

#[test]
fn a_log_of_files_with_a_former_life_closes_cleanly() {
    let dir = directory();
    used_again(dir.path(), &[(5000, 1000)], true);
    last_frame(dir.path(), 5000);
    for verify in [false, true] {
        let store = LogStore::open_with(dir.path(), LogOptions { verify, ..OPTIONS }).unwrap();
        let report = store.recovery();
        assert_eq!((report.clean, report.dropped_tail_bytes), (true, 0), "{report:?}");
        assert_eq!(ids(&store).last(), Some(&5000));
    }
}
