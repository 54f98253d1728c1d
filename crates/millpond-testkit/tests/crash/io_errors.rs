//! R8: every call of the disk fails once, and from then on, until a run of the same script meets no failure any more.
//! Each answer is right or a typed error, nothing is acknowledged after a failure that stopped the log, no file is
//! synced again after its sync failed, and the next open loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use millpond::{Builder, Durability, Failure, Queue};
use millpond_testkit::by_hand::ByHand;
use millpond_testkit::journal::Journal;
use millpond_testkit::life::TINY;
use millpond_testkit::oracle::{Drained, drain};
use millpond_testkit::payload::payload;
use millpond_testkit::random::Random;
use millpond_testkit::sim_disk::{Fault, Kind, Medium, SimDisk};
use rustix::io::Errno;

use crate::budget::{Run, budget};

/// How long one run of a script may take before it counts as hanging.
const HANGS: Duration = Duration::from_mins(1);

/// A call, and what it is answered with. A write may leave a half behind.
const FAULTS: [(Kind, Errno, bool); 22] = [
    (Kind::Lock, Errno::IO, false),
    (Kind::List, Errno::IO, false),
    (Kind::Create, Errno::NOSPC, false),
    (Kind::Create, Errno::MFILE, false),
    (Kind::Create, Errno::ACCESS, false),
    (Kind::Open, Errno::MFILE, false),
    (Kind::Open, Errno::IO, false),
    (Kind::Len, Errno::IO, false),
    (Kind::Write, Errno::IO, false),
    (Kind::Write, Errno::IO, true),
    (Kind::Write, Errno::NOSPC, true),
    (Kind::Write, Errno::DQUOT, false),
    (Kind::Write, Errno::FBIG, true),
    (Kind::Write, Errno::INTR, true),
    (Kind::Read, Errno::IO, false),
    (Kind::Sync, Errno::IO, false),
    (Kind::Sync, Errno::NOSPC, false),
    (Kind::Sync, Errno::INTR, false),
    (Kind::Rename, Errno::IO, false),
    (Kind::Unlink, Errno::IO, false),
    (Kind::SyncDir, Errno::IO, false),
    (Kind::Random, Errno::IO, false),
];

/// What one run did and was told.
#[derive(Default)]
struct Told {
    journal: Journal,
    nonces: u64,
    /// Nothing that returns later may be a success of a write.
    poisoned: bool,
    broken: Option<String>,
}

impl Told {
    fn nonce(&mut self) -> u64 {
        self.nonces += 1;
        self.journal.pushes.insert(self.nonces);
        self.nonces
    }

    /// Notes whether a write may still succeed.
    fn wrote(&mut self, queue: &Queue, succeeded: bool) {
        if succeeded && self.poisoned {
            self.broken.get_or_insert_with(|| "a write succeeded after the queue was poisoned".to_owned());
        }
        self.poisoned |= queue.stats().poisoned;
    }

    fn push(&mut self, queue: &Queue, count: u64) {
        let nonces: Vec<u64> = (0..count).map(|_| self.nonce()).collect();
        let payloads: Vec<Vec<u8>> = nonces.iter().copied().map(payload).collect();
        let pushed = queue.push_many(&payloads);
        self.wrote(queue, pushed.is_ok());
        if let Ok(ids) = pushed {
            self.journal.pushed.extend(ids.into_iter().zip(nonces));
        }
    }

    fn ack_first(&mut self, queue: &Queue) {
        // A read that fails is an error of that call.
        let Ok(Some(item)) = queue.reserve() else { return };
        self.journal.acks.insert(item.seq());
        let acked = item.ack();
        self.wrote(queue, acked.is_ok());
        if acked.is_ok() {
            self.journal.acked.insert(item.seq());
        }
    }
}

fn open(disk: &SimDisk, durability: Durability) -> Result<(ByHand, Queue), Failure> {
    let store = ByHand::open(disk, TINY)?;
    let queue = Builder::new(store.clone()).durability(durability).open();
    queue.map(|queue| (store, queue)).map_err(|error| panic!("a refusal that is no failure: {error}"))
}

/// A fixed script: pushes and acks over several segments, then a close.
fn script(disk: &SimDisk, seed: u64, told: &mut Told) {
    let mut random = Random::new(seed);
    let Ok((store, queue)) = open(disk, Durability::Group) else { return };
    for _ in 0..16 {
        match random.below(8) {
            0..4 => told.push(&queue, 1 + random.below(3)),
            4..6 => told.ack_first(&queue),
            6 => {
                let rotated = store.rotate();
                // The store is asked behind the queue's back: the queue finds out at its next write.
                told.wrote(&queue, false);
                drop(rotated);
            }
            _ => store.work(),
        }
    }
    if random.below(2) == 0 {
        let _ = queue.finish();
    }
    drop(queue);
}

/// Opens what is left, without faults, and judges it. Returns what it gave, and the disk behind the open.
fn judge(medium: Medium, told: &Told) -> Result<(Drained, Medium), String> {
    let disk = SimDisk::on(medium, 3);
    let (_store, queue) = open(&disk, Durability::Sync).map_err(|error| format!("reopen: {error}"))?;
    if let Some(damage) = queue.recovery().damage.first() {
        return Err(format!("damage: {damage:?}"));
    }
    let opened = disk.medium();
    let drained = drain(&queue).map_err(|error| format!("draining: {error}"))?;
    disk.kill();
    let violations = drained.judge(&told.journal).violations;
    if violations.is_empty() { Ok((drained, opened)) } else { Err(violations.join("; ")) }
}

/// One run with one fault; whether the fault struck.
fn inject(base: &Base, seed: u64, fault: Fault) -> Result<bool, String> {
    let disk = SimDisk::on(base.medium.clone(), seed);
    disk.plan(Some(fault));
    let mut told = Told { journal: base.journal.clone(), nonces: 1 << 32, ..Told::default() };
    script(&disk, seed, &mut told);
    let fired = disk.fired() > 0;
    let medium = disk.kill();
    if let Some(broken) = told.broken {
        return Err(broken);
    }
    if medium.syncs_after_failure() > 0 {
        return Err("something was synced again after its sync had failed".to_owned());
    }
    let mut random = Random::new(seed);
    let (shown, opened) =
        judge(medium.clone(), &told).map_err(|error| format!("after a restart: {error}"))?;
    // What a restarted process shows is on the disk by then, not only in a cache.
    let (left, _) = judge(opened.images().one(&mut random), &told)
        .map_err(|error| format!("after a power cut behind a restart: {error}"))?;
    if shown.delivered != left.delivered {
        return Err(format!("a power cut behind a restart changed {shown:?} to {left:?}"));
    }
    for _ in 0..2 {
        judge(medium.images().one(&mut random), &told)
            .map_err(|error| format!("after a power cut: {error}"))?;
    }
    if fired {
        go_on(medium, seed, told, &mut random)?;
    }
    Ok(fired)
}

/// Another process goes on where one ended that met a fault, and then the power goes. What the first one could not make
/// durable the second one's cache still shows, whatever its own syncs say.
fn go_on(medium: Medium, seed: u64, mut told: Told, random: &mut Random) -> Result<(), String> {
    told.poisoned = false;
    let disk = SimDisk::on(medium, seed ^ 1);
    script(&disk, seed ^ 1, &mut told);
    let medium = disk.kill();
    for _ in 0..2 {
        judge(medium.images().one(random), &told)
            .map_err(|error| format!("after a power cut behind another process: {error}"))?;
    }
    Ok(())
}

/// A queue that was used and killed, so that opening it has something to read.
struct Base {
    medium: Medium,
    journal: Journal,
}

fn base(seed: u64) -> Base {
    let disk = SimDisk::on(Medium::default(), seed);
    let mut told = Told::default();
    let (store, queue) = open(&disk, Durability::Group).unwrap();
    for _ in 0..3 {
        told.push(&queue, 3);
        told.ack_first(&queue);
        store.rotate().unwrap();
        store.work();
    }
    let medium = disk.kill();
    drop(queue);
    Base { medium, journal: told.journal }
}

/// Ends the process when nothing moves any more: a hang must not look like a slow machine for ever.
fn watch(progress: &Arc<AtomicU64>) {
    let progress = Arc::clone(progress);
    thread::spawn(move || {
        let mut last = u64::MAX;
        loop {
            let now = progress.load(Ordering::Relaxed);
            if now == last {
                println!("R8: injection {now} hangs");
                std::process::abort();
            }
            last = now;
            thread::sleep(HANGS);
        }
    });
}

#[test]
fn r08_every_call_may_fail() {
    let (run, mut random) = Run::begin("R8 failing calls");
    let progress = Arc::new(AtomicU64::new(0));
    watch(&progress);
    let wanted = budget(700, 3000, 20_000);
    let (mut injections, mut scripts, mut first) = (0, 0, true);
    while injections < wanted {
        let seed = if std::mem::take(&mut first) { run.seed } else { random.next_u64() };
        let base = base(seed);
        scripts += 1;
        for (kind, errno, half) in FAULTS {
            for for_ever in [false, true] {
                // On until the script meets no fault any more.
                for after in 0.. {
                    let fault = Fault { kind, after, errno: errno.raw_os_error(), for_ever, half };
                    progress.fetch_add(1, Ordering::Relaxed);
                    match inject(&base, seed, fault) {
                        Ok(true) => injections += 1,
                        Ok(false) => break,
                        Err(error) => panic!("MILLPOND_SEED={seed} {fault:?}: {error}"),
                    }
                }
            }
        }
    }
    run.end(&[("scripts", scripts), ("injections", injections)]);
}
