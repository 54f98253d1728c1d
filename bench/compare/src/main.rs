//! Pushes of 256 bytes beside the published crate `persistent-queue` 0.2.0, on the same stores in one run, and beside a
//! raw loop of redb that commits as many records per transaction: `millpond-compare DIRECTORY SECONDS`. One round; one
//! JSON line for each figure. `just compare` runs rounds and judges.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "rocksdb")]
use millpond::store::RocksStore;
use millpond::store::{LogStore, MemStore, RedbStore, Store};
use millpond::{Builder, Durability};
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

fn ours(store: impl Store + 'static, policy: Durability, producers: u64, seconds: f64) -> f64 {
    let queue = Builder::new(store).capacity(CAPACITY).durability(policy).open().expect("opens");
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

fn say(store: &str, who: &str, producers: u64, per_second: f64) {
    println!(
        "{{\"store\":\"{store}\",\"who\":\"{who}\",\"producers\":{producers},\"perSecond\":{per_second:.1}}}"
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, seconds] = arguments.as_slice() else { panic!("DIRECTORY SECONDS") };
    let seconds: f64 = seconds.parse().expect("seconds");
    let fresh = || tempfile::tempdir_in(directory).expect("a directory");

    for producers in [1, 4, 16] {
        let seconds = seconds / 4.0;
        say("mem", "ours", producers, ours(MemStore::new(), Durability::None, producers, seconds));
        let store = rival::MemStore::new();
        say("mem", "theirs", producers, theirs(store, rival::Durability::None, producers, seconds));
    }
    for producers in [1, 16, 64] {
        let home = fresh();
        let store = RedbStore::open(home.path()).expect("opens");
        say("redb", "ours", producers, ours(store, Durability::Group, producers, seconds));
        let home = fresh();
        let store = rival::RedbStore::open(home.path().join("rival.redb")).expect("opens");
        say("redb", "theirs", producers, theirs(store, rival::Durability::Group, producers, seconds));
        say("redb", "raw", producers, raw_redb(fresh().path(), producers, seconds));
        let home = fresh();
        let store = LogStore::open(home.path()).expect("opens");
        say("log", "ours", producers, ours(store, Durability::Group, producers, seconds));
        #[cfg(feature = "rocksdb")]
        {
            let home = fresh();
            let store = RocksStore::open(home.path()).expect("opens");
            say("rocksdb", "ours", producers, ours(store, Durability::Group, producers, seconds));
            let home = fresh();
            let store = rival::RocksStore::open(home.path().join("rival")).expect("opens");
            say("rocksdb", "theirs", producers, theirs(store, rival::Durability::Group, producers, seconds));
        }
    }
}
