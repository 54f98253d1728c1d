//! What the kernel is asked to do: each durable push is followed, before its answer, by a sync of the file that holds
//! it; and what a store does when a sync fails. Needs strace; says so where it is missing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use millpond_testkit::subjects::Subject;
use millpond_testkit::tests_on_disk_stores;

const CALLS: &str = "trace=write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,msync";

/// One call that ended.
#[derive(Debug)]
struct Call {
    name: String,
    path: String,
    /// What is behind the path: arguments and result.
    rest: String,
}

/// The calls of all threads in the order in which they ended.
fn calls(trace: &str) -> Vec<Call> {
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
        let path = rest.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
        let Some((path, rest)) = path else { continue };
        calls.push(Call { name: name.to_owned(), path: path.to_owned(), rest: rest.to_owned() });
    }
    calls
}

/// Runs the worker under strace; `None` where strace does not work.
fn traced<T: Subject>(directory: &Path, options: &[&str], words: &[&str]) -> Option<(String, String)> {
    let trace = directory.join("trace");
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("SKIPPED: strace is missing or may not trace here");
        return None;
    }
    let output = Command::new("strace")
        .args(["-f", "-y", "-s", "64", "-o"])
        .arg(&trace)
        .args(options)
        .arg(env!("CARGO_BIN_EXE_script-worker"))
        .args([T::NAME, directory.join("queue").to_str().unwrap(), "sync"])
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    Some((fs::read_to_string(trace).unwrap(), said))
}

/// Each durable push is followed by a successful sync of every file with entries that was written for it.
fn each_durable_push_is_synced<T: Subject>() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some((trace, said)) = traced::<T>(scratch.path(), &["-e", CALLS], &["push"; 10]) else { return };
    assert_eq!(said.matches("pushed").count(), 10, "{said}");
    let root = fs::canonicalize(scratch.path()).unwrap().join("queue");
    let (mut pushes, mut syncs, mut under_way) = (0, 0, false);
    // Files with entries that were written and not synced since.
    let mut unsynced: Vec<String> = Vec::new();
    let mut synced_since_call = 0;
    for call in calls(&trace) {
        let file = Path::new(&call.path).strip_prefix(&root).ok().and_then(Path::to_str);
        let holds_entries = file.is_some_and(T::holds_entries);
        match call.name.as_str() {
            "write" if call.rest.contains("call push") => {
                under_way = true;
                synced_since_call = 0;
            }
            "write" if call.rest.contains("pushed ") => {
                assert!(unsynced.is_empty(), "answered before a sync of {unsynced:?}");
                assert!(synced_since_call > 0, "answered without a sync");
                pushes += 1;
                syncs += synced_since_call;
                under_way = false;
            }
            "fsync" | "fdatasync" if holds_entries && call.rest.trim_end().ends_with("= 0") => {
                unsynced.retain(|path| *path != call.path);
                synced_since_call += 1;
            }
            "write" | "pwrite64" | "writev" | "pwritev"
                if holds_entries && under_way && !unsynced.contains(&call.path) =>
            {
                unsynced.push(call.path);
            }
            _ => {}
        }
    }
    println!("{}: {pushes} durable pushes, {syncs} syncs of files with entries", T::NAME);
    assert_eq!(pushes, 10);
}

/// 6. A store whose sync failed accepts nothing more, although the next sync would succeed; what was answered before is
///    there after the next open.
fn clause_6_a_failed_sync_stops_the_store<T: Subject>() {
    let mut failed_under_load = 0;
    for failing in [3, 5, 8, 14, 27] {
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // The files are made first, so that the failure comes in a commit.
        let made = Command::new(env!("CARGO_BIN_EXE_script-worker"))
            .args([T::NAME, scratch.path().join("queue").to_str().unwrap(), "sync", "push"])
            .output()
            .unwrap();
        assert!(made.status.success());
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={failing}");
        let options = ["-e", CALLS, "-e", &inject];
        let Some((_, said)) = traced::<T>(scratch.path(), &options, &["push"; 20]) else { return };
        let answers: Vec<&str> = said.lines().filter(|line| !line.starts_with("call")).collect();
        let stored = answers.iter().filter(|line| line.starts_with("pushed")).count() as u64;
        println!("{}: sync {failing} fails, {stored} answered", T::NAME);
        if answers.is_empty() {
            // It failed while the store was opened, which says so and ends.
            continue;
        }
        let failed = answers.iter().position(|line| line.starts_with("failed"));
        if let Some(failed) = failed {
            failed_under_load += 1;
            assert!(["failed MILLPOND_IO", "failed MILLPOND_POISONED"].contains(&answers[failed]), "{said}");
            let after = answers[failed + 1..].iter().filter(|line| !line.starts_with("length"));
            for line in after {
                assert_eq!(*line, "failed MILLPOND_POISONED", "{said}");
            }
        }
        let queue = millpond::Builder::new(T::open(&scratch.path().join("queue")).unwrap()).open().unwrap();
        assert!(queue.len() > stored, "{} of {} answered are there", queue.len(), stored + 1);
        assert!(queue.push(b"x").is_ok());
    }
    assert!(failed_under_load > 0, "no sync failed in a commit");
}

tests_on_disk_stores! {
    each_durable_push_is_synced,
    clause_6_a_failed_sync_stops_the_store,
}
