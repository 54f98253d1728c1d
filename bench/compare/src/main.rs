//! Durable pushes of 256 bytes beside the published crate `persistent-queue` 0.2.0, on the same stores in one run, and
//! beside a raw loop of redb that commits as many records per transaction. `millpond-compare [DIRECTORY] [SECONDS]`

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use millpond::store::{LogStore, MemStore, RedbStore};
use millpond::{Builder, Durability, Queue};
use persistent_queue as rival;

const PAYLOAD: [u8; 256] = [7; 256];
const CAPACITY: u64 = 1 << 32;
const TABLE: redb::TableDefinition<u64, &[u8]> = redb::TableDefinition::new("entries");

/// Pushes per second of `producers` threads that each call `push` for about `seconds`.
fn rate(producers: u64, seconds: f64, push: impl Fn() + Sync) -> f64 {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                let mut own = 0;
                while !stop.load(Ordering::Relaxed) {
                    push();
                    own += 1;
                }
                done.fetch_add(own, Ordering::Relaxed);
            });
        }
        thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
    });
    done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

fn ours(queue: &Queue, producers: u64, seconds: f64) -> f64 {
    rate(producers, seconds, || assert!(queue.push(PAYLOAD).is_ok()))
}

fn theirs<S: rival::Store + 'static>(
    store: S,
    policy: rival::Durability,
    producers: u64,
    seconds: f64,
) -> f64 {
    let capacity = usize::try_from(CAPACITY).expect("64 bits");
    let (producer, _consumer) =
        rival::Builder::new(store).capacity(capacity).durability(policy).open().expect("opens");
    rate(producers, seconds, || producer.push(&PAYLOAD).expect("a push"))
}

/// Records per second of a loop that commits `batch` of them per durable transaction.
fn raw_redb(directory: &Path, batch: u64, seconds: f64) -> f64 {
    let database = redb::Database::create(directory.join("raw.redb")).expect("creates");
    let started = Instant::now();
    let mut id = 0;
    while started.elapsed().as_secs_f64() < seconds {
        let transaction = database.begin_write().expect("begins");
        {
            let mut table = transaction.open_table(TABLE).expect("opens");
            for _ in 0..batch {
                id += 1;
                table.insert(id, PAYLOAD.as_slice()).expect("inserts");
            }
        }
        transaction.commit().expect("commits");
    }
    id as f64 / started.elapsed().as_secs_f64()
}

fn line(what: &str, ours: f64, rival: f64, raw: Option<f64>) {
    let raw = raw.map_or(String::new(), |raw| format!("   raw {raw:>10.0}   of raw {:.2}", ours / raw));
    println!("{what:<28} ours {ours:>10.0}/s   rival {rival:>10.0}/s   ratio {:>5.2}{raw}", ours / rival);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(2.0);
    let fresh = || tempfile::tempdir_in(&directory).expect("a directory");
    let open = |builder: Builder, durability| {
        builder.capacity(CAPACITY).durability(durability).open().expect("opens")
    };

    for producers in [1, 4, 16] {
        let queue = open(Builder::new(MemStore::new()), Durability::None);
        let own = ours(&queue, producers, seconds / 4.0);
        drop(queue);
        let other = theirs(rival::MemStore::new(), rival::Durability::None, producers, seconds / 4.0);
        line(&format!("mem None, {producers} producers"), own, other, None);
    }
    let mut best = 0.0_f64;
    for producers in [1, 16, 64] {
        let home = fresh();
        let queue = open(Builder::new(RedbStore::open(home.path()).expect("opens")), Durability::Group);
        let own = ours(&queue, producers, seconds);
        drop(queue);
        let home = fresh();
        let store = rival::RedbStore::open(home.path().join("rival.redb")).expect("opens");
        let other = theirs(store, rival::Durability::Group, producers, seconds);
        best = best.max(other);
        let raw = raw_redb(fresh().path(), producers, seconds);
        line(&format!("redb Group, {producers} producers"), own, other, Some(raw));
    }
    for producers in [1, 16, 64] {
        let home = fresh();
        let queue = open(Builder::new(LogStore::open(home.path()).expect("opens")), Durability::Group);
        let own = ours(&queue, producers, seconds);
        line(&format!("log Group, {producers} (rival: best)"), own, best, None);
    }
}
