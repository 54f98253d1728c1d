//! What is tried: a queue of this build on one of its stores, or the addon in Node; and a worker without its fsyncs, to
//! see that losses are seen.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The longest a life of a worker, or the opening of an image, may take; then it hangs.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// What is tried.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// `log`, `redb`, `sled`, `rocksdb`, or `addon`.
    pub(crate) name: String,
    /// `sync`, `group` or `none`.
    pub(crate) durability: String,
    /// Every fsync of the worker answers success and does nothing.
    pub(crate) skips_sync: bool,
}

impl Subject {
    /// A process that works on the queue in `directory`.
    pub(crate) fn worker(&self, directory: &Path, life: &[String]) -> io::Result<Command> {
        let mut words = limited();
        if self.skips_sync {
            let calls = "fsync,fdatasync,sync_file_range,msync";
            words.extend(["strace", "-f", "-q", "-o", "/dev/null"].map(Into::into));
            words.extend(["-e".into(), format!("trace={calls}").into()]);
            words.extend(["-e".into(), format!("inject={calls}:retval=0").into()]);
        }
        words.extend(self.program("work")?);
        words.extend([directory.into(), self.durability.clone().into()]);
        words.extend(life.iter().map(Into::into));
        Ok(command(words))
    }

    /// A process that works on the queue in `directory` until it fails.
    pub(crate) fn stumbler(&self, directory: &Path, life: &[String]) -> io::Result<Command> {
        let mut words = limited();
        words.extend(self.program("stumble")?);
        words.extend([directory.into(), self.durability.clone().into()]);
        words.extend(life.iter().map(Into::into));
        Ok(command(words))
    }

    /// A process that opens what a crash left and says what is in it; for the addon, one that opens the directories it
    /// reads, else the directory that is its last argument.
    pub(crate) fn checker(&self) -> io::Result<Command> {
        let mut words = if self.is_addon() { Vec::new() } else { limited() };
        words.extend(self.program("check")?);
        Ok(command(words))
    }

    pub(crate) fn is_addon(&self) -> bool {
        self.name == "addon"
    }

    fn program(&self, task: &str) -> io::Result<Vec<OsString>> {
        if self.is_addon() {
            let script = root().join("__test__/power-cut").join(format!("{task}.mjs"));
            return Ok(vec!["node".into(), script.into()]);
        }
        Ok(vec![std::env::current_exe()?.into(), task.into(), self.name.clone().into()])
    }

    /// Bytes of the disk it is tried on.
    pub(crate) fn disk_bytes(&self) -> u64 {
        // RocksDB reserves files of a size that a small disk has no room for.
        if self.name == "rocksdb" { 256 << 20 } else { 32 << 20 }
    }
}

/// The beginning of a command that is killed when it takes too long.
fn limited() -> Vec<OsString> {
    ["timeout", "--signal=KILL", &LIMIT.as_secs().to_string()].map(Into::into).into()
}

fn command(mut words: Vec<OsString>) -> Command {
    let arguments = words.split_off(1);
    let mut command = Command::new(words.pop().unwrap_or_default());
    command.args(arguments);
    command
}

/// The folder of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
