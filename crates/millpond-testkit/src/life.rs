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
pub const TINY: LogOptions = LogOptions { segment_bytes: 64 * 1024, strict: false };

type Observer = Arc<Mutex<dyn FnMut(&Medium, &Call, &Ledger) + Send>>;

/// A log with its ledger.
pub struct Life {
    /// The disk as this process has it.
    pub disk: SimDisk,
    /// The log.
    pub store: LogStore,
    ledger: Arc<Mutex<Ledger>>,
    observer: Option<Observer>,
    next_id: u64,
    next_version: u32,
    seed: u64,
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
    /// Opens a log on this medium. What it holds is what it must go on to hold.
    ///
    /// # Errors
    /// What failed.
    pub fn begin(medium: Medium, seed: u64, first_id: u64) -> Result<Self, String> {
        let disk = SimDisk::on(medium, seed);
        let store = open(&disk)?;
        let ledger = Arc::new(Mutex::new(Ledger::of(&read(&store)?)));
        Ok(Self { disk, store, ledger, observer: None, next_id: first_id, next_version: 1, seed })
    }

    /// Calls `observer` with every call of this and later processes of this life, and what is allowed then.
    pub fn observe(&mut self, observer: impl FnMut(&Medium, &Call, &Ledger) + Send + 'static) {
        self.observer = Some(Arc::new(Mutex::new(observer)));
        self.watch();
    }

    fn watch(&self) {
        if let Some(observer) = &self.observer {
            let (observer, ledger) = (Arc::clone(observer), Arc::clone(&self.ledger));
            self.disk.observe(move |medium, call| observer.lock()(medium, call, &ledger.lock()));
        }
    }

    /// The id that the next new entry gets.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// What is allowed now.
    pub fn ledger(&self) -> Ledger {
        self.ledger.lock().clone()
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
        self.disk = SimDisk::on(medium, self.seed);
        if crash == Crash::PowerCut {
            self.ledger.lock().cut_off();
        }
        self.watch();
        self.store = open(&self.disk)?;
        let seen = read(&self.store)?;
        let mut ledger = self.ledger.lock();
        ledger.judge(&seen, crash)?;
        ledger.settle_on(&seen);
        Ok(())
    }
}
