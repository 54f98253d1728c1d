//! Damaged bytes, copied aside before they are given up: for whoever wants to look at them, and never a condition.
//!
//! A file in the folder is named after the life and the place its bytes come from, so that the same damage is kept once.

use std::io;

use super::bytes::usize_of;
use super::disk::{Disk, DiskFile};

/// The folder in the directory of the queue.
pub(super) const FOLDER: &str = "quarantine";
/// The most that is kept, in bytes and in files.
const BYTES_MOST: u64 = 64 * 1024 * 1024;
const FILES_MOST: usize = 256;
const ENDING: &str = ".bytes";
const UNFINISHED: &str = ".new";
const STEP: u64 = 256 * 1024;

/// The name of a stretch that begins at `offset` in the life `generation` of a file.
pub(super) fn name(generation: u64, offset: u64) -> String {
    format!("{generation:016x}-{offset:012x}{ENDING}")
}

/// Copies `from..to` of a file aside and makes the copy durable, but for the name of the folder; false when there is no
/// room for it.
pub(super) fn keep(
    disk: &dyn Disk,
    file: &dyn DiskFile,
    generation: u64,
    (from, to): (u64, u64),
) -> io::Result<bool> {
    let folder = disk.folder(FOLDER)?;
    let name = name(generation, from);
    let names = folder.list()?;
    // Whoever began these was killed.
    for unfinished in names.iter().filter(|name| name.ends_with(UNFINISHED)) {
        folder.unlink(unfinished)?;
    }
    let names: Vec<String> = names.into_iter().filter(|name| name.ends_with(ENDING)).collect();
    if names.contains(&name) {
        return Ok(true);
    }
    let mut kept = 0;
    for name in &names {
        kept += folder.open(name)?.len()?;
    }
    let temporary = format!("{name}{UNFINISHED}");
    if names.len() >= FILES_MOST || kept.saturating_add(to.saturating_sub(from)) > BYTES_MOST {
        return Ok(false);
    }
    let copied = copy(file, folder.create(&temporary)?.as_ref(), from, to);
    if let Err(error) = copied.and_then(|()| folder.rename_new(&temporary, &name)) {
        // What is half copied tells nothing.
        let _ = folder.unlink(&temporary);
        return Err(error);
    }
    folder.sync_dir()?;
    Ok(true)
}

/// How many stretches are kept.
pub(super) fn count(disk: &dyn Disk) -> u64 {
    let names = disk.folder(FOLDER).and_then(|folder| folder.list()).unwrap_or_default();
    names.iter().filter(|name| name.ends_with(ENDING)).count() as u64
}

fn copy(from: &dyn DiskFile, into: &dyn DiskFile, begin: u64, end: u64) -> io::Result<()> {
    let mut bytes = vec![0; usize_of(end.saturating_sub(begin).min(STEP))];
    let mut at = begin;
    while at < end {
        let want = usize_of((end - at).min(STEP));
        let got = from.read_uncached_at(&mut bytes[..want], at)?;
        into.write_all_at(&bytes[..got], at - begin)?;
        at += got as u64;
        if got < want {
            break;
        }
    }
    into.sync_all()
}
