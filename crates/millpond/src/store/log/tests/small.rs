//! A file system that fills up.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::directory;

/// A small file system, unmounted at the end of the test.
pub(super) struct Small {
    scratch: TempDir,
}

fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(command).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{command}: {text}")) }
}

/// Where this is set, tests that need root are left out.
const LEFT_OUT: &str = "MILLPOND_NO_ROOT_TESTS";

impl Small {
    /// Mounts one of so many KiB: an ext4, or a file system in memory where there are no loop devices. `None` only where
    /// such tests are left out on purpose.
    pub(super) fn mount(kib: u64) -> Option<Self> {
        if std::env::var_os(LEFT_OUT).is_some() {
            println!("left out by {LEFT_OUT}");
            return None;
        }
        let scratch = directory();
        let (image, at) = (scratch.path().join("image"), scratch.path().join("small"));
        fs::create_dir(&at).unwrap();
        File::create(&image).unwrap().set_len(kib * 1024).unwrap();
        let (image, at) = (image.to_str().unwrap(), at.to_str().unwrap());
        let ext4 = run("mkfs.ext4", &["-q", "-m", "0", "-b", "1024", image])
            .and_then(|()| run("mount", &["-o", "loop", image, at]));
        if let Err(reason) = ext4 {
            println!("in memory: {reason}");
            let mounted = run("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs", at]);
            mounted
                .unwrap_or_else(|error| panic!("{error}: this needs root, and {LEFT_OUT}=1 leaves it out"));
        }
        Some(Self { scratch })
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
