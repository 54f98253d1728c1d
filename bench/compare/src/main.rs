//! Pushes of 256 bytes beside the published crate `persistent-queue` 0.2.0, on the same stores in one run, and beside a
//! raw loop of redb that commits as many records per transaction, by one thread and by a bare cohort of threads that only
//! arrive and wait: `millpond-compare DIRECTORY SECONDS`. One round; one JSON line for each figure. `just compare` runs
//! rounds and judges.

mod cohort;
#[path = "../../rate.rs"]
mod rate;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

#[cfg(feature = "rocksdb")]
use millpond::store::RocksStore;
use millpond::store::{LogStore, MemStore, RedbStore, Store};
use millpond::{Builder, Durability};
use persistent_queue as rival;
use rate::rate;

const PAYLOAD: [u8; 256] = [7; 256];
const CAPACITY: u64 = 1 << 32;
const TABLE: redb::TableDefinition<u64, &[u8]> = redb::TableDefinition::new("entries");

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

/// A database of redb without a queue.
struct RawRedb {
    database: redb::Database,
    last_id: AtomicU64,
}

impl RawRedb {
    fn open(directory: &Path) -> Self {
        let database = redb::Database::create(directory.join("raw.redb")).expect("creates");
        Self { database, last_id: AtomicU64::new(0) }
    }

    /// Commits `batch` records in one durable transaction.
    fn commit(&self, batch: u32) {
        let first = self.last_id.fetch_add(batch.into(), Ordering::Relaxed) + 1;
        let transaction = self.database.begin_write().expect("begins");
        {
            let mut table = transaction.open_table(TABLE).expect("opens");
            for id in first..first + u64::from(batch) {
                table.insert(id, PAYLOAD.as_slice()).expect("inserts");
            }
        }
        transaction.commit().expect("commits");
    }

    /// Records per second of one thread that commits `batch` of them per transaction.
    fn rate(&self, batch: u32, seconds: f64) -> f64 {
        let started = Instant::now();
        while started.elapsed().as_secs_f64() < seconds {
            self.commit(batch);
        }
        self.last_id.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
    }
}

/// Writes and syncs in a file whose blocks are written already.
struct RawFile(File);

impl RawFile {
    const BYTES: u64 = 16 << 20;

    fn create(directory: &Path) -> Self {
        let file = File::create_new(directory.join("raw.dat")).expect("creates");
        file.write_all_at(&vec![0; Self::BYTES as usize], 0).expect("fills");
        file.sync_all().expect("syncs");
        Self(file)
    }

    /// Writes `batch` records behind those of commit `number - 1`, and syncs.
    fn commit(&self, number: u64, batch: u32) {
        let bytes = PAYLOAD.repeat(batch as usize);
        let places = Self::BYTES / bytes.len() as u64;
        self.0.write_all_at(&bytes, number % places * bytes.len() as u64).expect("writes");
        self.0.sync_data().expect("syncs");
    }
}

/// The middle of the figures of both, taken in turns after one turn that does not count: memory that nobody has touched
/// costs whoever comes first.
fn in_turns(seconds: f64, ours: impl Fn(f64) -> f64, theirs: impl Fn(f64) -> f64) -> (f64, f64) {
    const TURNS: usize = 5;
    let turn = seconds / TURNS as f64;
    let (mut own, mut other): (Vec<f64>, Vec<f64>) =
        (0..=TURNS).map(|_| (ours(turn), theirs(turn))).skip(1).unzip();
    own.sort_by(f64::total_cmp);
    other.sort_by(f64::total_cmp);
    (own[TURNS / 2], other[TURNS / 2])
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
        let (own, other) = in_turns(
            seconds,
            |seconds| ours(MemStore::new(), Durability::None, producers, seconds),
            |seconds| theirs(rival::MemStore::new(), rival::Durability::None, producers, seconds),
        );
        say("mem", "ours", producers, own);
        say("mem", "theirs", producers, other);
    }
    for producers in [1, 16, 64] {
        let home = fresh();
        let store = RedbStore::open(home.path()).expect("opens");
        say("redb", "ours", producers, ours(store, Durability::Group, producers, seconds));
        let home = fresh();
        let store = rival::RedbStore::open(home.path().join("rival.redb")).expect("opens");
        say("redb", "theirs", producers, theirs(store, rival::Durability::Group, producers, seconds));
        let batch = u32::try_from(producers).expect("few");
        let home = fresh();
        say("redb", "raw", producers, RawRedb::open(home.path()).rate(batch, seconds));
        let home = fresh();
        let redb = RawRedb::open(home.path());
        say("redb", "bare", producers, cohort::rate(batch, seconds, || redb.commit(batch)));
        let home = fresh();
        let (file, commits) = (RawFile::create(home.path()), AtomicU64::new(0));
        let commit = || file.commit(commits.fetch_add(1, Ordering::Relaxed), batch);
        say("disk", "bare", producers, cohort::rate(batch, seconds, commit));
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
