//! Namespaces of its own for a process that mounts and starts daemons.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{mount, program};

/// Set in the environment of a process that is inside.
const INSIDE: &str = "MILLPOND_SANDBOX";

/// Where the process namespace is taken from: util-linux, on every Linux.
const UNSHARE: &str = "unshare";

/// What block devices need.
pub const DEVICES: [&str; 2] = ["/dev/fuse", "/dev/loop-control"];
/// What block devices need beside `unshare`: a program, and the package that has it.
pub const PROGRAMS: [(&str, &str); 9] = [
    ("qemu-storage-daemon", "qemu-utils"),
    ("mkfs.ext4", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("filefrag", "e2fsprogs"),
    ("xfs_db", "xfsprogs"),
    ("mount", "mount"),
    ("strace", "strace"),
    ("timeout", "coreutils"),
];

/// Why nothing can be mounted on this machine with these devices and programs, in one line; `None` when it can.
pub fn obstacle(devices: &[&str], programs: &[(&str, &str)]) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("it mounts disks through FUSE, which only Linux has".to_owned());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("mounting needs root".to_owned());
    }
    for device in devices {
        if !Path::new(device).exists() {
            return Some(format!("there is no {device}"));
        }
    }
    if let Some((name, package)) = programs.iter().find(|(name, _)| !program::is_there(name)) {
        return Some(format!("{name} is missing (package {package})"));
    }
    program::run(UNSHARE, ["--mount", "--pid", "--fork", "true"]).err().map(|error| error.to_string())
}

/// Starts this program again, with its arguments, inside namespaces of its own; returns only inside, with an empty
/// file system in memory for everything that follows.
///
/// # Errors
/// When a namespace or the file system cannot be had.
pub fn enter() -> io::Result<Sandbox> {
    if std::env::var_os(INSIDE).is_none() {
        let mut command = Command::new(UNSHARE);
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        // The first process of a namespace ignores SIGINT and SIGTERM, so it is a shell that waits for this program.
        command.args(["sh", "-c", "\"$@\"; exit $?", "sh"]);
        command.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(INSIDE, "1");
        return Err(command.exec());
    }
    let folder = tempfile::Builder::new().prefix("millpond-sandbox-").tempdir()?;
    let memory = mount::Mount::memory(folder.path())?;
    Ok(Sandbox { _memory: memory, folder })
}

/// The file system in memory, gone at the end.
#[derive(Debug)]
pub struct Sandbox {
    // Goes before the folder it is mounted on.
    _memory: mount::Mount,
    folder: TempDir,
}

impl Sandbox {
    /// A new empty folder.
    ///
    /// # Errors
    /// That of making it.
    pub fn folder(&self) -> io::Result<PathBuf> {
        Ok(tempfile::Builder::new().tempdir_in(self.folder.path())?.keep())
    }
}
