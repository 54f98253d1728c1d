//! What the stores have in common whose files a library keeps: one lock of ours, one directory, one rule for failures.
//!
//! A library is opened below the queue directory, under a name of its own, so that its files and ours never meet. After
//! a commit for which there was no room the library is opened again: most of them accept nothing more on the handle
//! that failed. After any other failure the store accepts nothing more at all, and gives way to the next open of its
//! directory in this process.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use super::directory::Directory;
use super::files;
use super::library_error::LibraryError;
use super::lock::{Guard, Lock};
use super::{FailureKind, Op, Pair, StoreStats, Summary};
use crate::key::Key;

/// The kind byte of records a store keeps for itself, above all kinds of [`crate::key`]. Persisted, never reuse.
pub(super) const OWN: u8 = 0xFF;

/// The end of the keys that users of a store see.
pub(super) const END: [u8; 1] = [OWN];

/// Ordered bytes in files of a library's own.
pub(super) trait Library: Sized + Send + Sync + 'static {
    /// The name of its file or directory in the queue directory.
    const NAME: &'static str;

    /// Whether a non-durable commit is still there after the library was closed without ceremony and opened again.
    const KEEPS_UNSYNCED: bool;

    /// Opens it under this name in the directory, making it if it is missing.
    fn open(directory: &Directory, name: &str) -> Result<Self, LibraryError>;
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LibraryError>;
    fn seek(&self, from: &[u8]) -> Result<Option<Pair>, LibraryError>;
    fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, LibraryError>;
    fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, LibraryError>;
    fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LibraryError>;
    fn summary(&self) -> Result<Summary, LibraryError>;
    fn close(self) -> Result<(), LibraryError>;
}

/// The stores of libraries that are open in this process.
static OPEN: Mutex<Vec<Weak<dyn Holder>>> = Mutex::new(Vec::new());

/// Who holds a directory in this process, whatever the library.
trait Holder: Send + Sync {
    /// Device and inode of the directory.
    fn identity(&self) -> Option<(u64, u64)>;

    /// Lets go of the directory if a failure stopped the store; says whether it did.
    fn give_way(&self) -> bool;
}

/// Ends the store that holds this directory in this process, if a failure stopped it: it accepts nothing more, and only
/// a new open finds out what the disk holds. True when the lock is worth another try.
fn give_way(directory: &Directory) -> bool {
    let Some(wanted) = directory.identity() else { return false };
    // Nobody is called under the lock of the list.
    let holders: Vec<Arc<dyn Holder>> = OPEN.lock().iter().filter_map(Weak::upgrade).collect();
    holders.iter().any(|holder| holder.identity() == Some(wanted) && holder.give_way())
}

/// A library with its directory and lock.
pub(super) struct Kept<L> {
    // ORDER: fields drop in this order: the library lets go of its files before the lock goes.
    library: RwLock<Option<L>>,
    /// One commit at a time; what the commits before it left.
    turn: Mutex<Turn>,
    /// A failure stopped the store: said without waiting for the turn.
    stopped: AtomicBool,
    directory: Directory,
    guard: Mutex<Option<Guard>>,
}

#[derive(Default)]
struct Turn {
    closed: bool,
    /// A non-durable commit is not yet durable.
    unsynced: bool,
    /// The library takes nothing more on this handle, for lack of room.
    full: bool,
    /// What stopped the store.
    poison: Option<LibraryError>,
    syncs: u64,
}

/// Opens a library on what the device holds, whatever the page cache says.
fn open_settled<L: Library>(directory: &Directory) -> Result<L, LibraryError> {
    let path = directory.path().join(L::NAME);
    files::settle(&path).map_err(|error| LibraryError::sync("fsync", &path, error))?;
    L::open(directory, L::NAME)
}

impl<L: Library> Kept<L> {
    pub(super) fn open(path: &Path) -> Result<Arc<Self>, LibraryError> {
        let directory = Directory::open(path)?;
        let mut lock = directory.lock();
        if matches!(lock, Ok(Lock::Taken(_))) && give_way(&directory) {
            lock = directory.lock();
        }
        let guard = match lock {
            Ok(Lock::Held(guard)) => guard,
            Ok(Lock::Taken(pid)) => {
                return Err(LibraryError::Locked { path: path.to_path_buf(), pid });
            }
            Err(error) => return Err(LibraryError::write("flock", path, error)),
        };
        match directory.other_store(L::NAME) {
            Ok(None) => {}
            Ok(Some(found)) => return Err(LibraryError::OtherStore { path: path.to_path_buf(), found }),
            Err(error) => return Err(LibraryError::write("getdents", path, error)),
        }
        make_whole::<L>(&directory)?;
        let library = open_settled(&directory)?;
        files::narrow(path).map_err(|error| LibraryError::write("chmod", path, error))?;
        let kept = Arc::new(Self {
            library: RwLock::new(Some(library)),
            turn: Mutex::default(),
            stopped: AtomicBool::new(false),
            directory,
            guard: Mutex::new(Some(guard)),
        });
        let holder: Arc<dyn Holder> = Arc::clone(&kept) as Arc<dyn Holder>;
        let mut open = OPEN.lock();
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&holder));
        drop(open);
        Ok(kept)
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Reads from the library.
    pub(super) fn read<R>(
        &self,
        call: impl FnOnce(&L) -> Result<R, LibraryError>,
    ) -> Result<R, LibraryError> {
        let library = self.library.read();
        call(library.as_ref().ok_or(LibraryError::Closed)?)
    }

    pub(super) fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), LibraryError> {
        let mut turn = self.turn.lock();
        if turn.closed {
            return Err(LibraryError::Closed);
        }
        if let Some(poison) = &turn.poison {
            return Err(LibraryError::Poisoned { text: poison.to_string(), io: poison.io_details() });
        }
        for op in ops {
            let (Op::Put(key, _) | Op::Delete(key)) = op;
            Key::parse(key)?;
        }
        if turn.full {
            self.reopen(&mut turn)?;
        }
        match self.read(|library| library.commit(ops, durable)) {
            Ok(()) => {
                turn.unsynced = !durable && (turn.unsynced || !ops.is_empty());
                turn.syncs += u64::from(durable);
                Ok(())
            }
            Err(error) => Err(self.failed(&mut turn, error)),
        }
    }

    /// Decides what a failed commit means for the ones to come.
    fn failed(&self, turn: &mut Turn, error: LibraryError) -> LibraryError {
        match error.classify() {
            FailureKind::NotWritten => return error,
            FailureKind::NoSpace if L::KEEPS_UNSYNCED || !turn.unsynced => {
                turn.full = true;
                // Readers need a handle that works, also while there is no room; if that takes room, they have to wait.
                let _ = self.reopen(turn);
                return error;
            }
            _ => {}
        }
        // Opening again would undo commits that were answered, so lack of room is like any other failure here.
        let error = match error {
            LibraryError::NoSpace { operation, path, source } => LibraryError::Io { operation, path, source },
            other => other,
        };
        self.stop(turn, &error);
        error
    }

    /// Accepts nothing more from here on.
    fn stop(&self, turn: &mut Turn, cause: &LibraryError) {
        turn.poison = Some(LibraryError::Poisoned { text: cause.to_string(), io: cause.io_details() });
        self.stopped.store(true, Ordering::Release);
    }

    /// Closes the library and opens it again, which finds out what is on disk.
    fn reopen(&self, turn: &mut Turn) -> Result<(), LibraryError> {
        let mut library = self.library.write();
        *library = None;
        match open_settled::<L>(&self.directory) {
            Ok(opened) => {
                *library = Some(opened);
                turn.full = false;
                Ok(())
            }
            Err(error) => {
                if !matches!(error.classify(), FailureKind::NoSpace) {
                    self.stop(turn, &error);
                }
                Err(error)
            }
        }
    }

    /// Figures of the store.
    pub(super) fn stats(&self) -> StoreStats {
        let disk = files::usage(self.path()).unwrap_or_default();
        StoreStats {
            live_bytes: self.read(L::summary).map_or(0, |summary| summary.bytes),
            disk_bytes: disk.bytes,
            segments: disk.files,
            syncs: self.turn.lock().syncs,
            ..StoreStats::default()
        }
    }

    pub(super) fn close(&self) -> Result<(), LibraryError> {
        let mut turn = self.turn.lock();
        if std::mem::replace(&mut turn.closed, true) {
            return Err(LibraryError::Closed);
        }
        let library = self.library.write().take();
        let closed = match (library, &turn.poison) {
            // A library that was stopped is dropped as it is: the next open finds out what is on disk.
            (Some(library), None) => library.close(),
            _ => Ok(()),
        };
        // A library makes files with modes of its own; those it made since are narrowed too.
        let _ = files::narrow(self.path());
        *self.guard.lock() = None;
        closed
    }
}

impl<L: Library> Holder for Kept<L> {
    fn identity(&self) -> Option<(u64, u64)> {
        self.directory.identity()
    }

    fn give_way(&self) -> bool {
        // Whoever has the turn of a stopped store is only being refused, so this does not wait for a disk.
        self.stopped.load(Ordering::Acquire) && self.close().is_ok()
    }
}

/// Makes the library's files under another name first: a process that ends meanwhile leaves half of them, which some
/// libraries refuse for ever (redb: a file without its header).
fn make_whole<L: Library>(directory: &Directory) -> Result<(), LibraryError> {
    let path = directory.path();
    let (name, half) = (path.join(L::NAME), format!("{}.new", L::NAME));
    let refused = |operation, error| LibraryError::write(operation, &name, error);
    if name.try_exists().map_err(|error| refused("stat", error))? {
        return Ok(());
    }
    let made = path.join(&half);
    files::remove(&made).map_err(|error| refused("unlink", error))?;
    L::open(directory, &half)?.close()?;
    files::sync(&made).map_err(|error| LibraryError::sync("fsync", &made, error))?;
    fs::rename(&made, &name).map_err(|error| refused("rename", error))?;
    directory.sync().map_err(|error| LibraryError::sync("fsync", path, error))
}

/// The key under which the size of entry `id` is kept, so that counting reads no value.
#[cfg(any(feature = "sled", feature = "rocksdb"))]
pub(super) fn size_key(id: u64) -> [u8; 9] {
    let mut key = crate::key::entry(id);
    key[0] = OWN;
    key
}

/// Gathers the records of sizes, which come in the order of their keys.
#[cfg(any(feature = "sled", feature = "rocksdb"))]
pub(super) fn add_size(summary: &mut Summary, key: &[u8], value: &[u8]) {
    let id = key.get(1..).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
    let size = value.try_into().map(u64::from_le_bytes);
    if let (Some(id), Ok(size)) = (id, size) {
        summary.count += 1;
        summary.bytes = summary.bytes.saturating_add(size);
        summary.first.get_or_insert(id);
        summary.last = Some(id);
    }
}

/// Makes the public store of a library.
macro_rules! store_of {
    ($(#[$doc:meta])* $name:ident keeps $library:ty) => {
        $(#[$doc])*
        pub struct $name(std::sync::Arc<$crate::store::library::Kept<$library>>);

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).field("path", &self.0.path()).finish_non_exhaustive()
            }
        }

        impl $name {
            /// Opens the store in this directory, making the directory (mode 0700) if it is missing.
            ///
            /// # Errors
            /// [`LibraryError`]: the directory is another owner's or another store's, or the library refuses it.
            pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self, LibraryError> {
                $crate::store::library::Kept::open(path.as_ref()).map(Self)
            }
        }

        impl $crate::store::Store for $name {
            type Error = LibraryError;

            fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
                // A key of no known kind was never stored; the store's own records are nobody's.
                if $crate::key::Key::parse(key).is_err() {
                    return Ok(None);
                }
                self.0.read(|library| library.get(key))
            }

            fn seek(&self, from: &[u8]) -> Result<Option<$crate::store::Pair>, LibraryError> {
                self.0.read(|library| library.seek(from))
            }

            fn seek_back(&self, upto: &[u8]) -> Result<Option<$crate::store::Pair>, LibraryError> {
                self.0.read(|library| library.seek_back(upto))
            }

            fn commit(&self, ops: &[$crate::store::Op<'_>], durable: bool) -> Result<(), LibraryError> {
                self.0.commit(ops, durable)
            }

            fn next_key(&self, from: &[u8]) -> Result<Option<Vec<u8>>, LibraryError> {
                self.0.read(|library| library.next_key(from))
            }

            fn summary(&self) -> Result<$crate::store::Summary, LibraryError> {
                self.0.read($crate::store::library::Library::summary)
            }

            fn classify(&self, error: &LibraryError) -> $crate::store::FailureKind {
                error.classify()
            }

            fn io_details(&self, error: &LibraryError) -> Option<$crate::store::IoDetails> {
                error.io_details()
            }

            fn stats(&self) -> $crate::store::StoreStats {
                self.0.stats()
            }

            fn close(&self) -> Result<(), LibraryError> {
                self.0.close()
            }
        }
    };
}
pub(super) use store_of;
