//! Node with the addon: one process for all cycles of a lane, since it takes longer to start than to open.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Which addon is tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addon {
    /// Its file; `None` is the checkout's.
    pub(crate) file: Option<OsString>,
    /// The fault that is planted in it.
    pub(crate) planted: Option<&'static str>,
}

/// A process that works on one directory after the other.
pub(crate) struct Worker {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start(addon: &Addon) -> io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/strict-disk/work.mjs");
        let mut command = Command::new("node");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove("MILLPOND_PLANTED");
        if let Some(file) = &addon.file {
            command.env("MILLPOND_ADDON", file);
        }
        if let Some(fault) = addon.planted {
            command.env("MILLPOND_PLANTED", fault);
        }
        let mut process = command.spawn()?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(to), Some(from)) => Ok(Self { process, to, from: BufReader::new(from) }),
            _ => Err(io::Error::other("no pipes")),
        }
    }

    /// Everything that it says of one life.
    pub(crate) fn live(&mut self, words: &str) -> io::Result<String> {
        self.to.write_all(format!("{words}\n").as_bytes())?;
        let mut said = String::new();
        loop {
            let start = said.len();
            if self.from.read_line(&mut said)? == 0 {
                return Err(io::Error::other(format!("the worker ended or hangs: {}", tail(&said))));
            }
            if said[start..].starts_with("over ") {
                return Ok(said);
            }
        }
    }
}

/// The last lines.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
