//! kill -9 at random moments under load: nothing acknowledged is lost, nothing acked comes back.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use millpond::Builder;
use millpond::store::LogStore;
use millpond_testkit::journal::Journal;
use millpond_testkit::oracle;
use millpond_testkit::random::Random;

const ROUNDS: u64 = 100;
/// Lives of one directory before a fresh one is taken.
const LIVES: u64 = 10;

/// Runs the worker until it is killed, at a random moment from its very start on.
fn live(directory: &Path, durability: &str, first_nonce: u64, random: &mut Random) -> String {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_kill-worker"))
        .arg(directory)
        .args([durability, &first_nonce.to_string(), &random.next_u64().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = worker.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    thread::sleep(Duration::from_micros(random.below(120_000)));
    let died_by_itself = worker.try_wait().unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(died_by_itself.is_none(), "the worker ended by itself: {died_by_itself:?}");
    reader.join().unwrap()
}

fn kill_rounds(durability: &str) {
    let (mut random, seed) = Random::from_environment();
    let mut report = format!("kill -9, {durability}: MILLPOND_SEED={seed}");
    let mut violations = Vec::new();
    let (mut acknowledged, mut delivered) = (0, 0);
    let mut journal = Journal::default();
    let mut directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for round in 0..ROUNDS {
        if round % LIVES == 0 {
            directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            journal = Journal::default();
        }
        let known = journal.pushed.len();
        journal.read(&live(directory.path(), durability, (round + 1) << 32, &mut random));
        acknowledged += journal.pushed.len() - known;
        let store = LogStore::open(directory.path()).unwrap();
        let queue = Builder::new(store).open().unwrap();
        let damage = queue.recovery().damage;
        if !damage.is_empty() {
            violations.push(format!("round {round}: damage reported: {damage:?}"));
        }
        // The judge's own entry is none of a producer's.
        journal.pushes.insert(0);
        let verdict = oracle::judge(&queue, &mut journal).unwrap();
        delivered += verdict.delivered;
        violations.extend(verdict.violations.iter().map(|what| format!("round {round}: {what}")));
    }
    write!(report, " rounds={ROUNDS} acknowledged={acknowledged} redelivered={delivered} ").unwrap();
    write!(report, "violations={}", violations.len()).unwrap();
    println!("{report}");
    assert!(violations.is_empty(), "{report}\n{}", violations.join("\n"));
    assert!(acknowledged > 1000, "{report}: too little load to mean anything");
}

#[test]
fn what_sync_acknowledged_survives_kill_9() {
    kill_rounds("sync");
}

#[test]
fn what_group_acknowledged_survives_kill_9() {
    kill_rounds("group");
}

#[test]
fn what_none_acknowledged_survives_kill_9_on_the_log() {
    kill_rounds("none");
}
