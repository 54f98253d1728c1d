//! What the kernel is asked to do: each durable push is followed, before its answer, by a sync of the file that holds it.
//! Needs strace; says so where it is missing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::fs;
use std::path::Path;

use millpond_testkit::strace::{self, WRITES_AND_SYNCS};
use millpond_testkit::subjects::Subject;
use millpond_testkit::tests_on_disk_stores;

/// Each durable push is followed by a successful sync of every file with entries that was written for it.
fn each_durable_push_is_synced<T: Subject>() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let queue = scratch.path().join("queue");
    let command = [env!("CARGO_BIN_EXE_script-worker"), T::NAME, queue.to_str().unwrap(), "sync"];
    let command = [&command[..], &["push"; 10]].concat();
    let traced = strace::run(&scratch.path().join("trace"), &["-e", WRITES_AND_SYNCS], &command);
    let Some(traced) = traced else { return };
    assert_eq!(traced.said.matches("pushed").count(), 10, "{}", traced.said);
    let root = fs::canonicalize(scratch.path()).unwrap().join("queue");
    let (mut pushes, mut syncs, mut under_way) = (0, 0, false);
    // Files with entries that were written and not synced since.
    let mut unsynced: Vec<String> = Vec::new();
    let mut synced_since_call = 0;
    for call in traced.calls {
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

tests_on_disk_stores! {
    each_durable_push_is_synced,
}
