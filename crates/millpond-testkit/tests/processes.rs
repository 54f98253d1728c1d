//! The log as processes that are killed, traced and refused see it. Cases of the field are named by their numbers.
//!
//! Needs strace, and root for a process namespace; `MILLPOND_NO_ROOT_TESTS` leaves out what needs root.
#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use millpond::ErrorCode;
use millpond_testkit::strace::{self, Call};
use millpond_testkit::subjects::{Log, Subject};
use tempfile::TempDir;

const WORKER: &str = env!("CARGO_BIN_EXE_script-worker");
/// Everything that changes a file or a name, or makes one durable.
const CHANGES: &str = "trace=write,pwrite64,writev,pwritev,ftruncate,fallocate,unlink,unlinkat,rename,renameat,\
                       renameat2,fsync,fdatasync";

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn command<'a>(queue: &'a Path, words: &[&'a str]) -> Vec<&'a str> {
    [&[WORKER, Log::NAME, queue.to_str().unwrap(), "sync"], words].concat()
}

/// Runs a worker to its end; what it said.
fn work(queue: &Path, words: &[&str]) -> String {
    let command = command(queue, words);
    let output = Command::new(command[0]).args(&command[1..]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn segments(queue: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(queue).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "seg")).collect();
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// What a worker reads, without a word about anything else.
fn read(queue: &Path) -> String {
    let said = work(queue, &["read"]);
    said.lines().find(|line| line.starts_with("read ")).unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// The newest segment with anything in it, and where its last byte that is not zero ends.
fn newest(queue: &Path) -> (PathBuf, u64) {
    let used = |file: PathBuf| {
        let bytes = fs::read(&file).unwrap();
        let last = bytes[8192..].iter().rposition(|byte| *byte != 0)?;
        Some((file, 8192 + last as u64 + 1))
    };
    segments(queue).into_iter().rev().find_map(used).unwrap()
}

/// Three directories: of a process that was killed, with the newest segment cut, and with zeros behind it.
fn left_behind(scratch: &Path) -> Vec<PathBuf> {
    let killed = scratch.join("killed");
    work(&killed, &["produce:4x200", "kill"]);
    assert!(segments(&killed).len() >= 3);
    let [cut, zeros] = ["cut", "zeros"].map(|name| scratch.join(name));
    copy(&killed, &cut);
    let (file, end) = newest(&cut);
    OpenOptions::new().write(true).open(file).unwrap().set_len(end - 100).unwrap();
    copy(&killed, &zeros);
    let (file, _) = newest(&zeros);
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.set_len(file.metadata().unwrap().len() + 4096).unwrap();
    vec![killed, cut, zeros]
}

#[test]
fn o_04_a_recovery_that_is_killed_at_any_call_costs_nothing() {
    let scratch = scratch();
    let trace = scratch.path().join("trace");
    let mut kills = 0;
    for left in left_behind(scratch.path()) {
        let undisturbed = scratch.path().join("undisturbed");
        copy(&left, &undisturbed);
        let before = tree(&undisturbed);
        let Some(traced) = strace::run(&trace, &["-e", CHANGES], &command(&undisturbed, &["read"])) else {
            return;
        };
        let said = traced.said.lines().find(|line| line.starts_with("read ")).unwrap().to_owned();
        let root = fs::canonicalize(&undisturbed).unwrap();
        let answer = traced.calls.iter().position(|call| call.rest.contains("read ")).unwrap();
        let own = |call: &&Call| Path::new(&call.path).starts_with(&root);
        let calls: Vec<&Call> = traced.calls[..answer].iter().filter(own).collect();
        // Recovery makes durable what it trusts, and that is all.
        assert!(calls.iter().all(|call| call.is_sync()), "{calls:?}");
        assert!(!calls.is_empty());
        assert_eq!(tree(&undisturbed), before, "an open changed {}", left.display());
        for at in 1..=calls.len() {
            let disturbed = scratch.path().join("disturbed");
            copy(&left, &disturbed);
            let kill = format!("inject=fsync,fdatasync:signal=KILL:when={at}");
            let command = command(&disturbed, &["read"]);
            let killed = strace::run(&trace, &["-e", CHANGES, "-e", &kill], &command).unwrap();
            assert!(!killed.said.contains("read "), "call {at} was not reached: {}", killed.said);
            assert_eq!(read(&disturbed), said, "killed at call {at} of {}", left.display());
            kills += 1;
            fs::remove_dir_all(disturbed).unwrap();
        }
        fs::remove_dir_all(undisturbed).unwrap();
    }
    println!("{kills} recoveries were killed");
}

/// Every file with its bytes.
fn tree(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|file| (file.clone(), fs::read(file).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn o_10_a_name_is_durable_before_what_depends_on_it() {
    let scratch = scratch();
    let queue = scratch.path().join("queue");
    let traced =
        strace::run(&scratch.path().join("trace"), &["-e", CHANGES], &command(&queue, &["produce:1x800"]));
    let Some(traced) = traced else { return };
    assert_eq!(traced.said.matches("pushed").count(), 800, "{}", traced.said);
    let root = fs::canonicalize(&queue).unwrap();
    let (mut pending, mut used) = (BTreeSet::new(), BTreeSet::new());
    let mut renames = 0;
    for call in traced.calls {
        let path = Path::new(&call.path);
        if call.name.starts_with("rename") && path == root {
            // "old", directory, "new"
            let name = call.rest.split('"').nth(3).unwrap().to_owned();
            pending.insert(name);
            renames += 1;
        } else if call.name == "fsync" && path == root && call.rest.trim_end().ends_with("= 0") {
            pending.clear();
        } else if call.name == "fdatasync" && path.starts_with(&root) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(!pending.contains(&name), "{name} holds pushes and its name is not durable");
            used.insert(name);
        }
    }
    println!("{renames} files got names, {} were written to", used.len());
    assert!(used.len() >= 3 && renames >= used.len(), "{used:?}");
}

fn locked(queue: &Path) -> Duration {
    let began = Instant::now();
    let error = Log::open(queue).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Locked, "{error}");
    began.elapsed()
}

/// Waits until a worker says this.
fn wait_until(child: &mut Child, said: &str) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.map(Result::unwrap).any(|line| line.starts_with(said));
    assert!(found, "the worker ended without {said}");
}

#[test]
fn o_11_a_dead_owner_holds_nothing_and_a_living_one_everything() {
    let scratch = scratch();
    let queue = scratch.path().join("queue");
    let mut opens = Vec::new();
    for round in 0..100 {
        if round % 10 == 0 {
            drop(fs::remove_dir_all(&queue));
        }
        work(&queue, &["push", "push", "push", "push", "push", "kill"]);
        let began = Instant::now();
        drop(Log::open(&queue).unwrap());
        opens.push(began.elapsed());
    }
    opens.sort_unstable();
    println!("after a kill an open takes {:?}, at most {:?}", opens[50], opens[99]);
    assert!(opens[50] < Duration::from_millis(200), "{opens:?}");
    assert_eq!(read(&queue), "read 50");
    let words = ["push", "hold"];
    let command = command(&queue, &words);
    let mut owner = Command::new(command[0]).args(&command[1..]).stdout(Stdio::piped()).spawn().unwrap();
    wait_until(&mut owner, "holding");
    let refusals: BTreeSet<Duration> = (0..100).map(|_| locked(&queue)).collect();
    println!("a refusal takes at most {:?}", refusals.last().unwrap());
    let median = refusals.iter().nth(refusals.len() / 2).unwrap();
    assert!(*median < Duration::from_millis(200), "{refusals:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(read(&queue), "read 51");
}

#[test]
fn o_11_the_first_process_of_a_namespace_is_no_special_owner() {
    if std::env::var_os("MILLPOND_NO_ROOT_TESTS").is_some() {
        println!("left out by MILLPOND_NO_ROOT_TESTS");
        return;
    }
    let scratch = scratch();
    let queue = scratch.path().join("queue");
    let inside = |words: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--kill-child"]).args(command(&queue, words));
        unshare.stdout(Stdio::piped()).spawn().unwrap()
    };
    for round in 1..=10 {
        // Process 1 of its namespace, as the dead one before was.
        let mut owner = inside(&["push", "hold"]);
        wait_until(&mut owner, "holding");
        locked(&queue);
        owner.kill().unwrap();
        owner.wait().unwrap();
        let began = Instant::now();
        let store = loop {
            match Log::open(&queue) {
                Ok(store) => break store,
                // The kernel ends the child of the one that was killed.
                Err(error) if began.elapsed() < Duration::from_secs(2) => {
                    assert_eq!(error.code(), ErrorCode::Locked, "{error}");
                }
                Err(error) => panic!("{error}"),
            }
        };
        drop(store);
        let output = inside(&["read"]).wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains(&format!("read {round}\n")), "{said}");
    }
}
