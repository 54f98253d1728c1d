//! The beginning of a file's life, in a new file or in one whose former life is over.
//!
//! A file gets its life under a temporary name, and its own name only when everything in it is durable. So a crash in
//! between leaves a name that is never read.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::bytes::usize_of;
use super::core::Core;
use super::disk::DiskFile;
use super::error::LogError;
use super::planted::{self, Fault};
use super::segment::{self, BLOCK, Header, SMALLEST, Segment};

const FILL: usize = 256 * 1024;

/// A file that no segment needs, and whose room is worth keeping.
#[derive(Clone, Debug)]
pub(super) struct OldFile {
    pub(super) name: String,
    /// Its length in bytes.
    pub(super) size: u64,
}

/// Makes a file of `size` bytes, or where there is no room for it one of `least`.
pub(super) fn begin(core: &Core, number: u64, size: u64, least: u64) -> Result<Arc<Segment>, LogError> {
    let temporary = segment::temporary_name(number);
    let mut size = size.max(least);
    loop {
        match fill(core, number, size, &temporary) {
            Err(error @ LogError::NoSpace { .. }) => {
                // Gives back what was taken; what stays is cleared away by a later open.
                let _ = core.disk.unlink(&temporary);
                if size <= least {
                    return Err(error);
                }
                // Little is left: no more of it is taken than is needed.
                size = least;
            }
            other => return other,
        }
    }
}

/// Gives a file another life. `None` where it turns out to be of no use; then its name is left to be removed.
///
/// No room is needed for it: every block is there.
pub(super) fn begin_again(core: &Core, old: &OldFile, number: u64) -> Result<Option<Arc<Segment>>, LogError> {
    let temporary = if segment::number_of(&old.name).is_some_and(|(_, temporary)| temporary) {
        old.name.clone()
    } else {
        let temporary = segment::temporary_name(number);
        if core.disk.rename_new(&old.name, &temporary).is_err() {
            return Ok(None);
        }
        core.handles.forget(&old.name);
        // CRASH: the header of another number must not be found under the old name.
        core.sync_directory()?;
        temporary
    };
    let Ok(file) = core.disk.open(&temporary) else { return Ok(None) };
    let size = old.size / BLOCK * BLOCK;
    if size < SMALLEST || file.len().is_ok_and(|len| len < size) {
        let _ = core.disk.unlink(&temporary);
        return Ok(None);
    }
    let header = Header { recycled: true, ..header(core, number, size, &temporary)? };
    if write_header(file.as_ref(), &header).is_err() {
        let _ = core.disk.unlink(&temporary);
        return Ok(None);
    }
    publish(core, file, header, &temporary).map(Some)
}

fn path(core: &Core, name: &str) -> PathBuf {
    core.disk.path().join(name)
}

fn header(core: &Core, number: u64, size: u64, name: &str) -> Result<Header, LogError> {
    let mut random = [0; 8];
    core.disk.random(&mut random).map_err(|error| LogError::write("getrandom", path(core, name), error))?;
    if planted::is(Fault::ReuseGeneration) {
        random = [1; 8];
    }
    let generation = u64::from_le_bytes(random);
    Ok(Header { identity: core.identity, generation, number, size, recycled: false })
}

fn write_header(file: &dyn DiskFile, header: &Header) -> io::Result<()> {
    for start in [0, BLOCK] {
        file.write_all_at(&header.encode(), start)?;
    }
    Ok(())
}

fn fill(core: &Core, number: u64, size: u64, temporary: &str) -> Result<Arc<Segment>, LogError> {
    let failed = |operation| move |error| LogError::write(operation, path(core, temporary), error);
    let header = header(core, number, size, temporary)?;
    let file = core.disk.create(temporary).map_err(failed("openat"))?;
    let zeros = vec![0; FILL];
    let mut at = 0;
    while at < size {
        if core.pool.is_stopping() {
            return Err(LogError::Closed);
        }
        let length = usize_of((size - at).min(FILL as u64));
        file.write_all_at(&zeros[..length], at).map_err(failed("pwrite"))?;
        at += length as u64;
    }
    write_header(file.as_ref(), &header).map_err(failed("pwrite"))?;
    publish(core, file, header, temporary)
}

/// Makes everything in the file durable, and then its name.
fn publish(
    core: &Core,
    file: Arc<dyn DiskFile>,
    header: Header,
    temporary: &str,
) -> Result<Arc<Segment>, LogError> {
    let skips = planted::is(Fault::SkipSpareSync);
    let synced = if skips { Ok(()) } else { file.sync_all() };
    synced.map_err(|error| LogError::io("fsync", path(core, temporary), error))?;
    core.disk
        .rename_new(temporary, &segment::name(header.number))
        .map_err(|error| LogError::write("renameat2", path(core, temporary), error))?;
    if !planted::is(Fault::SkipDirectorySync) {
        core.sync_directory()?;
    }
    Ok(Arc::new(Segment::new(header, file, 0)))
}
