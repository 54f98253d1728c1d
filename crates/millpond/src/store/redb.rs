//! A store that redb keeps, in one file: a copy-on-write B-tree.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use redb::backends::FileBackend;
use redb::{
    BackendError, Builder, Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable,
    StorageBackend, TableDefinition, TableError,
};
use rustix::fs::OFlags;

use super::directory::Directory;
use super::library::{END, Library, OWN, store_of};
use super::library_error::LibraryError;
use super::{Op, Pair, Summary};
use crate::key::{self, Key};

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// The record of how many entries there are and how many bytes their values have: two u64 in little endian. It is
/// written with the entries, so counting reads no value.
const TOTALS: [u8; 1] = [OWN];

/// Pages kept in memory, in bytes; redb's own default is a gigabyte.
const CACHE: usize = 32 << 20;

store_of! {
    /// A store that redb keeps in one file, `queue.redb`.
    ///
    /// A durable commit is an fdatasync of that file. Non-durable commits stay in the memory of the process until the
    /// next durable one or a close. After an unclean end, opening checks the whole tree once.
    RedbStore keeps Redb
}

/// An open database.
pub(super) struct Redb {
    database: Database,
    path: PathBuf,
    fault: Fault,
}

/// The call that failed: redb passes an error on without it.
type Fault = Arc<Mutex<Option<&'static str>>>;

/// Why a call failed, with the file it was on.
struct Cause<'a> {
    path: &'a Path,
    fault: &'a Fault,
}

impl Cause<'_> {
    fn of(&self, error: impl Into<redb::Error>) -> LibraryError {
        let path = self.path.to_path_buf();
        match error.into() {
            redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
                LibraryError::Corrupt { path, text: source.to_string() }
            }
            redb::Error::Io(source) => match *self.fault.lock() {
                Some("fdatasync") => LibraryError::sync("fdatasync", self.path, source),
                Some(operation) => LibraryError::write(operation, self.path, source),
                None => LibraryError::write("open", self.path, source),
            },
            redb::Error::Corrupted(text) => LibraryError::Corrupt { path, text },
            redb::Error::DatabaseAlreadyOpen => LibraryError::Locked { path, pid: None },
            redb::Error::DatabaseClosed => LibraryError::Closed,
            redb::Error::ValueTooLarge(bytes) => LibraryError::TooLarge { bytes: bytes as u64 },
            other => LibraryError::Library { path, text: other.to_string() },
        }
    }
}

impl Redb {
    fn cause(&self) -> Cause<'_> {
        Cause { path: &self.path, fault: &self.fault }
    }

    /// The table as it is now; none before the first commit.
    fn table(&self) -> Result<Option<Table>, redb::Error> {
        match self.database.begin_read()?.open_table(PAIRS) {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn look<R: Default>(
        &self,
        call: impl FnOnce(&Table) -> Result<R, redb::StorageError>,
    ) -> Result<R, LibraryError> {
        match self.table().map_err(|error| self.cause().of(error))? {
            Some(table) => call(&table).map_err(|error| self.cause().of(error)),
            None => Ok(R::default()),
        }
    }

    fn write(&self, ops: &[Op<'_>], durable: bool) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(if durable { Durability::Immediate } else { Durability::None })?;
        {
            let mut table = transaction.open_table(PAIRS)?;
            let before = Totals::read(&table)?;
            let mut totals = before;
            for op in ops {
                match *op {
                    Op::Put(key, value) => {
                        let old = table.insert(key, value)?.map(|old| old.value().len());
                        totals.change(key, old, Some(value.len()));
                    }
                    Op::Delete(key) => {
                        let old = table.remove(key)?.map(|old| old.value().len());
                        totals.change(key, old, None);
                    }
                }
            }
            if totals != before {
                table.insert(&TOTALS[..], &totals.encode()[..])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Library for Redb {
    const NAME: &'static str = "queue.redb";
    const KEEPS_UNSYNCED: bool = false;

    fn open(directory: &Directory, name: &str) -> Result<Self, LibraryError> {
        let path = directory.path().join(name);
        let file = directory.open_file(name, OFlags::CREATE);
        let file = file.map_err(|error| LibraryError::write("openat", &path, error.into()))?;
        let fault = Fault::default();
        let cause = Cause { path: &path, fault: &fault };
        let file = FileBackend::new(File::from(file)).map_err(|error| cause.of(error))?;
        let backend = Noted { file, fault: Arc::clone(&fault) };
        let opened = Builder::new().set_cache_size(CACHE).create_with_backend(backend);
        let database = opened.map_err(|error| cause.of(error))?;
        Ok(Self { database, path, fault })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
        self.look(|table| Ok(table.get(key)?.map(|value| value.value().to_vec())))
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, LibraryError> {
        self.look(|table| {
            let found = table.range::<&[u8]>(up_to_end(from))?.next().transpose()?;
            Ok(found.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())))
        })
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, LibraryError> {
        let upper = if upto < &END[..] { Bound::Included(upto) } else { Bound::Excluded(&END[..]) };
        self.look(|table| {
            let found = table.range::<&[u8]>((Bound::Unbounded, upper))?.next_back().transpose()?;
            Ok(found.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())))
        })
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
        self.look(|table| {
            let found = table.range::<&[u8]>(up_to_end(from))?.next().transpose()?;
            Ok(found.map(|(key, _)| key.value().to_vec()))
        })
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LibraryError> {
        self.write(ops, durable).map_err(|error| self.cause().of(error))
    }

    fn summary(&self) -> Result<Summary, LibraryError> {
        self.look(|table| {
            let totals = Totals::read(table)?;
            let (low, high) = (key::entry(0), key::entry(u64::MAX));
            let mut entries = table.range::<&[u8]>(&low[..]..=&high[..])?;
            let first = entries.next().transpose()?.and_then(|(key, _)| id(key.value()));
            let last = entries.next_back().transpose()?.and_then(|(key, _)| id(key.value()));
            Ok(Summary { count: totals.count, bytes: totals.bytes, first, last: last.or(first) })
        })
    }

    fn close(self) -> Result<(), LibraryError> {
        let (path, fault) = (self.path, self.fault);
        self.database.close().map_err(|error| Cause { path: &path, fault: &fault }.of(error))
    }
}

/// The keys that users see from `from` on.
fn up_to_end(from: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    // A range may not begin behind its end.
    (Bound::Included(from.min(&END[..])), Bound::Excluded(&END[..]))
}

fn id(key: &[u8]) -> Option<u64> {
    match Key::parse(key) {
        Ok(Key::Entry(id)) => Some(id),
        _ => None,
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    count: u64,
    bytes: u64,
}

impl Totals {
    fn read(table: &impl ReadableTable<&'static [u8], &'static [u8]>) -> Result<Self, redb::StorageError> {
        let Some(record) = table.get(&TOTALS[..])? else { return Ok(Self::default()) };
        let number = |at: usize| {
            let bytes = record.value().get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_le_bytes).unwrap_or_default()
        };
        Ok(Self { count: number(0), bytes: number(8) })
    }

    fn encode(self) -> Vec<u8> {
        [self.count.to_le_bytes(), self.bytes.to_le_bytes()].concat()
    }

    /// Follows one operation: the size of the value under `key` before and after it.
    fn change(&mut self, key: &[u8], old: Option<usize>, new: Option<usize>) {
        if id(key).is_some() {
            self.count = self.count + u64::from(new.is_some()) - u64::from(old.is_some());
            self.bytes = self.bytes + new.unwrap_or(0) as u64 - old.unwrap_or(0) as u64;
        }
    }
}

/// redb's own access to the file, with a note of the call that failed.
#[derive(Debug)]
struct Noted {
    file: FileBackend,
    fault: Fault,
}

impl Noted {
    fn note<T, E>(&self, operation: &'static str, result: Result<T, E>) -> Result<T, E> {
        if result.is_err() {
            *self.fault.lock() = Some(operation);
        }
        result
    }
}

impl StorageBackend for Noted {
    fn len(&self) -> io::Result<u64> {
        self.note("fstat", self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.note("pread", self.file.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note("ftruncate", self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note("fdatasync", self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note("pwrite", self.file.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.note("fcntl", self.file.try_lock_range(start, end))
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.note("fcntl", self.file.try_lock_shared_range(start, end))
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.note("fcntl", self.file.lock_range(start, end))
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.note("fcntl", self.file.lock_shared_range(start, end))
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.note("fcntl", self.file.unlock_range(start, end))
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.note("fcntl", self.file.query_lock_range(start, end))
    }
}
