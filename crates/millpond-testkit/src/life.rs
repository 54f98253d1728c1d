//! Random lives of a log on a simulated disk: commits of every kind, changes of segment, a full disk, closes, kills and
//! power cuts, with a ledger of what each of them promised.

use std::sync::Arc;

use millpond::key;
use millpond::store::{FailureKind, LogOptions, LogStore, Store};
use millpond::testing;
use parking_lot::Mutex;

use crate::ledger::{Change, Crash, Ledger, Seen, ops, read, value};
use crate::random::{Dice, Random};
use crate::sim_disk::{Call, Medium, SimDisk};

/// The smallest segments, so that changes of segment are common.
pub const TINY: LogOptions =
    LogOptions { segment_bytes: 64 * 1024, strict: false, verify: false, eager: None };

type Observer = Arc<Mutex<dyn FnMut(&Medium, &Call, &Ledger) + Send>>;

/// A log with its ledger.
pub struct Life {
    /// The disk as this process has it.
    pub disk: SimDisk,
    /// The log.
    pub store: LogStore,
    ledger: Arc<Mutex<Ledger>>,
    observer: Observer,
    next_id: u64,
    next_version: u32,
    seed: u64,
}

/// Where a life begins.
#[derive(Clone)]
pub struct Start {
    /// The disk as the process before left it.
    pub medium: Medium,
    /// What that process was promised.
    pub ledger: Ledger,
    /// How it ended.
    pub crash: Crash,
    /// Ids up to this one were used.
    pub first: u64,
}

impl Default for Start {
    fn default() -> Self {
        Self { medium: Medium::default(), ledger: Ledger::default(), crash: Crash::Kill, first: 0 }
    }
}

/// Opens a medium as a new process would and reads everything.
///
/// # Errors
/// What failed, also when opening changed anything on the disk.
pub fn look(medium: Medium) -> Result<Seen, String> {
    let disk = SimDisk::on(medium, 1);
    let store = open(&disk)?;
    if disk.changes() > 0 {
        return Err("opening changed the disk".to_owned());
    }
    read(&store)
}

fn open(disk: &SimDisk) -> Result<LogStore, String> {
    testing::open_by_hand(Arc::new(disk.clone()), TINY).map_err(|error| format!("open failed: {error}"))
}

impl Life {
    /// A new log. `observer` is called with every call of this and later processes that changes something or makes
    /// something durable, and with what is allowed then.
    ///
    /// # Errors
    /// What failed.
    pub fn begin(
        seed: u64,
        observer: impl FnMut(&Medium, &Call, &Ledger) + Send + 'static,
    ) -> Result<Self, String> {
        Self::resume(Start::default(), seed, observer)
    }

    /// Goes on where a life ended.
    ///
    /// # Errors
    /// What failed, or is not allowed.
    pub fn resume(
        start: Start,
        seed: u64,
        observer: impl FnMut(&Medium, &Call, &Ledger) + Send + 'static,
    ) -> Result<Self, String> {
        let Start { medium, ledger, crash, first } = start;
        let observer: Observer = Arc::new(Mutex::new(observer));
        let ledger = Arc::new(Mutex::new(ledger));
        let (disk, store) = open_next(medium, seed, crash, &ledger, &observer)?;
        Ok(Self { disk, store, ledger, observer, next_id: first, next_version: 1 + first32(first), seed })
    }

    /// One random step.
    ///
    /// # Errors
    /// What broke the contract.
    pub fn step(&mut self, dice: &mut impl Dice) -> Result<(), String> {
        match dice.below(100) {
            0..50 => self.random_commit(dice, true),
            50..66 => self.random_commit(dice, false),
            66..69 => self.drain(),
            69..74 => self.commit(&[], true, false),
            74..78 => testing::rotate(&self.store).map_err(|error| error.to_string()),
            78..90 => {
                for _ in 0..=dice.below(4) {
                    testing::work(&self.store);
                }
                Ok(())
            }
            90..93 => {
                self.disk.set_room(Some(dice.below(6000)));
                let result = self.random_commit(dice, true);
                self.disk.set_room(None);
                result
            }
            93..95 => self.close(),
            95..97 => self.crash(Crash::Kill, dice),
            97..99 => self.crash(Crash::PowerCut, dice),
            _ => self.check(),
        }
    }

    /// Holds what readers see against what was done.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.ledger.lock().judge_now(&read(&self.store)?)
    }

    fn random_commit(&mut self, dice: &mut impl Dice, durable: bool) -> Result<(), String> {
        let mut changes = Vec::new();
        for _ in 0..=dice.below(3) {
            changes.push(self.random_change(dice));
        }
        self.commit(&changes, durable, dice.below(2) == 0)
    }

    fn random_change(&mut self, dice: &mut impl Dice) -> Change {
        self.next_version += 1;
        let version = Some(self.next_version);
        match dice.below(40) {
            0 => (key::META_KEY.to_vec(), version),
            1 => (
                vec![key::DEDUPE, 1 + u8::try_from(dice.below(3)).unwrap_or(0)],
                version.filter(|_| dice.below(3) > 0),
            ),
            // An entry is stored again.
            2 => (key::entry(self.old_id(dice)).to_vec(), version),
            3..21 => (key::entry(self.old_id(dice)).to_vec(), None),
            _ => {
                self.next_id += 1;
                (key::entry(self.next_id).to_vec(), version)
            }
        }
    }

    fn old_id(&self, dice: &mut impl Dice) -> u64 {
        self.next_id.saturating_sub(dice.below(30)).max(1)
    }

    /// Removes all entries but one.
    fn drain(&mut self) -> Result<(), String> {
        let is_entry = |key: &&Vec<u8>| key.first() == Some(&key::ENTRY);
        let keys: Vec<Vec<u8>> = self.ledger.lock().keys().filter(is_entry).skip(1).cloned().collect();
        let changes: Vec<Change> = keys.into_iter().map(|key| (key, None)).collect();
        self.commit(&changes, true, false)
    }

    /// One commit, on this thread's short way if `inline` and it is not durable.
    ///
    /// # Errors
    /// What broke the contract; a full disk does not.
    pub fn commit(&mut self, changes: &[Change], durable: bool, inline: bool) -> Result<(), String> {
        let bytes = |(key, version): &Change| version.map_or_else(Vec::new, |version| value(key, version));
        let values: Vec<Vec<u8>> = changes.iter().map(bytes).collect();
        let ops = ops(changes, &values);
        self.ledger.lock().called(changes);
        let done = match if inline && !durable { self.store.try_commit(&ops) } else { Ok(false) } {
            Ok(false) => self.store.commit(&ops, durable),
            other => other.map(|_| ()),
        };
        let mut ledger = self.ledger.lock();
        match done {
            Ok(()) => ledger.done(changes, durable),
            Err(error) if self.store.classify(&error) == FailureKind::NoSpace => ledger.failed(),
            Err(error) => return Err(format!("commit failed: {error}")),
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        self.store.close().map_err(|error| format!("close failed: {error}"))?;
        self.ledger.lock().done(&[], true);
        let medium = self.disk.kill();
        self.reopen(medium, Crash::Kill)
    }

    fn crash(&mut self, crash: Crash, dice: &mut impl Dice) -> Result<(), String> {
        let medium = self.disk.kill();
        let medium = match crash {
            Crash::Kill => medium,
            Crash::PowerCut => medium.images().one(&mut Random::new(dice.below(1 << 32))),
        };
        self.reopen(medium, crash)
    }

    fn reopen(&mut self, medium: Medium, crash: Crash) -> Result<(), String> {
        self.seed += 1;
        (self.disk, self.store) = open_next(medium, self.seed, crash, &self.ledger, &self.observer)?;
        Ok(())
    }
}

/// Opens what the process before left, holds it against the ledger, and lets the ledger go on from there.
fn open_next(
    medium: Medium,
    seed: u64,
    crash: Crash,
    ledger: &Arc<Mutex<Ledger>>,
    observer: &Observer,
) -> Result<(SimDisk, LogStore), String> {
    if crash == Crash::PowerCut {
        ledger.lock().cut_off();
    }
    let disk = SimDisk::on(medium, seed);
    let (watching, known) = (Arc::clone(observer), Arc::clone(ledger));
    disk.observe(move |medium, call| watching.lock()(medium, call, &known.lock()));
    let store = open(&disk)?;
    let found = read(&store)?;
    let mut ledger = ledger.lock();
    ledger.judge(&found, crash)?;
    ledger.settle_on(&found);
    Ok((disk, store))
}

/// Versions of a life that goes on must differ from those before.
fn first32(first: u64) -> u32 {
    u32::try_from(first.saturating_mul(64)).unwrap_or(0)
}
