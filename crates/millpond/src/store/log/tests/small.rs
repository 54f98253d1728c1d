//! A file system that fills up.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::directory;

/// A small ext4 in a file, unmounted at the end of the test.
pub(super) struct Small {
    scratch: TempDir,
}

fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(command).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{command}: {text}")) }
}

impl Small {
    /// Mounts one of so many KiB; `None` with a line that says why where that cannot be done.
    pub(super) fn mount(kib: u64) -> Option<Self> {
        let scratch = directory();
        let (image, at) = (scratch.path().join("image"), scratch.path().join("small"));
        fs::create_dir(&at).unwrap();
        File::create(&image).unwrap().set_len(kib * 1024).unwrap();
        let (image, at) = (image.to_str().unwrap(), at.to_str().unwrap());
        let made = run("mkfs.ext4", &["-q", "-m", "0", "-b", "1024", image])
            .and_then(|()| run("mount", &["-o", "loop", image, at]));
        match made {
            Ok(()) => Some(Self { scratch }),
            Err(reason) => {
                println!("not run: {reason}");
                None
            }
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.scratch.path().join("small")
    }

    /// Takes all the room that is left, by a file of this name.
    pub(super) fn fill(&self, name: &str) {
        let mut file = File::create(self.path().join(name)).unwrap();
        for size in [64 * 1024, 1024, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(run("umount", &["-l", self.path().to_str().unwrap_or_default()]));
    }
}

/// Bytes of the files of a directory that are on the device.
pub(super) fn used(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::read_dir(path)
        .unwrap()
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|data| data.blocks() * 512)
        .sum()
}
