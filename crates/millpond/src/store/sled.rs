//! A store that sled keeps: a page cache over a log.

use std::fs::{File, TryLockError};
use std::ops::Bound;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sled::{Batch, Config, Db, IVec};

use super::directory::{self, Directory};
use super::files;
use super::library::{END, Library, add_size, size_key, store_of};
use super::library_error::LibraryError;
use super::{Op, Pair, Summary};
use crate::key::Key;

/// Pages kept in memory, in bytes; sled's own default is a gigabyte.
const CACHE: u64 = 32 << 20;

/// How often sled writes out what no durable commit asked for, in milliseconds.
const WRITE_OUT: u64 = 500;

/// How long an open waits for threads of sled's that outlive their database: five seconds in all.
const RELEASE_TRIES: u32 = 500;
const RELEASE_WAIT: Duration = Duration::from_millis(10);

store_of! {
    /// A store that sled keeps in the directory `sled`.
    ///
    /// sled's own flush is no fsync on Linux, so a durable commit fsyncs every file of sled's and the directories too:
    /// what was answered is on the device. What sled does to its files between two commits it does without a barrier,
    /// so whether it can *read* them after a power cut is sled's word alone. Non-durable commits stay in the memory of
    /// the process for up to half a second, or until the next durable commit or a close.
    SledStore keeps Sled
}

/// An open database.
pub(super) struct Sled {
    /// There until the drop takes it.
    database: Option<Db>,
    path: PathBuf,
}

impl Sled {
    fn database(&self) -> Result<&Db, LibraryError> {
        self.database.as_ref().ok_or(LibraryError::Closed)
    }

    fn cause(&self) -> impl Fn(sled::Error) -> LibraryError + '_ {
        |error| cause(&self.path, error)
    }

    /// Makes durable what sled wrote.
    fn sync(&self) -> Result<(), LibraryError> {
        self.database()?.flush().map_err(self.cause())?;
        files::sync(&self.path).map_err(|error| LibraryError::sync("fsync", &self.path, error))
    }
}

impl Drop for Sled {
    /// Lets go of the database. sled fsyncs its file once more when its last handle goes, and panics when that fails
    /// (0.34.7, `pagecache/logger.rs`): on a disk whose fsyncs fail, that would end the process of whoever drops a queue.
    /// Nothing that was answered hangs on that fsync.
    fn drop(&mut self) {
        let database = self.database.take();
        let _ = caught(|| drop(database));
    }
}

/// What this call of sled's returns; `None` when it panicked.
fn caught<R>(call: impl FnOnce() -> R) -> Option<R> {
    panic::catch_unwind(AssertUnwindSafe(call)).ok()
}

/// Waits until threads of a database that this process let go of have let go of its file. Nobody else can hold it: the
/// lock of the queue directory is ours. When it is held all the same, sled's own refusal tells.
fn wait_for_release(path: &Path) {
    let Ok(file) = File::open(path.join("db")) else { return };
    for _ in 0..RELEASE_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(RELEASE_WAIT),
            Ok(()) | Err(TryLockError::Error(_)) => return,
        }
    }
}

fn cause(path: &Path, error: sled::Error) -> LibraryError {
    let path = path.to_path_buf();
    match error {
        sled::Error::Io(source) => LibraryError::write("pwrite", &path, source),
        sled::Error::Corruption { at, .. } => {
            let text = at.map_or_else(|| "a record does not check".to_owned(), |at| format!("at {at}"));
            LibraryError::Corrupt { path, text }
        }
        other => LibraryError::Library { path, text: other.to_string() },
    }
}

fn pair((key, value): (IVec, IVec)) -> Pair {
    (key.to_vec(), value.to_vec())
}

impl Library for Sled {
    const NAME: &'static str = "sled";
    const KEEPS_UNSYNCED: bool = false;

    fn open(directory: &Directory, name: &str) -> Result<Self, LibraryError> {
        let path = directory.path().join(name);
        directory::make(&path)?;
        let config = Config::new().path(&path).cache_capacity(CACHE).flush_every_ms(Some(WRITE_OUT));
        wait_for_release(&path);
        // An open that fails drops what it had opened.
        let opened = caught(|| config.open());
        let text = "sled panicked while it was opened".to_owned();
        let opened = opened.ok_or_else(|| LibraryError::Library { path: path.clone(), text })?;
        let database = Some(opened.map_err(|error| cause(&path, error))?);
        let opened = Self { database, path };
        // CRASH: what is read from here on may be only in the cache of a process that was killed.
        let path = &opened.path;
        files::sync(path).map_err(|error| LibraryError::sync("fsync", path, error))?;
        Ok(opened)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
        Ok(self.database()?.get(key).map_err(self.cause())?.map(|value| value.to_vec()))
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, LibraryError> {
        if from >= &END[..] {
            return Ok(None);
        }
        let found = self.database()?.range::<&[u8], _>(from..&END[..]).next();
        Ok(found.transpose().map_err(self.cause())?.map(pair))
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, LibraryError> {
        let upper = if upto < &END[..] { Bound::Included(upto) } else { Bound::Excluded(&END[..]) };
        let found = self.database()?.range::<&[u8], _>((Bound::Unbounded, upper)).next_back();
        Ok(found.transpose().map_err(self.cause())?.map(pair))
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
        if from >= &END[..] {
            return Ok(None);
        }
        let found = self.database()?.range::<&[u8], _>(from..&END[..]).keys().next();
        Ok(found.transpose().map_err(self.cause())?.map(|key| key.to_vec()))
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LibraryError> {
        let mut batch = Batch::default();
        for op in ops {
            match *op {
                Op::Put(key, value) => {
                    if let Ok(Key::Entry(id)) = Key::parse(key) {
                        batch.insert(&size_key(id), &(value.len() as u64).to_le_bytes());
                    }
                    batch.insert(key, value);
                }
                Op::Delete(key) => {
                    if let Ok(Key::Entry(id)) = Key::parse(key) {
                        batch.remove(&size_key(id));
                    }
                    batch.remove(key);
                }
            }
        }
        if !ops.is_empty() {
            self.database()?.apply_batch(batch).map_err(self.cause())?;
        }
        if durable { self.sync() } else { Ok(()) }
    }

    fn summary(&self) -> Result<Summary, LibraryError> {
        let mut summary = Summary::default();
        for record in self.database()?.range::<&[u8], _>(&END[..]..) {
            let (key, value) = record.map_err(self.cause())?;
            add_size(&mut summary, &key, &value);
        }
        Ok(summary)
    }

    fn close(self) -> Result<(), LibraryError> {
        self.sync()
    }
}
