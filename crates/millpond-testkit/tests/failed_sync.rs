//! A disk that fails, on real files: calls of the kernel are answered with an error by strace. Needs strace; says so
//! where it is missing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use millpond::{Builder, Queue};
use millpond_testkit::strace::{self, Traced, WRITES_AND_SYNCS};
use millpond_testkit::subjects::Subject;
use millpond_testkit::tests_on_disk_stores;

const WORKER: &str = env!("CARGO_BIN_EXE_script-worker");

/// A queue directory with one entry, made beforehand so that the failure comes in a commit.
struct Scratch {
    folder: tempfile::TempDir,
    queue: PathBuf,
}

impl Scratch {
    fn new<T: Subject>() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let queue = fs::canonicalize(folder.path()).unwrap().join("queue");
        let made = Command::new(WORKER).args([T::NAME, queue.to_str().unwrap(), "sync", "push"]).output();
        assert!(made.unwrap().status.success());
        Self { folder, queue }
    }

    /// Does these words under strace; `before` is put before the worker's command.
    fn run<T: Subject>(
        &self,
        options: &[String],
        before: &[&str],
        policy: &str,
        words: &[&str],
    ) -> Option<Traced> {
        let worker = [WORKER, T::NAME, self.queue.to_str().unwrap(), policy];
        let command = [before, &worker, words].concat();
        let mut all = vec!["-e".to_owned(), WRITES_AND_SYNCS.to_owned()];
        all.extend_from_slice(options);
        strace::run(&self.folder.path().join("trace"), &all, &command)
    }

    /// Options that make calls on the files with entries fail, those that are there and those that the log and
    /// `RocksDB` will make.
    fn failing_files<T: Subject>(&self, inject: &str) -> Vec<String> {
        let mut options = vec!["-e".to_owned(), format!("inject={inject}")];
        let to_come = (1..60).flat_map(|number| {
            [format!("rocksdb/{number:06}.log"), format!("{number:016}.seg")]
                .map(|name| self.queue.join(name))
        });
        for file in files(&self.queue).into_iter().chain(to_come) {
            if T::holds_entries(file.strip_prefix(&self.queue).unwrap().to_str().unwrap()) {
                options.extend(["-P".to_owned(), file.to_str().unwrap().to_owned()]);
            }
        }
        options
    }

    /// Opens the queue in this process, where nothing fails, and holds it against what was answered.
    fn judge<T: Subject>(&self, said: &str) -> Queue {
        let queue = Builder::new(T::open(&self.queue).unwrap()).open().unwrap();
        let ids: Vec<u64> = queue.iter().map(|entry| entry.unwrap().id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        for id in answered(said) {
            assert!(ids.binary_search(&id).is_ok(), "{}: entry {id} was answered and is lost", T::NAME);
        }
        let next = queue.push(b"x").unwrap();
        assert!(Some(&next) > ids.last() && answered(said).iter().all(|id| *id < next));
        queue
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The call that makes a commit durable. strace counts each call of each thread by itself.
fn sync_call<T: Subject>() -> &'static str {
    if T::NAME == "sled" { "fsync" } else { "fdatasync" }
}

/// The ids that were answered.
fn answered(said: &str) -> Vec<u64> {
    said.lines().filter_map(|line| line.strip_prefix("pushed ")).map(|id| id.parse().unwrap()).collect()
}

/// O-08: an fsync fails once, under the load of eight producers. The writer stops for good although every later call
/// would succeed: no second sync of that file, nothing answered from then on, reading goes on, and the next open has
/// everything that was answered.
fn o_08_an_fsync_that_fails_once_stops_the_writer<T: Subject>() {
    for policy in ["sync", "group"] {
        let mut failed_under_load = 0;
        for failing in [2, 5, 9, 17, 18, 19, 20, 33] {
            let scratch = Scratch::new::<T>();
            let inject = format!("inject={}:error=EIO:when={failing}", sync_call::<T>());
            let words = [&["produce:8x40"][..], &["push"; 10], &["ack:1", "read"]].concat();
            let traced = scratch.run::<T>(&["-e".to_owned(), inject], &[], policy, &words);
            let Some(Traced { calls, said, .. }) = traced else { return };
            scratch.judge::<T>(&said);
            println!(
                "{} {policy}: sync {failing} of a thread fails, {} answered",
                T::NAME,
                answered(&said).len()
            );
            // It may have failed while the store was opened, which says so and ends, or in a file beside the entries.
            let Some((shared, alone)) = said.split_once("call push\n") else { continue };
            let Some(failed) = calls.iter().position(|call| call.is_sync() && call.failed_with("EIO")) else {
                continue;
            };
            // Which thread leads how often is chance: the count may be reached only when the pushes come alone.
            if !shared.contains("failed") {
                continue;
            }
            failed_under_load += 1;
            for line in said.lines().filter(|line| line.starts_with("failed")) {
                assert!(["failed MILLPOND_IO", "failed MILLPOND_POISONED"].contains(&line), "{said}");
            }
            assert_eq!(alone.matches("failed MILLPOND_POISONED").count(), 11, "{alone}");
            assert!(!alone.contains("pushed") && !alone.contains("acked"), "{alone}");
            assert!(alone.contains("read "), "reading goes on: {alone}");
            let again: Vec<_> = calls[failed + 1..]
                .iter()
                .filter(|call| call.is_sync() && call.path == calls[failed].path)
                .collect();
            // A thread of sled's own syncs twice a second, and the drop once more, on the descriptor that sled keeps
            // (docs/durability.md). The syncs that answer somebody have descriptors of their own.
            if T::NAME == "sled" {
                let kept: BTreeSet<&str> = again.iter().map(|call| call.descriptor.as_str()).collect();
                println!("sled {policy}: {} synced again {} times", calls[failed].path, again.len());
                assert!(kept.len() <= 1 && !kept.contains(calls[failed].descriptor.as_str()), "{again:?}");
            } else {
                assert!(again.is_empty(), "{failed:?} {again:?}");
            }
        }
        assert!(failed_under_load > 0, "{policy}: no sync failed in a commit");
    }
}

/// From a moment on every fsync fails. Each call says so, and so does the next open; nobody panics, also not when the
/// queue is dropped.
fn a_disk_whose_syncs_all_fail_ends_no_process<T: Subject>() {
    let mut failed_under_load = 0;
    for failing in [1, 2, 3, 5, 8, 14, 20] {
        let scratch = Scratch::new::<T>();
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={failing}+");
        let words = [&["push"; 12][..], &["reopen", "read"]].concat();
        let Some(traced) = scratch.run::<T>(&["-e".to_owned(), inject], &[], "sync", &words) else { return };
        scratch.judge::<T>(&traced.said);
        if traced.said.is_empty() {
            // It failed in the open. The worker ends with what that answered, and nothing else panicked.
            assert!(traced.complained.contains("code: Io"), "{}", traced.complained);
            assert_eq!(traced.complained.matches("panicked at").count(), 1, "{}", traced.complained);
            continue;
        }
        assert!(traced.ended_well, "when={failing}+: {}{}", traced.said, traced.complained);
        failed_under_load += usize::from(traced.said.contains("failed"));
    }
    assert!(failed_under_load > 0, "no sync failed in a commit");
}

/// How often 64 pushes are made at once in a round.
const SHARED: usize = 6;

/// O-09: 64 pushes at once share commits, one of which fails in one of three ways; then the process is killed. Nobody is
/// told that an entry is stored that is not there, and everybody is told something. The case has 200 rounds:
/// `MILLPOND_O09=200`.
fn o_09_followers_get_the_leaders_error<T: Subject>() {
    let rounds: usize = std::env::var("MILLPOND_O09").ok().and_then(|n| n.parse().ok()).unwrap_or(9);
    let (mut failures, mut stored) = ([0; 3], 0);
    for round in 0..rounds {
        // On a full disk sled's flush waits for ever (docs/durability.md).
        let kind = if T::NAME == "sled" { 0 } else { round % 3 };
        let when = 3 + round / 3 % 4;
        let scratch = Scratch::new::<T>();
        // The log makes its files whole beforehand: there the next file cannot be made.
        let largest = largest(&scratch.queue) / 512;
        let limit = if T::NAME == "log" { largest / 2 } else { largest + 8 };
        let limit = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$@\"");
        let limited = ["sh", "-c", &limit, "limited"];
        let (options, before) = match kind {
            0 => {
                (scratch.failing_files::<T>(&format!("{}:error=EIO:when={when}", sync_call::<T>())), &[][..])
            }
            1 => {
                let writes = format!("write,pwrite64,writev,pwritev:error=ENOSPC:when={when}");
                (scratch.failing_files::<T>(&writes), &[][..])
            }
            // A file that may grow no further: the write is short, the next one fails.
            _ => (Vec::new(), &limited[..]),
        };
        let words = [&["share:64"; SHARED][..], &["kill"]].concat();
        let Some(traced) = scratch.run::<T>(&options, before, "group", &words) else { return };
        if traced.said.is_empty() {
            // It failed while the store was opened, which says so and ends.
            continue;
        }
        let count = |answer: &str| traced.said.lines().filter(|line| line.starts_with(answer)).count();
        assert_eq!(count("pushed") + count("failed"), 64 * SHARED, "everybody is answered: {}", traced.said);
        failures[kind] += usize::from(count("failed") > 0);
        stored += count("pushed");
        scratch.judge::<T>(&traced.said);
    }
    println!(
        "O-09 {}: {rounds} rounds; with a failure: sync {}, no space {}, short {}; {stored} answered",
        T::NAME,
        failures[0],
        failures[1],
        failures[2]
    );
    let kinds = if T::NAME == "sled" { 1 } else { 3 };
    assert!(failures[..kinds].iter().all(|count| *count > 0), "a kind never failed: {failures:?}");
}

/// Bytes of the largest file.
fn largest(folder: &Path) -> u64 {
    files(folder).iter().map(|path| fs::metadata(path).unwrap().len()).max().unwrap()
}

/// A store that a failure stopped gives way to the next open of its directory in the same process, the library's own
/// lock included.
fn a_stopped_store_gives_way_to_the_next_open<T: Subject>() {
    let mut failed_under_load = 0;
    for failing in [3, 5, 8, 14, 27] {
        let scratch = Scratch::new::<T>();
        let inject = format!("inject={}:error=EIO:when={failing}", sync_call::<T>());
        let words = [&["push"; 12][..], &["reopen", "push", "push", "reopen"]].concat();
        let Some(traced) = scratch.run::<T>(&["-e".to_owned(), inject], &[], "sync", &words) else { return };
        scratch.judge::<T>(&traced.said);
        let Some((before, after)) = traced.said.split_once("call reopen\n") else { continue };
        if !before.contains("failed") {
            continue;
        }
        failed_under_load += 1;
        assert!(after.starts_with("reopened "), "{}", traced.said);
        assert_eq!(after.matches("pushed ").count(), 2, "{}", traced.said);
        assert!(after.contains("failed MILLPOND_LOCKED"), "one that works does not give way: {after}");
    }
    assert!(failed_under_load > 0, "no sync failed in a commit");
}

tests_on_disk_stores! {
    o_08_an_fsync_that_fails_once_stops_the_writer,
    o_09_followers_get_the_leaders_error,
    a_stopped_store_gives_way_to_the_next_open,
    a_disk_whose_syncs_all_fail_ends_no_process,
}
