//! What a store may hold after a crash: for every key the values it may have, after a power cut and after a kill.

use std::collections::BTreeMap;

use millpond::key::Key;
use millpond::store::{Damage, LogStore, Op, Store};

use crate::random::Random;

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process ended, the system did not: everything written is there.
    Kill,
    /// What no sync covered may be gone.
    PowerCut,
}

/// A value's version; `None` is no value.
pub type Version = Option<u32>;

/// The value of `key` in this version: whoever reads it can tell that every byte is right.
pub fn value(key: &[u8], version: u32) -> Vec<u8> {
    let name = key.iter().fold(u64::from(version), |hash, byte| hash.rotate_left(9) ^ u64::from(*byte));
    let mut random = Random::new(name);
    // Mostly within one or two sectors, now and then pages, seldom half a small segment.
    let length = match random.below(32) {
        0 => 30_000,
        1..4 => random.below(5000),
        _ => random.below(400),
    };
    let mut bytes = version.to_le_bytes().to_vec();
    while (bytes.len() as u64) < length {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes
}

/// The version of these bytes, if they are a value of `key`.
fn version_of(key: &[u8], bytes: &[u8]) -> Version {
    let (head, _) = bytes.split_first_chunk::<4>()?;
    let version = u32::from_le_bytes(*head);
    (value(key, version) == bytes).then_some(version)
}

/// Everything a store showed after it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Keys in the order they came, with their versions; `None` where the bytes are nobody's.
    pub items: Vec<(Vec<u8>, Version)>,
    /// The number of entries it claims.
    pub count: u64,
    /// The damage it reports.
    pub damage: Vec<Damage>,
}

/// Reads everything in a store.
///
/// # Errors
/// A call of the store that failed.
pub fn read(store: &LogStore) -> Result<Seen, String> {
    let failed = |error| format!("reading failed: {error}");
    let mut seen = Seen {
        count: store.summary().map_err(failed)?.count,
        damage: store.recovery().damage,
        ..Seen::default()
    };
    let mut from = Vec::new();
    while let Some((key, bytes)) = store.seek(&from).map_err(failed)? {
        from.clone_from(&key);
        from.push(0);
        let version = version_of(&key, &bytes);
        seen.items.push((key, version));
    }
    Ok(seen)
}

#[derive(Clone, Debug, Default)]
struct Fate {
    /// What a reader sees now.
    now: Version,
    /// What may be there after a kill and after a power cut, beside what is seen now.
    kill: Vec<Version>,
    cut: Vec<Version>,
}

/// What is allowed.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    fates: BTreeMap<Vec<u8>, Fate>,
    /// A commit failed, and nothing durable was written behind it yet.
    doubt: bool,
}

/// One operation on a key: the version it puts, or its removal.
pub type Change = (Vec<u8>, Version);

impl Ledger {
    /// What was seen after a crash stays so.
    pub fn settle_on(&mut self, seen: &Seen) {
        for fate in self.fates.values_mut() {
            *fate = Fate::default();
        }
        for (key, version) in &seen.items {
            self.fates.entry(key.clone()).or_default().now = *version;
        }
        self.doubt = false;
    }

    /// The power was cut: the next process, too, may find whatever that left.
    pub fn cut_off(&mut self) {
        for fate in self.fates.values_mut() {
            fate.kill.clone_from(&fate.cut);
        }
    }

    /// A commit of these operations begins.
    pub fn called(&mut self, changes: &[Change]) {
        for (key, version) in changes {
            let fate = self.fates.entry(key.clone()).or_default();
            for allowed in [&mut fate.kill, &mut fate.cut] {
                if !allowed.contains(version) {
                    allowed.push(*version);
                }
            }
        }
    }

    /// It succeeded.
    pub fn done(&mut self, changes: &[Change], durable: bool) {
        let writes = changes.iter().any(|(key, version)| version.is_some() || self.now(key).is_some());
        for (key, version) in changes {
            let fate = self.fates.entry(key.clone()).or_default();
            let before = std::mem::replace(&mut fate.now, *version);
            // Until something durable follows, a power cut may undo it.
            if !fate.cut.contains(&before) {
                fate.cut.push(before);
            }
        }
        // What failed may come back until something is written behind it.
        if self.doubt && !(durable && writes) {
            return;
        }
        for fate in self.fates.values_mut() {
            fate.kill.clear();
            if durable {
                fate.cut.clear();
            }
        }
        self.doubt &= !durable;
    }

    /// It failed, and the store goes on.
    pub fn failed(&mut self) {
        self.doubt = true;
    }

    fn now(&self, key: &[u8]) -> Version {
        self.fates.get(key).and_then(|fate| fate.now)
    }

    /// The keys that are there now.
    pub fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.fates.iter().filter(|(_, fate)| fate.now.is_some()).map(|(key, _)| key)
    }

    /// Holds what a store shows now against what this process did.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge_now(&self, seen: &Seen) -> Result<(), String> {
        self.compare(seen, |fate, found| fate.now == found)
    }

    /// Holds what a store shows after a crash against what is allowed.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge(&self, seen: &Seen, crash: Crash) -> Result<(), String> {
        if let Some(damage) = seen.damage.first() {
            return Err(format!("damage without a fault of the disk: {damage:?}"));
        }
        self.compare(seen, |fate, found| {
            let more = if crash == Crash::Kill { &fate.kill } else { &fate.cut };
            fate.now == found || more.contains(&found)
        })
    }

    fn compare(&self, seen: &Seen, allows: impl Fn(&Fate, Version) -> bool) -> Result<(), String> {
        let entries = seen.items.iter().filter(|(key, _)| matches!(Key::parse(key), Ok(Key::Entry(_))));
        if seen.count != entries.count() as u64 {
            return Err(format!("{} entries are claimed, {} keys are there", seen.count, seen.items.len()));
        }
        let mut last: Option<&[u8]> = None;
        for (key, version) in &seen.items {
            if last.is_some_and(|last| last >= key.as_slice()) {
                return Err(format!("{key:?} came after {last:?}"));
            }
            last = Some(key);
            if version.is_none() {
                return Err(format!("{key:?} has bytes that nobody put"));
            }
            let Some(fate) = self.fates.get(key) else { return Err(format!("{key:?} was never put")) };
            if !allows(fate, *version) {
                return Err(format!("{key:?} is version {version:?}, allowed is {fate:?}"));
            }
        }
        let absent = |key: &Vec<u8>| seen.items.binary_search_by(|(found, _)| found.cmp(key)).is_err();
        match self.fates.iter().find(|(key, fate)| !allows(fate, None) && absent(key)) {
            Some((key, fate)) => Err(format!("{key:?} is lost, allowed is {fate:?}")),
            None => Ok(()),
        }
    }
}

/// The operations of a commit, borrowed.
pub fn ops<'a>(changes: &'a [Change], values: &'a [Vec<u8>]) -> Vec<Op<'a>> {
    let op = |((key, version), value): (&'a Change, &'a Vec<u8>)| match version {
        Some(_) => Op::Put(key, value),
        None => Op::Delete(key),
    };
    changes.iter().zip(values).map(op).collect()
}
