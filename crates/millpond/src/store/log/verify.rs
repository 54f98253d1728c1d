//! Looking at a log without touching it, beside its owner or without one.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::disk::{Disk, DiskFile, DiskLock};
use super::error::LogError;
use super::handles::Handles;
use super::real_disk::RealDisk;
use super::{LogOptions, quarantine, reader, recover};
use crate::store::{Damage, RecoveryReport};

/// Damage is believed when so many looks in a row found it: what an owner is writing meanwhile may look like it once.
const LOOKS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(30);
/// Looks that may find a file gone that its owner took away meanwhile.
const TRIES: u32 = 100;

/// What [`verify`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Entries that can be delivered.
    pub entries: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Segments in use.
    pub segments: u64,
    /// Bytes of these segments.
    pub disk_bytes: u64,
    /// How the last owner ended, what of its tail was dropped, and every stretch that is damaged. Beside a running owner
    /// the end is never clean.
    pub recovery: RecoveryReport,
    /// Damaged stretches that an owner copied aside into the folder `quarantine`.
    pub quarantined: u64,
}

/// Reads every segment of the log in this directory and checks every payload. Changes nothing, takes no lock, and works
/// beside a running owner.
///
/// # Errors
/// The directory or a file cannot be read, or a newer version wrote them.
pub fn verify(path: impl AsRef<Path>) -> Result<Verified, LogError> {
    let disk: Arc<dyn Disk> = Arc::new(Glass { disk: RealDisk::look(path.as_ref())? });
    let mut found = look_until_there(&disk)?;
    for _ in 1..LOOKS {
        if found.recovery.damage.is_empty() {
            break;
        }
        thread::sleep(PAUSE);
        let next = look_until_there(&disk)?;
        let before = std::mem::replace(&mut found, next).recovery.damage;
        found.recovery.damage.retain(|damage| before.iter().any(|other| is_same(damage, other)));
    }
    Ok(found)
}

fn is_same(one: &Damage, other: &Damage) -> bool {
    (&one.file, one.offset) == (&other.file, other.offset)
}

fn look_until_there(disk: &Arc<dyn Disk>) -> Result<Verified, LogError> {
    let mut tries = 0;
    loop {
        match look(disk) {
            Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE / 10);
            }
            other => return other,
        }
    }
}

fn look(disk: &Arc<dyn Disk>) -> Result<Verified, LogError> {
    let options = LogOptions { verify: true, ..LogOptions::default() };
    let handles = Arc::new(Handles::new(Arc::clone(disk)));
    let found = recover::recover(disk.as_ref(), &handles, &options, &mut |_| ())?;
    let index = &found.index;
    Ok(Verified {
        entries: index.summary().count,
        bytes: reader::live_bytes(disk.as_ref(), index)?,
        segments: index.parts.len() as u64,
        disk_bytes: index.file_bytes(),
        quarantined: quarantine::count(disk.as_ref()),
        recovery: found.report,
    })
}

/// A directory that is only looked at.
struct Glass {
    disk: RealDisk,
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for Glass {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn lock(&self) -> io::Result<DiskLock> {
        refused()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn DiskFile>> {
        refused()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(Pane { file: self.disk.open_to_read(name)? }))
    }

    fn rename_new(&self, _from: &str, _to: &str) -> io::Result<()> {
        refused()
    }

    fn unlink(&self, _name: &str) -> io::Result<()> {
        refused()
    }

    /// Nothing that is found here is relied on.
    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(Self { disk: self.disk.look_below(name)? }))
    }
}

struct Pane {
    file: Arc<dyn DiskFile>,
}

impl DiskFile for Pane {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn write_all_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        refused()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_uncached_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}
