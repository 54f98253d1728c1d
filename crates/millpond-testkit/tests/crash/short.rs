//! R2: every sequence of up to four operations on a queue, cut at every call.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use millpond::{Builder, Durability, Queue, Reserved};
use millpond_testkit::by_hand::ByHand;
use millpond_testkit::journal::Journal;
use millpond_testkit::ledger::Crash;
use millpond_testkit::life::TINY;
use millpond_testkit::oracle::{Drained, drain};
use millpond_testkit::payload::payload;
use millpond_testkit::random::Random;
use millpond_testkit::sim_disk::{Medium, SimDisk};
use parking_lot::Mutex;

use crate::budget::{Run, budget};

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    PushMany,
    Reserve,
    Ack,
    Nack,
    AckMany,
    Rotate,
    Close,
    /// The process dies and another one opens the queue.
    Reopen,
}

const STEPS: [Step; 9] = [
    Step::Push,
    Step::PushMany,
    Step::Reserve,
    Step::Ack,
    Step::Nack,
    Step::AckMany,
    Step::Rotate,
    Step::Close,
    Step::Reopen,
];

/// What a process did, for each way it may end.
#[derive(Clone, Default)]
struct Journals {
    kill: Journal,
    cut: Journal,
    /// What is returned is not durable before the next sync that is waited for.
    lazy: bool,
}

impl Journals {
    fn both(&mut self, act: impl Fn(&mut Journal)) {
        act(&mut self.kill);
        act(&mut self.cut);
    }

    fn pushed(&mut self, id: u64, nonce: u64) {
        self.both(|journal| journal.returned = journal.returned.max(Some(id)));
        self.kill.pushed.insert(id, nonce);
        if !self.lazy {
            self.cut.pushed.insert(id, nonce);
        }
    }

    fn acked(&mut self, id: u64) {
        self.kill.acked.insert(id);
        if !self.lazy {
            self.cut.acked.insert(id);
        }
    }

    /// Everything that returned is durable.
    fn settle(&mut self) {
        self.cut = self.kill.clone();
    }
}

/// A queue that is open, and what its consumer holds.
struct Process {
    disk: SimDisk,
    store: ByHand,
    queue: Queue,
    held: Vec<Reserved>,
}

impl Process {
    fn open(medium: Medium, durability: Durability) -> Self {
        Self::open_on(SimDisk::on(medium, 1), durability)
    }

    fn open_on(disk: SimDisk, durability: Durability) -> Self {
        let store = ByHand::open(&disk, TINY).unwrap();
        let queue = Builder::new(store.clone()).durability(durability).open().unwrap();
        Self { disk, store, queue, held: Vec::new() }
    }

    fn kill(self) -> Medium {
        self.disk.unobserve();
        self.disk.kill()
    }

    /// One operation. What cannot be done (an ack of nothing) is nothing.
    fn take(&mut self, step: Step, nonces: &mut u64, journals: &Mutex<Journals>) {
        let mut nonce = || {
            *nonces += 1;
            journals.lock().both(|journal| journal.pushes.extend([*nonces]));
            *nonces
        };
        let ack = |ids: &[u64]| journals.lock().both(|journal| journal.acks.extend(ids));
        match step {
            Step::Push => {
                let nonce = nonce();
                if let Ok(id) = self.queue.push(payload(nonce)) {
                    journals.lock().pushed(id, nonce);
                }
            }
            Step::PushMany => {
                let nonces = [nonce(), nonce()];
                if let Ok(ids) = self.queue.push_many(&nonces.map(payload)) {
                    let mut journals = journals.lock();
                    ids.into_iter().zip(nonces).for_each(|(id, nonce)| journals.pushed(id, nonce));
                }
            }
            Step::Reserve => self.held.extend(self.queue.reserve().ok().flatten()),
            Step::Ack if !self.held.is_empty() => {
                let item = self.held.remove(0);
                ack(&[item.seq()]);
                if item.ack().is_ok() {
                    journals.lock().acked(item.seq());
                }
            }
            Step::Nack if !self.held.is_empty() => drop(self.held.remove(0).nack()),
            Step::AckMany => {
                let ids: Vec<u64> =
                    self.queue.iter().map_while(Result::ok).map(|entry| entry.id).take(2).collect();
                ack(&ids);
                if self.queue.ack_many(&ids).is_ok() {
                    for id in ids {
                        journals.lock().acked(id);
                    }
                }
            }
            Step::Rotate => {
                if !self.queue.is_closed() {
                    self.store.rotate().unwrap();
                    journals.lock().settle();
                }
            }
            Step::Close => {
                if self.queue.finish().is_ok() {
                    journals.lock().settle();
                }
            }
            Step::Ack | Step::Nack | Step::Reopen => {}
        }
        if !self.queue.is_closed() {
            self.store.work();
        }
    }
}

#[derive(Default)]
struct Counts {
    seen: HashMap<u64, Arc<Drained>>,
    hashes: HashSet<u64>,
    moments: u64,
    judged: u64,
}

impl Counts {
    fn look(&mut self, medium: Medium) -> Arc<Drained> {
        self.judged += 1;
        let hash = medium.hash();
        self.hashes.insert(hash);
        let open = || {
            let process = Process::open(medium, Durability::Sync);
            let report = process.queue.recovery();
            assert!(report.damage.is_empty(), "damage without a fault of the disk: {report:?}");
            let drained = Arc::new(drain(&process.queue).unwrap());
            process.kill();
            drained
        };
        Arc::clone(self.seen.entry(hash).or_insert_with(open))
    }

    /// Every image of one moment.
    fn judge(&mut self, medium: &Medium, journals: &Journals, random: &mut Random) -> Result<(), String> {
        self.moments += 1;
        let mut result = Ok(());
        let mut check = |image: Medium, journal: &Journal, crash: Crash| {
            let verdict = self.look(image).judge(journal);
            if result.is_ok() && !verdict.violations.is_empty() {
                result = Err(format!("{crash:?}: {}", verdict.violations.join("; ")));
            }
        };
        check(medium.clone(), &journals.kill, Crash::Kill);
        medium.images().each(random, |image| check(image, &journals.cut, Crash::PowerCut));
        result
    }
}

struct Sequence<'a>(&'a [Step], Durability);

impl fmt::Display for Sequence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} under {:?}", self.0, self.1)
    }
}

/// Runs a sequence; the moments of its last operation are judged, those before were when they were last.
fn run(steps: &[Step], durability: Durability, counts: &Arc<Mutex<Counts>>, seed: u64) -> Result<(), String> {
    let journals = Journals { lazy: durability == Durability::None, ..Journals::default() };
    let journals = Arc::new(Mutex::new(journals));
    let mut process = Process::open(Medium::default(), durability);
    let (mut nonces, failure) = (0, Arc::new(Mutex::new(Ok(()))));
    for (at, step) in steps.iter().enumerate() {
        let is_last = at + 1 == steps.len();
        let reopens = matches!(step, Step::Reopen);
        let disk = if reopens { SimDisk::on(process.disk.kill(), 1) } else { process.disk.clone() };
        if is_last {
            let (journals, counts) = (Arc::clone(&journals), Arc::clone(counts));
            let (failure, mut random) = (Arc::clone(&failure), Random::new(seed));
            disk.observe(move |medium, call| {
                let judged = counts.lock().judge(medium, &journals.lock(), &mut random);
                let mut failure = failure.lock();
                if failure.is_ok() {
                    *failure = judged.map_err(|error| format!("after {call:?}: {error}"));
                }
            });
        }
        if reopens {
            process = Process::open_on(disk, durability);
            // Recovery syncs what it trusts.
            journals.lock().settle();
        }
        process.take(*step, &mut nonces, &journals);
        if is_last {
            process.disk.unobserve();
            let medium = process.disk.medium();
            counts.lock().judge(&medium, &journals.lock(), &mut Random::new(seed))?;
        }
    }
    process.kill();
    failure.lock().clone()
}

/// Calls `act` with every sequence of this length.
fn sequences(length: u32, mut act: impl FnMut(&[Step])) {
    for number in 0..9_usize.pow(length) {
        let digits = (0..length).map(|digit| STEPS[number / 9_usize.pow(digit) % 9]);
        act(&digits.collect::<Vec<_>>());
    }
}

#[test]
fn r02_every_short_sequence_survives_every_crash() {
    let (report, _) = Run::begin("R2 short sequences");
    let counts = Arc::new(Mutex::new(Counts::default()));
    let mut tried = 0;
    for durability in [Durability::Group, Durability::None] {
        for length in 1..=u32::try_from(budget(2, 3, 4)).unwrap() {
            sequences(length, |steps| {
                tried += 1;
                if let Err(error) = run(steps, durability, &counts, report.seed) {
                    panic!("{} MILLPOND_SEED={}: {error}", Sequence(steps, durability), report.seed);
                }
            });
            counts.lock().seen.clear();
        }
    }
    let counts = counts.lock();
    let images = counts.hashes.len() as u64;
    report.end(&[
        ("sequences", tried),
        ("moments", counts.moments),
        ("images", images),
        ("judgements", counts.judged),
    ]);
}
