//! Cases by number, on every store.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use millpond::{Builder, Durability, Queue};
use millpond_testkit::subjects::Subject;
use millpond_testkit::{tests_on_all_stores, tests_on_disk_stores};

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn open<T: Subject>(directory: &Path, durability: Durability) -> Queue {
    Builder::new(T::open(directory).unwrap()).durability(durability).open().unwrap()
}

/// Does these words in a process of its own; returns the ids it pushed.
fn in_another_process<T: Subject>(directory: &Path, durability: &str, words: &[&str]) -> Vec<u64> {
    let output = Command::new(env!("CARGO_BIN_EXE_script-worker"))
        .args([T::NAME, directory.to_str().unwrap(), durability])
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains("failed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said.lines().filter_map(|line| line.strip_prefix("pushed ")).map(|id| id.parse().unwrap()).collect()
}

/// O-14: a queue that ran empty goes on counting, after a close and after a kill, whatever was acked first.
fn o_14_ids_go_on_after_the_queue_ran_empty<T: Subject>() {
    for (durability, policy) in
        [("sync", Durability::Sync), ("group", Durability::Group), ("none", Durability::None)]
    {
        for kill in [false, true] {
            for acks in [&["ack:1", "ack:2", "ack:3"][..], &["ack:3"], &["ack:3", "ack:2", "ack:1"]] {
                let directory = scratch();
                let mut words = vec!["push", "push", "push"];
                words.extend(acks);
                if kill {
                    words.push("kill");
                }
                let first = in_another_process::<T>(directory.path(), durability, &words);
                assert_eq!(first, [1, 2, 3]);
                let queue = open::<T>(directory.path(), policy);
                let before = queue.len();
                let next = queue.push(b"d").unwrap();
                assert!(next > 3, "{} {durability} kill={kill} {acks:?}: {next}", T::NAME);
                let is_left = queue.get(3).unwrap().is_some();
                assert_eq!(queue.ack(3).unwrap(), is_left, "an old id removes only its own entry");
                assert_eq!(queue.len(), before + 1 - u64::from(is_left));
                assert!(queue.get(next).unwrap().is_some());
            }
        }
    }
}

/// O-14: fifty opens of an empty queue neither count nor forget.
fn o_14_fifty_empty_opens_keep_the_number<T: Subject>() {
    let directory = scratch();
    let queue = open::<T>(directory.path(), Durability::Sync);
    let ids = queue.push_many(&[b"a", b"b", b"c"]).unwrap();
    queue.ack_many(&ids).unwrap();
    drop(queue);
    for _ in 0..50 {
        drop(open::<T>(directory.path(), Durability::Sync));
    }
    let queue = open::<T>(directory.path(), Durability::Sync);
    assert_eq!(queue.push(b"d").unwrap(), 4);
    assert!(!queue.ack(3).unwrap());
    assert_eq!(queue.len(), 1);
}

/// O-18: an entry that is given back comes again in its own place, whatever the order of the nacks; one that is held
/// blocks no other; giving back writes nothing.
fn o_18_a_nack_puts_an_entry_back_in_its_own_place<T: Subject>() {
    let directory = scratch();
    let queue = open::<T>(directory.path(), Durability::Sync);
    queue.push_many(&[b"a", b"b", b"c"]).unwrap();
    let a = queue.reserve().unwrap().unwrap();
    assert_eq!((a.seq(), a.deliveries()), (1, 1));
    a.nack().unwrap();
    let a = queue.reserve().unwrap().unwrap();
    assert_eq!((a.seq(), a.deliveries()), (1, 2));
    drop(a);
    for b_first in [true, false] {
        let (a, b) = (queue.reserve().unwrap().unwrap(), queue.reserve().unwrap().unwrap());
        assert_eq!((a.seq(), b.seq()), (1, 2));
        if b_first {
            b.nack().unwrap();
            a.nack().unwrap();
        } else {
            a.nack().unwrap();
            b.nack().unwrap();
        }
    }
    let commits = queue.stats().commits;
    for _ in 0..10_000 {
        let item = queue.reserve().unwrap().unwrap();
        assert_eq!(item.seq(), 1);
        item.nack().unwrap();
    }
    assert_eq!(queue.stats().commits, commits, "giving back writes nothing");
    let held = queue.reserve().unwrap().unwrap();
    for expected in [2, 3] {
        let item = queue.reserve().unwrap().unwrap();
        assert_eq!(item.seq(), expected);
        item.ack().unwrap();
    }
    assert_eq!((queue.len(), held.seq()), (1, 1));
    if T::IS_ON_DISK {
        queue.finish().unwrap();
        drop((held, queue));
        assert_eq!(open::<T>(directory.path(), Durability::Sync).reserve().unwrap().unwrap().seq(), 1);
    }
}

/// Figures of one part of a run.
struct Part {
    reserve_median: Duration,
    reserve_p99: Duration,
    empty_p99: Duration,
    disk_mib: f64,
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// O-24: a short queue with a long life. `MILLPOND_O24` sets how many entries go through it; the case is a million.
fn o_24_a_long_life_costs_no_more_at_its_end<T: Subject>() {
    let rounds: usize = std::env::var("MILLPOND_O24").ok().and_then(|n| n.parse().ok()).unwrap_or(4_000);
    let directory = scratch();
    let queue = open::<T>(directory.path(), Durability::None);
    let mut parts = Vec::new();
    let started = Instant::now();
    for _ in 0..10 {
        let (mut reserve, mut empty) = (Vec::new(), Vec::new());
        for _ in 0..rounds / 10 {
            queue.push([7; 200]).unwrap();
            let begun = Instant::now();
            let item = queue.reserve_timeout(Duration::from_mins(1)).unwrap().unwrap();
            reserve.push(begun.elapsed());
            item.ack().unwrap();
            let begun = Instant::now();
            assert!(queue.reserve().unwrap().is_none());
            empty.push(begun.elapsed());
        }
        reserve.sort_unstable();
        empty.sort_unstable();
        parts.push(Part {
            reserve_median: at(&reserve, 50),
            reserve_p99: at(&reserve, 99),
            empty_p99: at(&empty, 99),
            disk_mib: mib(queue.stats().store.disk_bytes),
        });
    }
    let lasted = started.elapsed();
    drop(queue);
    let begun = Instant::now();
    let queue = open::<T>(directory.path(), Durability::None);
    let opened = begun.elapsed();
    queue.push(b"x").unwrap();
    let begun = Instant::now();
    drop(queue.reserve().unwrap().unwrap());
    let first_reserve = begun.elapsed();
    let (first, last) = (&parts[0], &parts[9]);
    let most = parts.iter().map(|part| part.disk_mib).fold(0.0, f64::max);
    let empty = parts.iter().map(|part| part.empty_p99).max().unwrap();
    println!(
        "O-24 {}: rounds={rounds} in {lasted:?}; reserve median first tenth {:?}, last tenth {:?} (p99 {:?}); \
         empty p99 {empty:?}; disk most {most:.1} MiB, end {:.1} MiB; open {opened:?}, first reserve {first_reserve:?}",
        T::NAME,
        first.reserve_median,
        last.reserve_median,
        last.reserve_p99,
        last.disk_mib,
    );
    // Below some microseconds the neighbours on the machine decide.
    let allowed = 2 * first.reserve_median.max(Duration::from_micros(20));
    assert!(last.reserve_median <= allowed, "reserve slows down");
    assert!(empty <= Duration::from_millis(1), "finding out that nothing is there takes too long");
    assert!(most <= 64.0, "the files grow");
    // Without optimisation, on a busy machine, the figure says little.
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 5000 } else { 500 });
    // sled cannot hold it: its figure is in docs/durability.md.
    assert!(T::NAME == "sled" || opened + first_reserve <= limit, "opening takes too long");
}

fn mib(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes >> 10).unwrap()) / 1024.0
}

mod on_all {
    use super::{o_18_a_nack_puts_an_entry_back_in_its_own_place, tests_on_all_stores};
    tests_on_all_stores! { o_18_a_nack_puts_an_entry_back_in_its_own_place }
}

mod on_disk {
    use super::{
        o_14_fifty_empty_opens_keep_the_number, o_14_ids_go_on_after_the_queue_ran_empty,
        o_24_a_long_life_costs_no_more_at_its_end, tests_on_disk_stores,
    };
    tests_on_disk_stores! {
        o_14_ids_go_on_after_the_queue_ran_empty,
        o_14_fifty_empty_opens_keep_the_number,
        o_24_a_long_life_costs_no_more_at_its_end,
    }
}
