//! Runs programs of the system.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, Output, Stdio};

/// Runs a program to its end and returns what it printed.
///
/// # Errors
/// When it cannot be started, or ends with anything but 0: then with what it said.
pub fn run<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> io::Result<String> {
    let mut command = Command::new(name);
    command.args(arguments);
    let output = output(&mut command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{name}: {}: {}", output.status, said.trim())))
}

/// Runs a command to its end; an error names the program.
///
/// # Errors
/// When it cannot be started.
pub fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|error| {
        let name = command.get_program().display();
        io::Error::new(error.kind(), format!("{name}: {error}"))
    })
}

/// Whether a program of this name is on the path.
pub fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
