//! A store that `RocksDB` keeps: a log-structured merge tree.

use std::io;
use std::path::{Path, PathBuf};

use rocksdb::{DB, DBRecoveryMode, ErrorKind, LogLevel, Options, ReadOptions, WriteBatch, WriteOptions};
use rustix::io::Errno;

use super::directory::{self, Directory};
use super::library::{END, Library, add_size, size_key, store_of};
use super::library_error::LibraryError;
use super::{Op, Pair, Summary};
use crate::key::Key;

const WRITE_BUFFER: usize = 16 << 20;
const LOGS_TOTAL: u64 = 64 << 20;
const OPEN_FILES: i32 = 64;
const TEXT_LOG: usize = 1 << 20;

store_of! {
    /// A store that `RocksDB` keeps in the directory `rocksdb`.
    ///
    /// A durable commit is a write to its log and an fdatasync of it. A non-durable commit is handed to the operating
    /// system: it survives the end of the process. Damage in the middle of a log is refused at open.
    RocksStore keeps Rocks
}

/// An open database.
pub(super) struct Rocks {
    database: DB,
    path: PathBuf,
}

/// How the database is opened.
fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    // The default mode opens silently without anything behind a damaged record. This one drops only an unfinished
    // record at the end of a log and refuses everything else. Absolute consistency would refuse an unfinished record
    // too, which every kill in the middle of a write leaves behind: it was never answered, so nothing is lost with it.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    // In a log file that was used before, the end cannot be told from damage, and the mode above would be refused.
    options.set_recycle_log_file_num(0);
    // A log that was synced and is missing or shorter at open is damage, not the end of the data.
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_write_buffer_size(WRITE_BUFFER);
    options.set_max_total_wal_size(LOGS_TOTAL);
    options.set_max_open_files(OPEN_FILES);
    options.set_log_level(LogLevel::Warn);
    options.set_max_log_file_size(TEXT_LOG);
    options.set_keep_log_file_num(2);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}

/// What the system says, by its text: the binding passes nothing else on.
const REASONS: [(&str, Errno); 4] = [
    ("No space left on device", Errno::NOSPC),
    ("Disk quota exceeded", Errno::DQUOT),
    ("File too large", Errno::FBIG),
    ("Input/output error", Errno::IO),
];

fn cause(path: &Path, error: rocksdb::Error) -> LibraryError {
    let path = path.to_path_buf();
    let kind = error.kind();
    let text = error.into_string();
    let reason = REASONS.iter().find(|(reason, _)| text.contains(reason));
    match (kind, reason) {
        (ErrorKind::Corruption, _) => LibraryError::Corrupt { path, text },
        (_, Some((_, errno))) if text.contains("While fsync") || text.contains("While fdatasync") => {
            LibraryError::sync("fdatasync", &path, io::Error::from(*errno))
        }
        (_, Some((_, errno))) => LibraryError::write("write", &path, io::Error::from(*errno)),
        _ => LibraryError::Library { path, text },
    }
}

impl Rocks {
    fn cause(&self) -> impl Fn(rocksdb::Error) -> LibraryError + '_ {
        |error| cause(&self.path, error)
    }

    /// What `take` makes of the first key that is not below `from`, or backwards of the last that is not above it.
    fn at<R>(
        &self,
        from: &[u8],
        backwards: bool,
        take: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Result<Option<R>, LibraryError> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(END);
        let mut cursor = self.database.raw_iterator_opt(options);
        if !backwards {
            cursor.seek(from);
        } else if from < &END[..] {
            cursor.seek_for_prev(from);
        } else {
            cursor.seek_to_last();
        }
        cursor.status().map_err(self.cause())?;
        Ok(cursor.item().map(|(key, value)| take(key, value)))
    }
}

fn pair(key: &[u8], value: &[u8]) -> Pair {
    (key.to_vec(), value.to_vec())
}

impl Library for Rocks {
    const NAME: &'static str = "rocksdb";
    const KEEPS_UNSYNCED: bool = true;

    fn open(directory: &Directory, name: &str) -> Result<Self, LibraryError> {
        let path = directory.path().join(name);
        directory::make(&path)?;
        let database = DB::open(&options(), &path).map_err(|error| cause(&path, error))?;
        Ok(Self { database, path })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
        self.database.get(key).map_err(self.cause())
    }

    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, LibraryError> {
        if from >= &END[..] {
            return Ok(None);
        }
        self.at(from, false, pair)
    }

    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, LibraryError> {
        self.at(upto, true, pair)
    }

    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
        if from >= &END[..] {
            return Ok(None);
        }
        self.at(from, false, |key, _| key.to_vec())
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LibraryError> {
        if ops.is_empty() {
            return if durable { self.database.flush_wal(true).map_err(self.cause()) } else { Ok(()) };
        }
        let mut batch = WriteBatch::default();
        for op in ops {
            match *op {
                Op::Put(key, value) => {
                    batch.put(key, value);
                    if let Ok(Key::Entry(id)) = Key::parse(key) {
                        batch.put(size_key(id), (value.len() as u64).to_le_bytes());
                    }
                }
                Op::Delete(key) => {
                    batch.delete(key);
                    if let Ok(Key::Entry(id)) = Key::parse(key) {
                        batch.delete(size_key(id));
                    }
                }
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(durable);
        self.database.write_opt(batch, &options).map_err(self.cause())
    }

    fn summary(&self) -> Result<Summary, LibraryError> {
        let mut summary = Summary::default();
        let mut cursor = self.database.raw_iterator();
        cursor.seek(END);
        while let Some((key, value)) = cursor.item() {
            add_size(&mut summary, key, value);
            cursor.next();
        }
        cursor.status().map_err(self.cause())?;
        Ok(summary)
    }

    fn close(self) -> Result<(), LibraryError> {
        self.database.flush_wal(true).map_err(self.cause())?;
        self.database.cancel_all_background_work(true);
        Ok(())
    }
}
