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
use millpond_testkit::journal::Journal;
use millpond_testkit::oracle;
use millpond_testkit::random::Random;
use millpond_testkit::subjects::{Log, Subject};

/// How often a worker is killed, and when.
struct Plan {
    rounds: u64,
    /// Lives of one directory before a fresh one is taken.
    lives: u64,
    /// The longest life of a worker, in microseconds.
    life: u64,
}

const LOG: Plan = Plan { rounds: 100, lives: 10, life: 120_000 };
/// The other stores take longer to open and to commit.
#[cfg(any(feature = "redb", feature = "sled", feature = "rocksdb"))]
const OTHER: Plan = Plan { rounds: 30, lives: 10, life: 500_000 };
/// Most of these lives end while the files are being made.
const YOUNG: Plan = Plan { rounds: 40, lives: 1, life: 40_000 };

/// When a life ends: at random, before `life` microseconds are over.
struct Moment<'a> {
    random: &'a mut Random,
    life: u64,
}

/// Runs the worker until it is killed, at a random moment from its very start on.
fn live(
    store: &str,
    directory: &Path,
    durability: &str,
    first_nonce: u64,
    moment: &mut Moment<'_>,
) -> String {
    let seed = moment.random.next_u64().to_string();
    let mut worker = Command::new(env!("CARGO_BIN_EXE_kill-worker"))
        .arg(store)
        .arg(directory)
        .args([durability, &first_nonce.to_string(), &seed])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = worker.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    // Some are killed while they open, most of them under load.
    thread::sleep(Duration::from_micros(moment.random.below(moment.life)));
    let died_by_itself = worker.try_wait().unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(died_by_itself.is_none(), "the worker ended by itself: {died_by_itself:?}");
    reader.join().unwrap()
}

/// What holds although nothing is made durable: bytes, order, ids and counts.
#[cfg(any(feature = "redb", feature = "sled"))]
const WITHOUT_SYNC: [&str; 4] = ["(3)", "(4)", "(5)", "(6)"];
/// Acknowledged pushes for each kill, over all of them, below which a run means little.
const LOAD: u64 = 10;
/// The longest that a life is let go on, in microseconds.
const LONGEST: u64 = 5_000_000;
const ALL: [&str; 6] = ["(1)", "(2)", "(3)", "(4)", "(5)", "(6)"];

/// Kills workers and judges by these rules. Returns how many pushes were acknowledged.
fn kill_rounds<T: Subject>(durability: &str, plan: &Plan, rules: &[&str]) -> usize {
    let Plan { rounds, lives, mut life } = *plan;
    let (mut random, seed) = Random::from_environment();
    let mut report = format!("kill -9, {}, {durability}: MILLPOND_SEED={seed}", T::NAME);
    let mut violations = Vec::new();
    let (mut acknowledged, mut delivered) = (0, 0);
    let mut journal = Journal::default();
    let mut directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for round in 0..rounds {
        if round % lives == 0 {
            directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            journal = Journal::default();
        }
        let known = journal.pushed.len();
        let first = (round + 1) << 32;
        journal.read(&live(
            T::NAME,
            directory.path(),
            durability,
            first,
            &mut Moment { random: &mut random, life },
        ));
        acknowledged += journal.pushed.len() - known;
        // On a busy machine a process has hardly begun by then: the next lives are longer.
        let is_too_little = (acknowledged as u64) < LOAD * (round + 1);
        life = if is_too_little { (2 * life).min(LONGEST) } else { plan.life };
        let queue = Builder::new(T::open(directory.path()).unwrap()).open().unwrap();
        let damage = queue.recovery().damage;
        if !damage.is_empty() {
            violations.push(format!("round {round}: damage reported: {damage:?}"));
        }
        // The judge's own entry is none of a producer's.
        journal.pushes.insert(0);
        let verdict = oracle::judge(&queue, &mut journal).unwrap();
        delivered += verdict.delivered;
        let broken = verdict.violations.iter().filter(|what| rules.iter().any(|rule| what.starts_with(rule)));
        violations.extend(broken.map(|what| format!("round {round}: {what}")));
    }
    write!(report, " rounds={rounds} acknowledged={acknowledged} redelivered={delivered} ").unwrap();
    write!(report, "violations={}", violations.len()).unwrap();
    println!("{report}");
    assert!(violations.is_empty(), "{report}\n{}", violations.join("\n"));
    acknowledged
}

/// The same, with so much load that it means something.
fn kill_rounds_under_load<T: Subject>(durability: &str, plan: &Plan) {
    load::<T>(durability, plan, &ALL);
}

fn load<T: Subject>(durability: &str, plan: &Plan, rules: &[&str]) {
    let acknowledged = kill_rounds::<T>(durability, plan, rules);
    assert!(
        acknowledged as u64 > LOAD / 2 * plan.rounds,
        "{acknowledged} pushes acknowledged: too little load"
    );
}

#[test]
fn what_sync_acknowledged_survives_kill_9() {
    kill_rounds_under_load::<Log>("sync", &LOG);
}

#[test]
fn what_group_acknowledged_survives_kill_9() {
    kill_rounds_under_load::<Log>("group", &LOG);
}

#[test]
fn what_none_acknowledged_survives_kill_9_on_the_log() {
    kill_rounds_under_load::<Log>("none", &LOG);
}

#[test]
fn a_kill_while_the_log_is_made_leaves_one_that_opens() {
    kill_rounds::<Log>("group", &YOUNG, &ALL);
}

#[cfg(feature = "redb")]
mod redb {
    use millpond_testkit::subjects::Redb;

    use super::{ALL, OTHER, WITHOUT_SYNC, YOUNG, kill_rounds, kill_rounds_under_load, load};

    #[test]
    fn what_sync_acknowledged_survives_kill_9() {
        kill_rounds_under_load::<Redb>("sync", &OTHER);
    }

    #[test]
    fn what_group_acknowledged_survives_kill_9() {
        kill_rounds_under_load::<Redb>("group", &OTHER);
    }

    #[test]
    fn what_none_promises_holds_after_kill_9() {
        load::<Redb>("none", &OTHER, &WITHOUT_SYNC);
    }

    #[test]
    fn a_kill_while_the_store_is_made_leaves_one_that_opens() {
        kill_rounds::<Redb>("group", &YOUNG, &ALL);
    }
}

#[cfg(feature = "sled")]
mod sled {
    use millpond_testkit::subjects::Sled;

    use super::{ALL, OTHER, WITHOUT_SYNC, YOUNG, kill_rounds, kill_rounds_under_load, load};

    #[test]
    fn what_sync_acknowledged_survives_kill_9() {
        kill_rounds_under_load::<Sled>("sync", &OTHER);
    }

    #[test]
    fn what_group_acknowledged_survives_kill_9() {
        kill_rounds_under_load::<Sled>("group", &OTHER);
    }

    #[test]
    fn what_none_promises_holds_after_kill_9() {
        load::<Sled>("none", &OTHER, &WITHOUT_SYNC);
    }

    #[test]
    fn a_kill_while_the_store_is_made_leaves_one_that_opens() {
        kill_rounds::<Sled>("group", &YOUNG, &ALL);
    }
}

#[cfg(feature = "rocksdb")]
mod rocksdb {
    use millpond_testkit::subjects::Rocks;

    use super::{ALL, OTHER, YOUNG, kill_rounds, kill_rounds_under_load};

    #[test]
    fn what_sync_acknowledged_survives_kill_9() {
        kill_rounds_under_load::<Rocks>("sync", &OTHER);
    }

    #[test]
    fn what_group_acknowledged_survives_kill_9() {
        kill_rounds_under_load::<Rocks>("group", &OTHER);
    }

    #[test]
    fn what_none_acknowledged_survives_kill_9() {
        kill_rounds_under_load::<Rocks>("none", &OTHER);
    }

    #[test]
    fn a_kill_while_the_store_is_made_leaves_one_that_opens() {
        kill_rounds::<Rocks>("group", &YOUNG, &ALL);
    }
}
