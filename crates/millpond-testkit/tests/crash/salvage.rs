//! Crashes while damage is given up: at every moment what is intact is there, and what is not was reported or lies in
//! quarantine, whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::key;
use millpond::store::{LogOptions, LogStore, Op, Store};
use millpond::testing;
use millpond_testkit::life::TINY;
use millpond_testkit::random::Random;
use millpond_testkit::sim_disk::{Medium, SimDisk};
use parking_lot::Mutex;

use crate::budget::{Run, budget};
use crate::rot::{Whole, read, whole};

/// Images of one moment.
const IMAGES: usize = 5;
const FOLDER: &str = "quarantine/";
const ENDING: &str = ".bytes";
/// An entry that is put behind the damage.
const NEW: u64 = 1000;

/// A log with damage in segments that have a successor, so that none of it can be a torn tail.
struct Damaged {
    medium: Medium,
    /// What is intact.
    values: BTreeMap<u64, Vec<u8>>,
    /// The damaged frames with the names that their copies get, by the ids of their entries.
    hurt: BTreeMap<u64, (String, Vec<u8>)>,
}

/// The entry's frame is 24 bytes and the value.
const HEAD: u64 = 24;

fn damage(whole: &Whole, random: &mut Random) -> Damaged {
    let mut values = read(&whole.medium, true).unwrap().entries;
    let mut medium = whole.medium.clone();
    let listed = |id: &u64| whole.places[id].0 != *whole.files.last().unwrap();
    let candidates: Vec<u64> = values.keys().copied().filter(listed).collect();
    let mut hurt = BTreeSet::new();
    for _ in 0..=random.below(3) {
        let id = candidates[usize::try_from(random.below(candidates.len() as u64)).unwrap()];
        // Stretches that touch would be one.
        let neighbours = (id - 1..=id + 1).any(|other| hurt.contains(&other));
        if !neighbours {
            let (file, place) = &whole.places[&id];
            medium.set_byte(file, place.start + random.below(place.end - place.start), |byte| byte ^ 0x20);
            hurt.insert(id);
            values.remove(&id);
        }
    }
    let files = medium.files();
    let copy = |id: &u64| {
        let (file, place) = &whole.places[id];
        let bytes = &files[file];
        let generation = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
        let begin = place.start - HEAD;
        let range = usize::try_from(begin).unwrap()..usize::try_from(place.end.next_multiple_of(8)).unwrap();
        (format!("{FOLDER}{generation:016x}-{begin:012x}{ENDING}"), bytes[range].to_vec())
    };
    let hurt = hurt.iter().map(|id| (*id, copy(id))).collect();
    Damaged { medium, values, hurt }
}

fn open(disk: &SimDisk, verify: bool) -> Result<LogStore, String> {
    let options = LogOptions { verify, ..TINY };
    testing::open_by_hand(Arc::new(disk.clone()), options).map_err(|error| format!("open failed: {error}"))
}

impl Damaged {
    /// The entries whose copies are kept; one that is there must be whole.
    fn kept(&self, medium: &Medium) -> Result<BTreeSet<u64>, String> {
        let mut kept = BTreeSet::new();
        for (name, bytes) in medium.files().into_iter().filter(|(name, _)| name.ends_with(ENDING)) {
            match self.hurt.iter().find(|(_, copy)| **copy == (name.clone(), bytes.clone())) {
                Some((id, _)) => kept.insert(*id),
                None => return Err(format!("{name} is not what was damaged")),
            };
        }
        Ok(kept)
    }

    /// Holds a crash against what must be there. `answered` says that the commit behind the damage was.
    fn judge(&self, medium: &Medium, answered: bool, verify: bool) -> Result<(), String> {
        let kept = self.kept(medium)?;
        let mut found = read(medium, verify)?;
        match found.entries.remove(&NEW) {
            Some(value) if value == b"new" => {}
            None if !answered => {}
            other => return Err(format!("the answered entry is {other:?}")),
        }
        for (id, value) in &self.values {
            if found.entries.get(id) != Some(value) {
                return Err(format!("entry {id} is intact and not there: {:?}", found.report));
            }
        }
        if let Some(id) = found.entries.keys().find(|id| !self.values.contains_key(id)) {
            return Err(format!("entry {id} came back"));
        }
        let told = |id: &u64| {
            let names = |low: Option<u64>, high: Option<u64>| {
                low.is_some_and(|low| low <= *id) && high.is_some_and(|high| *id <= high)
            };
            found.report.damage.iter().any(|damage| names(damage.first_id, damage.last_id))
                || found.unreadable.contains(id)
        };
        match self.hurt.keys().find(|id| !told(id) && !kept.contains(id)) {
            Some(id) => Err(format!("entry {id} is neither reported nor kept: {:?}", found.report)),
            None => Ok(()),
        }
    }

    /// Gives the damage up on this disk, at the open and its first commit or when it is read.
    fn give_up(&self, disk: &SimDisk, by_reading: bool, answered: &AtomicBool) -> Result<(), String> {
        let store = open(disk, !by_reading)?;
        if by_reading {
            for id in self.hurt.keys() {
                let value = store.get(&key::entry(*id)).map_err(|error| format!("entry {id}: {error}"))?;
                if value.is_some() {
                    return Err(format!("entry {id} is damaged and delivered"));
                }
            }
        }
        store.commit(&[Op::Put(&key::entry(NEW), b"new")], true).map_err(|error| error.to_string())?;
        answered.store(true, Ordering::Release);
        while testing::work(&store) {}
        store.close().map_err(|error| error.to_string())
    }

    /// After whatever happened, one more open gives up all that is left, once.
    fn settle(&self, medium: Medium) -> Result<(), String> {
        let disk = SimDisk::on(medium, 3);
        let store = open(&disk, true)?;
        store.commit(&[Op::Put(&key::entry(NEW), b"new")], true).map_err(|error| error.to_string())?;
        store.close().map_err(|error| error.to_string())?;
        let medium = disk.kill();
        if self.kept(&medium)?.len() < self.hurt.len() {
            return Err("a damaged stretch is not kept".to_owned());
        }
        let report = read(&medium, true)?.report;
        if report.damage.is_empty() && report.clean {
            self.judge(&medium, true, true)
        } else {
            Err(format!("damage is reported again: {report:?}"))
        }
    }
}

#[test]
fn r10_a_crash_while_damage_is_given_up_costs_nothing_that_is_intact() {
    let (run, mut random) = Run::begin("R10 crashes in salvage");
    let (mut moments, mut images) = (0, 0);
    for round in 0..budget(3, 24, 200) {
        let whole = whole(&mut random, round % 2 == 0);
        let damaged = damage(&whole, &mut random);
        let by_reading = round % 3 == 2;
        let disk = SimDisk::on(damaged.medium.clone(), random.next_u64());
        let (answered, mut dice) = (Arc::new(AtomicBool::new(false)), Random::new(random.next_u64()));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sink, told) = (Arc::clone(&seen), Arc::clone(&answered));
        disk.observe(move |medium, call| {
            let mut seen = sink.lock();
            let answered = told.load(Ordering::Acquire);
            seen.push((medium.clone(), answered, format!("killed after {call:?}")));
            medium.images().some(IMAGES, &mut dice, |image| {
                seen.push((image, answered, format!("cut off after {call:?}")));
            });
        });
        let failed = |error: String| panic!("round {round}, MILLPOND_SEED={}: {error}", run.seed);
        damaged.give_up(&disk, by_reading, &answered).unwrap_or_else(failed);
        disk.unobserve();
        for (medium, answered, when) in std::mem::take(&mut *seen.lock()) {
            let failed = |error: String| panic!("round {round}, MILLPOND_SEED={}, {when}: {error}", run.seed);
            moments += u64::from(when.starts_with("killed"));
            images += 1;
            let verify = !by_reading || random.below(2) == 0;
            damaged.judge(&medium, answered, verify).unwrap_or_else(failed);
            if random.below(8) == 0 {
                damaged.settle(medium).unwrap_or_else(failed);
            }
        }
        damaged.settle(disk.kill()).unwrap_or_else(failed);
    }
    run.end(&[("moments", moments), ("images", images)]);
}
