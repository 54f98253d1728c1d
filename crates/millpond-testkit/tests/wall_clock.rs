//! O-21: the wall clock goes back a day while a wait of 300 ms is under way; the wait ends in time all the same.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// How long this wait took by the clock that only goes forward, and by the wall clock, in milliseconds.
fn wait(shim: &Path, folder: &Path, word: &str) -> (i64, i64) {
    let trigger = folder.join("set-back");
    let mut worker = Command::new(env!("CARGO_BIN_EXE_script-worker"))
        .args(["mem", folder.to_str().unwrap(), "group", word])
        .env("LD_PRELOAD", shim)
        .env("SET_BACK_WHEN", &trigger)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(worker.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut waited = None;
    for line in lines {
        if line == "waiting" {
            fs::write(&trigger, b"").unwrap();
        }
        if let Some(figures) = line.strip_prefix("waited ") {
            let (steady, wall) = figures.split_once(' ').unwrap();
            waited = Some((steady.parse().unwrap(), wall.parse().unwrap()));
        }
    }
    assert!(worker.wait().unwrap().success());
    fs::remove_file(trigger).unwrap();
    waited.unwrap()
}

fn a_wait_ends_in_time(word: &str) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let shim = folder.path().join("set_back.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clock/set_back.c");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(source).status().unwrap();
    assert!(compiled.success());
    // On a busy machine the file may come when the wait is over.
    let (steady, wall) =
        (0..20).map(|_| wait(&shim, folder.path(), word)).find(|(_, wall)| *wall < 0).unwrap();
    println!("{word}: waited {steady} ms, by the wall clock {wall} ms");
    assert!((-86_400_000..-86_390_000).contains(&wall), "the clock went back: {wall}");
    // The case allows 600; a busy machine may take longer, but no day.
    assert!((280..5000).contains(&steady), "{steady} ms");
}

#[test]
fn o_21_a_wait_ends_in_time_although_the_clock_is_set_back() {
    a_wait_ends_in_time("wait:300");
}

#[cfg(feature = "tokio")]
#[test]
fn o_21_a_wait_under_tokio_ends_in_time_although_the_clock_is_set_back() {
    a_wait_ends_in_time("wait-tokio:300");
}
