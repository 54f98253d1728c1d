//! The files a library made below a queue directory: what they take, who may read them, whether they are durable.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What files take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) files: u64,
    /// Bytes on the device, holes not counted.
    pub(super) bytes: u64,
}

/// Every file and directory below `root`, a directory behind what is in it; links are not followed.
fn below(root: &Path, found: &mut Vec<(PathBuf, fs::Metadata)>) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        // The library may remove a file of its own at any time.
        let Some(metadata) = unless_gone(fs::symlink_metadata(&path))? else { continue };
        if metadata.is_dir() {
            unless_gone(below(&path, found))?;
        }
        if metadata.is_dir() || metadata.is_file() {
            found.push((path, metadata));
        }
    }
    Ok(())
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn all(root: &Path) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
    let mut found = Vec::new();
    below(root, &mut found)?;
    Ok(found)
}

/// What the files below `root` take.
pub(super) fn usage(root: &Path) -> io::Result<Usage> {
    let files = all(root)?;
    let files = files.iter().filter(|(_, metadata)| metadata.is_file());
    Ok(files.fold(Usage::default(), |usage, (_, metadata)| Usage {
        files: usage.files + 1,
        bytes: usage.bytes + metadata.blocks() * 512,
    }))
}

/// Takes every right from group and others. The directory above has mode 0700, so nobody got in meanwhile.
pub(super) fn narrow(root: &Path) -> io::Result<()> {
    for (path, metadata) in all(root)? {
        let mode = if metadata.is_dir() { 0o700 } else { 0o600 };
        if metadata.permissions().mode() & 0o777 != mode {
            unless_gone(fs::set_permissions(&path, Permissions::from_mode(mode)))?;
        }
    }
    Ok(())
}

/// Makes a file, or every file below a directory and every name in it, durable.
pub(super) fn sync(root: &Path) -> io::Result<()> {
    if root.is_dir() {
        for (path, _) in all(root)? {
            if let Some(file) = unless_gone(fs::File::open(&path))? {
                file.sync_all()?;
            }
        }
    }
    fs::File::open(root)?.sync_all()
}

/// Makes a file, or everything below a directory, durable and takes it out of the page cache, so that what is read from
/// now on is what the device holds; nothing where nothing is.
///
/// CRASH: a process before this one, or a handle before this one, may have been told by fsync that a page could not be
/// written. The kernel then takes the page for clean: it answers every read with bytes that the device does not hold,
/// until it needs the memory.
pub(super) fn settle(root: &Path) -> io::Result<()> {
    let Some(metadata) = unless_gone(fs::symlink_metadata(root))? else { return Ok(()) };
    sync(root)?;
    if metadata.is_dir() {
        for (path, _) in all(root)? {
            forget(&path)?;
        }
        return Ok(());
    }
    forget(root)
}

/// Takes a file out of the page cache. Only Linux is known to keep what it failed to write.
fn forget(path: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(file) = unless_gone(fs::File::open(path))?
        && file.metadata()?.is_file()
    {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = path;
    Ok(())
}

/// Removes a file, or a directory with everything in it, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match unless_gone(fs::symlink_metadata(path))? {
        Some(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Some(_) => fs::remove_file(path),
        None => Ok(()),
    }
}
