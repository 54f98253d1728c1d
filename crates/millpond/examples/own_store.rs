//! A store of your own: everything in memory, and one file that is replaced whole by each durable commit. Nothing for
//! large queues; it shows what the contract asks for.
//!
//! Run it with `cargo run --example own_store`.

#![expect(clippy::print_stdout, reason = "an example shows something")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use millpond::store::{FailureKind, IoDetails, Op, Pair, Store};
use millpond::{Builder, Durability};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A map in memory and the file it is kept in.
pub(crate) struct FileStore {
    path: PathBuf,
    map: Mutex<Map>,
}

impl FileStore {
    /// Opens the file, or starts with an empty map when there is none.
    ///
    /// # Errors
    /// That of reading it.
    pub(crate) fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let map = match File::open(&path) {
            Ok(file) => decode(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, map: Mutex::new(map) })
    }

    fn map(&self) -> MutexGuard<'_, Map> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clause 3: the new file and its name are on the device before the commit is answered.
    fn save(&self, map: &Map) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(&encode(map))?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// Each part with its length before it.
fn encode(map: &Map) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in map.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

fn decode(mut file: File) -> io::Result<Map> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut rest = &bytes[..];
    let mut part = || -> Option<Vec<u8>> {
        let (length, behind) = rest.split_first_chunk::<8>()?;
        let (part, behind) = behind.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        rest = behind;
        Some(part.to_vec())
    };
    let mut map = Map::new();
    while let (Some(key), Some(value)) = (part(), part()) {
        map.insert(key, value);
    }
    Ok(map)
}

impl Store for FileStore {
    type Error = io::Error;

    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.map().get(key).cloned())
    }

    fn seek(&self, from: &[u8]) -> io::Result<Option<Pair>> {
        let found = self.map().range(from.to_vec()..).next().map(|(key, value)| (key.clone(), value.clone()));
        Ok(found)
    }

    fn seek_back(&self, upto: &[u8]) -> io::Result<Option<Pair>> {
        let map = self.map();
        Ok(map.range(..=upto.to_vec()).next_back().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn commit(&self, ops: &[Op<'_>], durable: bool) -> io::Result<()> {
        let mut map = self.map();
        let mut next = map.clone();
        for op in ops {
            match *op {
                Op::Put(key, value) => drop(next.insert(key.to_vec(), value.to_vec())),
                Op::Delete(key) => drop(next.remove(key)),
            }
        }
        if durable {
            self.save(&next)?;
        }
        *map = next;
        Ok(())
    }

    /// A file that could not be written whole was never renamed, so the store is as it was and goes on. Everything else
    /// is left to the default: the queue accepts nothing more until it is opened again.
    fn classify(&self, error: &io::Error) -> FailureKind {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FailureKind::NoSpace,
            _ => FailureKind::Unknown,
        }
    }

    fn io_details(&self, error: &io::Error) -> Option<IoDetails> {
        Some(IoDetails { operation: "write", path: self.path.clone(), errno: error.raw_os_error() })
    }

    /// A clean end keeps what was not durable yet.
    fn close(&self) -> io::Result<()> {
        self.save(&self.map())
    }

    /// The map changes only after everything succeeded.
    fn is_atomic(&self) -> bool {
        true
    }
}

/// Two lives of one queue.
///
/// # Errors
/// What the queue or the file fails with.
pub(crate) fn run(file: &Path) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let queue = Builder::new(FileStore::open(file)?).durability(Durability::Group).open()?;
    queue.push_many(&[b"first", b"other", b"third"])?;
    if let Some(item) = queue.reserve()? {
        item.ack()?;
    }
    drop(queue);

    let queue = Builder::new(FileStore::open(file)?).open()?;
    let mut left = Vec::new();
    while let Some(item) = queue.reserve()? {
        left.push(item.seq());
        item.ack()?;
    }
    Ok(left)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("millpond-own-store-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    println!("left after the first life: {:?}", run(&folder.join("queue"))?);
    fs::remove_dir_all(&folder)?;
    Ok(())
}
