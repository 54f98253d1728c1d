//! File systems: made in an image, mounted, and unmounted whatever happens.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::program;

/// How often and how long an unmount waits for a process that just ended.
const TRIES: u32 = 100;
const WAIT: Duration = Duration::from_millis(20);

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4 with blocks of 4 KiB, as on any disk of usual size.
    Ext4,
    /// XFS.
    Xfs,
}

impl FileSystem {
    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Ext4, Self::Xfs].into_iter().find(|kind| kind.name() == name)
    }

    /// Its name, as mount takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Makes an image of this many bytes with an empty file system. XFS takes no less than 300 MiB.
    ///
    /// # Errors
    /// That of making it.
    pub fn make(self, image: &Path, bytes: u64) -> io::Result<()> {
        File::create(image)?.set_len(bytes)?;
        let image = image.as_os_str();
        // Nothing is left to be initialised behind the back of the recording.
        let options: &[&str] = match self {
            Self::Ext4 => &["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            Self::Xfs => &["-q", "-f"],
        };
        let arguments = options.iter().map(OsStr::new).chain([image]);
        program::run(&format!("mkfs.{}", self.name()), arguments).map(drop)
    }
}

/// A mounted file system; unmounted when it goes, also by a panic.
#[derive(Debug)]
pub struct Mount {
    path: PathBuf,
    is_mounted: bool,
}

impl Mount {
    /// Mounts an image through a loop device on `path`, which is made if it is missing.
    ///
    /// # Errors
    /// When the file system refuses: that is a finding about the image.
    pub fn image(image: &Path, kind: FileSystem, path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        // Images of one file system have the same identity, which XFS mounts once only.
        let how = if kind == FileSystem::Xfs { "loop,nouuid" } else { "loop" };
        let options = ["-t", kind.name(), "-o", how].map(OsStr::new);
        program::run("mount", options.into_iter().chain([image.as_os_str(), path.as_os_str()]))?;
        Ok(Self { path: path.to_owned(), is_mounted: true })
    }

    /// Mounts a file system in memory.
    ///
    /// # Errors
    /// That of the mount.
    pub fn memory(path: &Path) -> io::Result<Self> {
        program::run(
            "mount",
            ["-t", "tmpfs", "tmpfs"].map(OsStr::new).into_iter().chain([path.as_os_str()]),
        )?;
        Ok(Self { path: path.to_owned(), is_mounted: true })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts: everything in the page cache is written out or given up, and the loop device is free.
    ///
    /// # Errors
    /// When it is still in use after two seconds.
    pub fn unmount(mut self) -> io::Result<()> {
        let mut result = Ok(());
        for _ in 0..TRIES {
            result = program::run("umount", [&self.path]).map(drop);
            if result.is_ok() {
                self.is_mounted = false;
                break;
            }
            thread::sleep(WAIT);
        }
        result
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_mounted {
            // Lazily: whoever still uses it must not keep it for ever.
            drop(program::run("umount", [OsStr::new("-l"), self.path.as_os_str()]));
        }
    }
}
