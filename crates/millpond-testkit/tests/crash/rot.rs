//! R10: bytes that change by themselves. Nothing wrong is ever delivered, everything undamaged is, and what is missing
//! is reported; a strict open refuses whatever is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use millpond::key::{self, Key};
use millpond::store::{LogError, LogOptions, LogStore, Op, RecoveryReport, Store};
use millpond::testing;
use millpond_testkit::life::TINY;
use millpond_testkit::random::Random;
use millpond_testkit::sim_disk::{Medium, SimDisk};

use crate::budget::{Run, budget};

const SEGMENT: u64 = 64 * 1024;
/// What lies at the end of a file that was closed.
const SEAL: u64 = 64;
/// A frame is its value and at most this much before and behind it: header, padding.
const FRAME: u64 = 64;

/// A log whose every byte is known.
pub(crate) struct Whole {
    pub(crate) medium: Medium,
    pub(crate) values: BTreeMap<u64, Vec<u8>>,
    acked: BTreeSet<u64>,
    /// Where each value lies.
    pub(crate) places: BTreeMap<u64, (String, Range<u64>)>,
    /// Segments in use, oldest first.
    pub(crate) files: Vec<String>,
    /// After an unclean end nothing vouches for the last batch.
    closes: bool,
}

/// Three segments with entries of all sizes, some acked from the same segment and some from a later one.
pub(crate) fn whole(random: &mut Random, closes: bool) -> Whole {
    let disk = SimDisk::on(Medium::default(), random.next_u64());
    let store = testing::open_by_hand(Arc::new(disk.clone()), TINY).unwrap();
    let (mut values, mut acked) = (BTreeMap::new(), BTreeSet::new());
    let mut id = 0;
    for segment in 0..3 {
        for _ in 0..70 {
            id += 1;
            let length = 24 + if random.below(10) == 0 { random.below(4000) } else { random.below(200) };
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < length {
                bytes.extend_from_slice(&random.next_u64().to_le_bytes());
            }
            store.commit(&[Op::Put(&key::entry(id), &bytes)], true).unwrap();
            values.insert(id, bytes);
            let old = 1 + random.below(id);
            if random.below(3) == 0 && acked.insert(old) {
                store.commit(&[Op::Delete(&key::entry(old))], true).unwrap();
            }
        }
        if segment < 2 {
            testing::rotate(&store).unwrap();
        }
    }
    id += 1;
    store.commit(&[Op::Put(&key::entry(id), b"the last batch of all, here")], true).unwrap();
    values.insert(id, b"the last batch of all, here".to_vec());
    if closes {
        store.close().unwrap();
    }
    let medium = disk.kill();
    let files = medium.files();
    let places = values.iter().map(|(id, value)| {
        let found = files.iter().find_map(|(name, bytes)| {
            let at = bytes.windows(value.len()).position(|window| window == value)? as u64;
            Some((name.clone(), at..at + value.len() as u64))
        });
        (*id, found.unwrap())
    });
    let places: BTreeMap<_, _> = places.collect();
    let used: BTreeSet<String> = places.values().map(|(name, _)| name.clone()).collect();
    assert_eq!(used.len(), 3, "three segments hold entries");
    let files = used.into_iter().collect();
    Whole { medium, values, acked, places, files, closes }
}

/// What a damaged log gave.
pub(crate) struct Found {
    pub(crate) entries: BTreeMap<u64, Vec<u8>>,
    /// Entries that were given up when they were read, each of which is a report.
    pub(crate) unreadable: BTreeSet<u64>,
    pub(crate) report: RecoveryReport,
}

fn open(medium: &Medium, strict: bool, verify: bool) -> Result<LogStore, LogError> {
    let disk = SimDisk::on(medium.clone(), 1);
    testing::open_by_hand(Arc::new(disk), LogOptions { strict, verify, ..TINY })
}

pub(crate) fn read(medium: &Medium, verify: bool) -> Result<Found, String> {
    let store = open(medium, false, verify).map_err(|error| format!("open failed: {error}"))?;
    let mut found = Found { entries: BTreeMap::new(), unreadable: BTreeSet::new(), report: store.recovery() };
    let mut from = key::entry(0).to_vec();
    while let Some(key) = store.next_key(&from).map_err(|error| format!("next_key failed: {error}"))? {
        if let Ok(Key::Entry(id)) = Key::parse(&key) {
            match store.get(&key) {
                Ok(Some(value)) => drop(found.entries.insert(id, value)),
                // What is damaged is given up by the read that finds it, and said to be.
                Ok(None) if store.take_lost().iter().any(|lost| lost.id == id) => {
                    found.unreadable.insert(id);
                }
                Ok(None) => return Err(format!("entry {id} is there and has no value")),
                Err(error) => return Err(format!("entry {id}: {error}")),
            }
        }
        from.clone_from(&key);
        from.push(0);
    }
    Ok(found)
}

impl Whole {
    /// Holds a damaged log against the whole one. `hits` says whether a stretch of a file was touched; `number` tells this
    /// damage from others.
    fn judge(
        &self,
        medium: &Medium,
        number: u64,
        hits: impl Fn(&str, Range<u64>) -> bool,
    ) -> Result<bool, String> {
        let found = read(medium, false)?;
        let reported = self.judge_found(medium, &found, &hits)?;
        // Reading everything at open takes its time: where there is nothing to report it is looked at now and then only.
        if !reported && Random::new(number).below(8) > 0 {
            return Ok(reported);
        }
        let found = read(medium, true)?;
        let reported =
            self.judge_found(medium, &found, &hits).map_err(|error| format!("verifying: {error}"))?;
        let is_refused = matches!(open(medium, true, false), Err(LogError::Corrupt { .. }));
        if is_refused == found.report.damage.is_empty() {
            return Err(format!("strict refused: {is_refused}, reported: {:?}", found.report));
        }
        Ok(reported)
    }

    /// Holds what was found against what must be; whether any of it is a report of damage.
    fn judge_found(
        &self,
        medium: &Medium,
        found: &Found,
        hits: impl Fn(&str, Range<u64>) -> bool,
    ) -> Result<bool, String> {
        let reported = !found.report.damage.is_empty() || !found.unreadable.is_empty();
        let touched = |id: &u64| {
            let (file, place) = &self.places[id];
            hits(file, place.start.saturating_sub(FRAME)..place.end + FRAME)
        };
        // Nothing vouches for the last batches when all of their marks were hit, acks included.
        let lost_its_end = !self.is_closed(&hits)
            && self
                .values
                .keys()
                .next_back()
                .is_some_and(|id| touched(id) && self.is_cut(medium, found, *id));
        for (id, value) in &found.entries {
            if self.values.get(id) != Some(value) {
                return Err(format!("entry {id} has other bytes than were put"));
            }
            if self.acked.contains(id) && !reported && !lost_its_end {
                return Err(format!("entry {id} came back, and no damage is reported"));
            }
        }
        for id in self.values.keys().filter(|id| !self.acked.contains(id)) {
            if found.entries.contains_key(id) {
                continue;
            }
            if !touched(id) {
                return Err(format!("entry {id} is missing and was not touched: {:?}", found.report));
            }
            // Marks lie in the batches behind: where all of these were hit too, nothing vouches for this one.
            let (file, place) = &self.places[id];
            let behind = |other: &u64| {
                let (name, range) = &self.places[other];
                name == file && range.start > place.start
            };
            let is_torn = self.files.last() == Some(file)
                && !self.is_closed(&hits)
                && self.is_cut(medium, found, *id)
                && self.values.keys().filter(|other| behind(other)).all(touched);
            if !reported && !is_torn {
                return Err(format!("entry {id} is missing and nothing is reported: {:?}", found.report));
            }
            let covers = |low: Option<u64>, high: Option<u64>| {
                low.is_none_or(|low| low <= *id) && high.is_none_or(|high| *id <= high)
            };
            let named = found.report.damage.iter().any(|damage| covers(damage.first_id, damage.last_id));
            if !found.unreadable.contains(id) && !named && !is_torn {
                return Err(format!("no report names entry {id}: {:?}", found.report));
            }
        }
        Ok(reported)
    }

    /// Whether what is left looks as after a power cut: a torn tail was dropped, or zeros begin where this entry was, as
    /// behind the end of any log. The seal at the end of the file vouches for nothing: a change of segment writes it before
    /// the sync.
    fn is_cut(&self, medium: &Medium, found: &Found, id: u64) -> bool {
        let (file, place) = &self.places[&id];
        let is_empty = |bytes: &Vec<u8>| {
            let stretch = usize::try_from(place.start).unwrap()..usize::try_from(SEGMENT - SEAL).unwrap();
            bytes.get(stretch).is_none_or(|rest| rest.iter().all(|byte| *byte == 0))
        };
        found.report.dropped_tail_bytes > 0 || medium.files().get(file).is_none_or(is_empty)
    }

    /// Whether the log was closed and the batch that says so was not touched.
    fn is_closed(&self, hits: impl Fn(&str, Range<u64>) -> bool) -> bool {
        let (file, place) = &self.places[self.places.keys().next_back().unwrap()];
        let at = place.end.next_multiple_of(8);
        self.closes && !hits(file, at..at + 24)
    }

    /// One changed byte.
    fn judge_byte(&self, file: &str, at: u64, change: impl FnOnce(u8) -> u8) -> Result<bool, String> {
        let (mut medium, mut changed) = (self.medium.clone(), 0);
        medium.set_byte(file, at, |byte| {
            changed = change(byte);
            changed
        });
        self.judge(&medium, 256 * at + u64::from(changed), |name, range| name == file && range.contains(&at))
    }

    /// One flipped bit.
    fn judge_bit(&self, file: &str, bit: u64) -> Result<bool, String> {
        self.judge_byte(file, bit / 8, |byte| byte ^ (1 << (bit % 8)))
            .map_err(|error| format!("{file} bit {bit}: {error}"))
    }

    /// One file that ends too early.
    fn judge_cut(&self, file: &str, length: u64) -> Result<bool, String> {
        let mut medium = self.medium.clone();
        medium.truncate(file, length);
        self.judge(&medium, length, |name, range| name == file && range.end > length)
            .map_err(|error| format!("{file} cut to {length}: {error}"))
    }
}

/// Judges all of these on as many threads as there are processors; how many of them are reports of damage.
fn on_all_processors(count: u64, judge: impl Fn(u64) -> Result<bool, String> + Sync) -> Result<u64, String> {
    /// Taken at a time.
    const SHARE: u64 = 64;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(0);
    let work = || {
        let mut reports = 0;
        loop {
            let from = next.fetch_add(SHARE, Ordering::Relaxed);
            if from >= count {
                return Ok(reports);
            }
            for number in from..(from + SHARE).min(count) {
                // The others end with this one.
                let judged = judge(number).inspect_err(|_| next.store(count, Ordering::Relaxed));
                reports += u64::from(judged?);
            }
        }
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Every `stride`th of `0..count`, from `offset`.
fn every(count: u64, stride: u64, offset: u64) -> impl Iterator<Item = u64> {
    (offset % stride..count).step_by(usize::try_from(stride).unwrap())
}

#[test]
fn r10_no_flipped_bit_and_no_cut_goes_unnoticed() {
    let (run, mut random) = Run::begin("R10 flips and cuts");
    // One in so many; 1 is every bit of a segment.
    let stride = budget(997, 61, 1);
    let (mut flips, mut cuts, mut reports) = (0, 0, 0_u64);
    for closes in [true, false] {
        let whole = whole(&mut random, closes);
        for (place, file) in whole.files.iter().enumerate() {
            // The middle one in full, a share of the others.
            let stride = if place == 1 && closes { stride } else { stride * 16 };
            let offset = random.next_u64();
            let bits: Vec<u64> = every(SEGMENT * 8, stride, offset).collect();
            let lengths: Vec<u64> = every(SEGMENT, stride, offset).collect();
            let judge = |number: u64| {
                let number = usize::try_from(number).unwrap();
                match number.checked_sub(bits.len()) {
                    None => whole.judge_bit(file, bits[number]),
                    Some(number) => whole.judge_cut(file, lengths[number]),
                }
            };
            let all = (bits.len() + lengths.len()) as u64;
            reports += on_all_processors(all, judge)
                .unwrap_or_else(|error| panic!("MILLPOND_SEED={} closes {closes} {error}", run.seed));
            flips += bits.len() as u64;
            cuts += lengths.len() as u64;
        }
    }
    assert!(reports > 0);
    run.end(&[("flipped bits", flips), ("cuts", cuts), ("of both reported", reports)]);
}

/// Nothing tells a log that lost whole frames at its end, the closing one among them, from one that never had them.
#[test]
fn r10_an_end_of_zeros_is_an_end() {
    /// Bytes of a frame before its value.
    const HEAD: u64 = 24;
    let (run, mut random) = Run::begin("R10 ends of zeros");
    let mut ends = 0;
    for closes in [false, true] {
        let whole = whole(&mut random, closes);
        let newest = whole.files.last().unwrap();
        for (_, place) in whole.places.values().rev().take(5) {
            let from = place.start - HEAD;
            let mut medium = whole.medium.clone();
            medium.overwrite(newest, from, &vec![0; usize::try_from(SEGMENT - SEAL - from).unwrap()]);
            let judged = whole.judge(&medium, 0, |name, range| name == newest && range.end > from);
            let reported = judged.unwrap_or_else(|error| {
                panic!("MILLPOND_SEED={} closes {closes} from {from}: {error}", run.seed)
            });
            assert!(!reported, "an end is no damage");
            ends += 1;
        }
    }
    run.end(&[("ends", ends)]);
}

#[test]
fn r10_no_byte_of_a_header_is_trusted_alone() {
    let (run, mut random) = Run::begin("R10 header bytes");
    let whole = whole(&mut random, true);
    let stride = budget(211, 29, 1);
    let mut tried = 0;
    for file in &whole.files {
        let bytes = whole.medium.files().remove(file).unwrap();
        // Headers, open records and the header of the first frame.
        let used = (0..12 * 1024 + 256).filter(|at| bytes[*at] != 0);
        let all: Vec<(u64, u8)> = used
            .flat_map(|at| {
                let values = every(256, stride, random.next_u64());
                values.map(move |value| (at as u64, u8::try_from(value).unwrap())).collect::<Vec<_>>()
            })
            .collect();
        let judge = |number: u64| {
            let (at, value) = all[usize::try_from(number).unwrap()];
            whole
                .judge_byte(file, at, |_| value)
                .map_err(|error| format!("{file} byte {at} = {value}: {error}"))
        };
        on_all_processors(all.len() as u64, judge)
            .unwrap_or_else(|error| panic!("MILLPOND_SEED={} {error}", run.seed));
        tried += all.len() as u64;
    }
    run.end(&[("bytes replaced", tried)]);
}

/// The same file in another life: number and identity agree, the generation does not.
#[test]
fn r10_bytes_of_a_former_life_are_never_delivered() {
    let (run, mut random) = Run::begin("R10 former lives");
    let mut files = 0;
    for round in 0..budget(10, 50, 200) {
        let disk = SimDisk::on(Medium::default(), random.next_u64());
        let store = testing::open_by_hand(Arc::new(disk.clone()), TINY).unwrap();
        store.commit(&[Op::Put(&key::entry(1), b"first")], true).unwrap();
        store.close().unwrap();
        let begun = disk.kill();
        // Two lives go on from there; sizes agree, so that frames lie at the same places.
        let mut life = |bytes: &[u8; 40]| {
            let disk = SimDisk::on(begun.clone(), random.next_u64());
            let store = testing::open_by_hand(Arc::new(disk.clone()), TINY).unwrap();
            for id in 2..40 {
                store.commit(&[Op::Put(&key::entry(id), bytes)], true).unwrap();
            }
            drop(store);
            disk.kill()
        };
        let (old, mut new) = (life(&[b'o'; 40]), life(&[b'n'; 40]));
        let (stale, own) = (old.files(), new.files());
        for (name, bytes) in own.iter().filter(|(name, _)| stale.contains_key(*name)) {
            // Some sectors behind headers and records are what they were in the other life.
            for sector in 24..bytes.len() as u64 / 512 {
                if random.below(3) == 0 {
                    let from = usize::try_from(sector * 512).unwrap();
                    new.overwrite(name, sector * 512, &stale[name][from..from + 512]);
                }
            }
            files += 1;
        }
        let found = read(&new, false).unwrap();
        let strange = found.entries.values().any(|value| value.as_slice() == [b'o'; 40]);
        assert!(!strange, "MILLPOND_SEED={} round {round}: bytes of another life are delivered", run.seed);
    }
    run.end(&[("files", files)]);
}

#[test]
fn r10_damaged_sectors_and_confused_files_are_reported() {
    let (run, mut random) = Run::begin("R10 sectors and files");
    let mut sectors = 0;
    let mut whole = whole(&mut random, true);
    for round in 0..budget(60, 300, 1000) {
        if round % 20 == 10 {
            whole = self::whole(&mut random, round % 40 == 10);
        }
        let (mut medium, mut hit) = (whole.medium.clone(), BTreeSet::new());
        let contents = medium.files();
        for _ in 0..=random.below(20) {
            let file = &whole.files[usize::try_from(random.below(3)).unwrap()];
            let sector = random.below(SEGMENT / 512);
            let from = random.below(SEGMENT / 512) * 512;
            let kind = random.below(3);
            let bytes: Vec<u8> = match kind {
                0 => vec![0; 512],
                1 => (0..512).map(|_| u8::try_from(random.below(256)).unwrap()).collect(),
                // A write that went to the wrong place.
                _ => contents[file][usize::try_from(from).unwrap()..][..512].to_vec(),
            };
            medium.overwrite(file, sector * 512, &bytes);
            hit.insert((file.clone(), sector));
            sectors += 1;
        }
        // Without either copy of its header the newest file is nobody's: no other file knows its generation.
        let newest = whole.files.last().unwrap();
        let headless = [0, 8].iter().all(|sector| hit.contains(&(newest.clone(), *sector)));
        let hits = |name: &str, range: Range<u64>| {
            (headless && name == newest)
                || (range.start / 512..=(range.end - 1) / 512)
                    .any(|sector| hit.contains(&(name.to_owned(), sector)))
        };
        whole
            .judge(&medium, round, hits)
            .unwrap_or_else(|error| panic!("MILLPOND_SEED={} round {round}, {hit:?}: {error}", run.seed));
    }
    let whole = self::whole(&mut random, true);
    let mut files = 0;
    for one in &whole.files {
        for other in &whole.files {
            for what in ["swap", "copy", "remove"] {
                let mut medium = whole.medium.clone();
                match what {
                    _ if one == other && what != "remove" => continue,
                    "swap" => {
                        medium.move_over(one, "away");
                        medium.move_over(other, one);
                        medium.move_over("away", other);
                    }
                    "copy" => medium.copy_over(one, other),
                    _ => medium.remove(one),
                }
                let newest = whole.files.last().unwrap();
                let loses_newest = match what {
                    "swap" => one == newest || other == newest,
                    "copy" => other == newest,
                    _ => one == newest,
                };
                // A whole newest segment that is gone leaves no trace in what is left: that is said in the format.
                if loses_newest && what == "remove" {
                    read(&medium, false).unwrap();
                    continue;
                }
                let hits = |name: &str, _| match what {
                    "swap" => name == one || name == other,
                    "copy" => name == other,
                    _ => name == one,
                };
                whole.judge(&medium, files, hits).unwrap_or_else(|error| {
                    panic!("MILLPOND_SEED={} {what} {one} {other}: {error}", run.seed)
                });
                files += 1;
            }
        }
    }
    run.end(&[("sectors damaged", sectors), ("files swapped, copied or removed", files)]);
}
