//! A process under strace: what it asked of the kernel, in the order in which the calls ended, and calls that are made to
//! fail.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::missing_panics_doc,
    reason = "a test that cannot run panics"
)]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Calls that write to a file or make it durable.
pub const WRITES_AND_SYNCS: &str =
    "trace=write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,msync";

/// One call that ended.
#[derive(Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its first argument, a descriptor.
    pub descriptor: String,
    /// The file of its first argument.
    pub path: String,
    /// What is behind the path: arguments and result.
    pub rest: String,
}

impl Call {
    /// Whether it makes a file durable.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        ["fsync", "fdatasync"].contains(&self.name.as_str())
    }

    /// Whether it was answered with this error.
    #[must_use]
    pub fn failed_with(&self, error: &str) -> bool {
        self.rest.contains(&format!("= -1 {error}"))
    }
}

/// The calls of all threads in the order in which they ended.
#[must_use]
pub fn calls(trace: &str) -> Vec<Call> {
    let mut open: HashMap<&str, String> = HashMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, text)) = line.trim_start().split_once(' ') else { continue };
        let text = text.trim_start();
        let whole = if let Some(begun) = text.strip_suffix("<unfinished ...>") {
            open.insert(thread, begun.to_owned());
            continue;
        } else if let Some((_, ended)) = text.split_once("resumed>") {
            open.remove(thread).unwrap_or_default() + ended
        } else {
            text.to_owned()
        };
        let Some((name, rest)) = whole.split_once('(') else { continue };
        let split = rest.split_once('<').and_then(|(number, rest)| Some((number, rest.split_once('>')?)));
        let Some((descriptor, (path, rest))) = split else { continue };
        let [name, descriptor, path, rest] = [name, descriptor, path, rest].map(str::to_owned);
        calls.push(Call { name, descriptor, path, rest });
    }
    calls
}

/// What a traced process did.
#[derive(Debug)]
pub struct Traced {
    /// Its calls.
    pub calls: Vec<Call>,
    /// Its standard output.
    pub said: String,
    /// What it said on its standard error; a panic, if there was one.
    pub complained: String,
    /// Whether it ended by itself, with 0.
    pub ended_well: bool,
}

/// Runs a command under strace with these options; `None`, said aloud, where strace does not work. The command is killed
/// if it takes longer than a minute.
pub fn run<O: AsRef<OsStr>>(trace: &Path, options: &[O], command: &[&str]) -> Option<Traced> {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("SKIPPED: strace is missing or may not trace here");
        return None;
    }
    // With a filter in the kernel the process stops at these calls only, and not at every other one too. An injected signal
    // does not arrive then (strace 6.1).
    let signals = options.iter().any(|option| option.as_ref().to_string_lossy().contains("signal="));
    let filter = if signals { [].as_slice() } else { ["--seccomp-bpf"].as_slice() };
    let output = Command::new("timeout")
        .args(["-s", "KILL", "60", "strace", "-f"])
        .args(filter)
        .args(["-y", "-s", "64", "-o"])
        .arg(trace)
        .args(options)
        .args(command)
        .output()
        .unwrap();
    Some(Traced {
        calls: calls(&fs::read_to_string(trace).unwrap()),
        said: String::from_utf8(output.stdout).unwrap(),
        complained: String::from_utf8_lossy(&output.stderr).into_owned(),
        ended_well: output.status.success(),
    })
}
