//! Recovery of whatever lies in a directory: no panic, no allocation beyond what the files justify (the runner bounds
//! each), nothing delivered that is not whole in some file of this queue, and what one open shows the next one shows.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use millpond::key::{self, Key};
use millpond::store::{LogError, LogOptions, LogStore, Op, Store};
use millpond::testing::{self, FileLife};
use millpond_testkit::sim_disk::{Medium, SimDisk};

/// A segment's size in this target: the smallest there is.
const SEGMENT: usize = 64 * 1024;
/// Where the open record and, in these files, the frames begin.
const RECORD: usize = 8192;
const FRAMES: usize = 16 * 1024;

/// Takes an input apart.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (now, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        now
    }

    /// A number that is often small, often near a bound, seldom anything.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX - u64::from(self.byte()),
            254 => self.bytes(8).iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
            253 => u64::from(self.byte()) * 256,
            small => u64::from(small),
        }
    }
}

/// One file: checksums are right, so that what is behind them is reached; now and then a byte is wrong.
fn file(input: &mut Input<'_>, number: u64) -> Vec<u8> {
    let life = FileLife { identity: [7; 16], generation: number % 2, number, size: SEGMENT as u64 };
    let mut bytes = vec![0; SEGMENT];
    if input.byte() % 8 != 0 {
        let header = life.encode();
        bytes[..header.len()].copy_from_slice(&header);
        bytes[4096..4096 + header.len()].copy_from_slice(&header);
    }
    let seed = life.seed();
    if input.byte() % 4 != 0 {
        let length = usize::from(input.byte()) * 8;
        let body = input.bytes(length);
        let mut record = vec![0; 40 + body.len().next_multiple_of(8)];
        record[40..40 + body.len()].copy_from_slice(body);
        let length = u32::try_from(record.len()).unwrap();
        record[12..16].copy_from_slice(&length.to_le_bytes());
        record[16] = input.byte() % 4;
        record[20] = input.byte() % 4;
        testing::seal_record(&mut record, number, seed, RECORD as u64);
        bytes[RECORD..RECORD + record.len()].copy_from_slice(&record);
    }
    let mut at = FRAMES;
    for _ in 0..input.byte() % 24 {
        let (kind, flags, id) = (input.byte(), input.byte(), input.number());
        let length = usize::from(input.byte());
        // Ranges, numbers and keys in payloads are numbers more often than noise.
        let payload: Vec<u8> = if flags % 2 == 0 {
            (0..length.div_ceil(32)).flat_map(|_| input.number().to_le_bytes()).collect()
        } else {
            input.bytes(length).to_vec()
        };
        let flags = if input.byte() % 8 == 0 { flags } else { flags & 1 };
        let frame = testing::forge_frame(kind % 16, flags, id, &payload, seed, at as u64);
        if at + frame.len() > SEGMENT {
            break;
        }
        bytes[at..at + frame.len()].copy_from_slice(&frame);
        at += frame.len() + if input.byte() == 0 { 8 } else { 0 };
    }
    for _ in 0..input.byte() % 3 {
        let place = usize::try_from(input.number()).unwrap_or(0) % SEGMENT;
        bytes[place] ^= input.byte();
    }
    if input.byte() == 1 {
        bytes.truncate(usize::from(input.byte()) * 256);
    }
    bytes
}

type Entries = BTreeMap<u64, Vec<u8>>;

fn read(store: &LogStore) -> Entries {
    let (mut entries, mut from) = (Entries::new(), key::entry(0).to_vec());
    while let Some(key) = store.next_key(&from).unwrap() {
        if let (Ok(Key::Entry(id)), Ok(Some(value))) = (Key::parse(&key), store.get(&key)) {
            entries.insert(id, value);
        }
        from.clone_from(&key);
        from.push(0);
    }
    entries
}

fn open(medium: Medium, strict: bool) -> (SimDisk, Result<LogStore, LogError>) {
    let disk = SimDisk::on(medium, 1);
    let options = LogOptions { segment_bytes: SEGMENT as u64, strict, ..LogOptions::default() };
    let store = testing::open_by_hand(Arc::new(disk.clone()), options);
    (disk, store)
}

/// Whether some file holds a whole frame of this entry, valid for the life of that file.
fn is_vouched(files: &[Vec<u8>], seeds: &[u32], id: u64, value: &[u8]) -> bool {
    // Kind and id are compared first: a checksum at every place would be most of the work.
    let may_be = |frame: &[u8]| frame.len() >= 24 && frame[12] == 2 && frame[16..24] == id.to_le_bytes();
    files.iter().any(|file| {
        let mut places = (RECORD..file.len()).step_by(8).filter(|at| may_be(&file[*at..]));
        places.any(|at| seeds.iter().any(|seed| testing::is_entry(&file[at..], *seed, at as u64, id, value)))
    })
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let numbers = 1..=1 + u64::from(input.byte() % 3);
    let files: Vec<Vec<u8>> = numbers.clone().map(|number| file(&mut input, number)).collect();
    let named = numbers.zip(&files).map(|(number, file)| (format!("{number:016}.seg"), file.clone()));
    let medium = Medium::of(named);
    let (_, strict) = open(medium.clone(), true);
    drop(strict);
    let (disk, store) = open(medium, false);
    let Ok(store) = store else { return };
    assert_eq!(disk.changes(), 0, "opening changed the disk");
    let entries = read(&store);
    // A file without a header may be known by what another one says of it, with any generation.
    let seeds: Vec<u32> = files.iter().filter_map(|file| testing::seed_of(file)).collect();
    if seeds.len() == files.len() {
        for (id, value) in &entries {
            assert!(is_vouched(&files, &seeds, *id, value), "entry {id} is in no file");
        }
    }
    // Life goes on, and what was shown stays.
    let Some(free) = entries.keys().next_back().map_or(Some(1), |last| last.checked_add(1)) else { return };
    if store.commit(&[Op::Put(&key::entry(free), b"more")], true).is_err() {
        return;
    }
    let after = disk.kill();
    let (_, again) = open(after, false);
    let mut expected = entries;
    expected.insert(free, b"more".to_vec());
    assert_eq!(read(&again.unwrap()), expected);
});
