//! Directories written by version 1 of the format, which every later version opens.
//!
//! They are kept as text under `tests/fixtures/v1`: the bytes of each file that are not zeros. `MILLPOND_FIXTURES=write`
//! writes them anew, which only a change of the format before its first release may ask for.

use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::*;
use crate::store::log::frame;
use crate::store::log::lost::Lost;
use crate::store::log::pieces;
use crate::store::log::scan::{self, Stretch, Window};
use crate::store::log::segment::{self, Header};
use crate::store::log::{Disk, footer, real_disk};

/// Where the fixtures of this version of the format are.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

/// Compares a text with the one that is kept, or keeps it.
pub(super) fn keep_or_compare(path: &Path, text: &str) {
    if std::env::var("MILLPOND_FIXTURES").is_ok_and(|value| value == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap();
    for (at, (now, then)) in text.lines().zip(kept.lines()).enumerate() {
        assert_eq!(now, then, "{} line {}", path.display(), at + 1);
    }
    assert_eq!(text.len(), kept.len(), "{}", path.display());
}

/// The files of a directory as text.
fn pack(path: &Path) -> String {
    let mut text = String::new();
    for file in segments(path) {
        let bytes = fs::read(&file).unwrap();
        writeln!(text, "{} {}", file.file_name().unwrap().to_str().unwrap(), bytes.len()).unwrap();
        for (at, row) in bytes.chunks(32).enumerate().filter(|(_, row)| row.iter().any(|byte| *byte != 0)) {
            write!(text, "  {:x} ", at * 32).unwrap();
            for byte in row {
                write!(text, "{byte:02x}").unwrap();
            }
            text.push('\n');
        }
    }
    text
}

/// The directory of a text.
fn unpack(text: &str) -> TempDir {
    let dir = directory();
    let mut file = None;
    for line in text.lines() {
        let (first, second) = line.trim_start().split_once(' ').unwrap();
        if line.starts_with("  ") {
            let file: &fs::File = file.as_ref().unwrap();
            let bytes: Vec<u8> = (0..second.len() / 2)
                .map(|at| u8::from_str_radix(&second[at * 2..at * 2 + 2], 16).unwrap())
                .collect();
            file.write_all_at(&bytes, u64::from_str_radix(first, 16).unwrap()).unwrap();
        } else {
            let made = fs::File::create(dir.path().join(first)).unwrap();
            made.set_len(second.parse().unwrap()).unwrap();
            file = Some(made);
        }
    }
    dir
}

/// A value of mostly zeros that tells whose it is.
fn sparse(id: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (byte, of_id) in bytes.iter_mut().zip(id.to_be_bytes()) {
        *byte = of_id | 0x40;
    }
    bytes
}

fn header(file: &Path) -> Header {
    Header::decode(&fs::read(file).unwrap()).unwrap().unwrap()
}

/// Writes frames behind the last one of a file, as one batch that says that all before it is durable.
fn append(file: &Path, frames: &[(u8, u64, Vec<u8>)]) {
    let header = header(file);
    let disk = real_disk::RealDisk::open(file.parent().unwrap()).unwrap();
    let handle = disk.open(file.file_name().unwrap().to_str().unwrap()).unwrap();
    let mut window = Window::new(handle.as_ref()).unwrap();
    let most = footer::seal_at(header.size);
    let stretch = Stretch { seed: header.seed(), from: segment::RECORD_AT, to: None, most, torn: &[] };
    let end = scan::scan::<std::io::Error>(&mut window, &stretch, |_, _, _| Ok(())).unwrap().end;
    let mut bytes = Vec::new();
    let start = frame::begin(&mut bytes, frame::BATCH, 0, 0);
    frame::finish(&mut bytes, start);
    for (kind, id, payload) in frames {
        let start = frame::begin(&mut bytes, *kind, 0, *id);
        bytes.extend_from_slice(payload);
        frame::finish(&mut bytes, start);
    }
    frame::seal(&mut bytes, end, header.seed(), end);
    OpenOptions::new().write(true).open(file).unwrap().write_all_at(&bytes, end).unwrap();
}

fn entry_at(file: &Path, id: u64) -> u64 {
    let (header, bytes) = (header(file), fs::read(file).unwrap());
    let is_entry = |at: &usize| {
        frame::parse(&bytes[*at..], header.seed(), *at as u64)
            .is_some_and(|head| head.kind == frame::ENTRY && head.id == id)
    };
    (0..bytes.len() - 64).step_by(8).find(is_entry).unwrap() as u64
}

/// What is expected of a directory.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    contents: Contents,
    clean: bool,
    dropped: bool,
}

fn expected(store: &LogStore) -> Expected {
    let report = store.recovery();
    assert!(report.damage.is_empty(), "{report:?}");
    Expected { contents: contents(store), clean: report.clean, dropped: report.dropped_tail_bytes > 0 }
}

fn of(entries: &[(u64, usize)], clean: bool) -> Expected {
    let contents =
        entries.iter().map(|(id, length)| (key::entry(*id).to_vec(), sparse(*id, *length))).collect();
    Expected { contents, clean, dropped: false }
}

type Make = fn(&Path) -> Expected;

fn clean_close(path: &Path) -> Expected {
    let store = open(path);
    for id in 1..=4 {
        put(&store, id, &sparse(id, 40));
    }
    store.commit(&[Op::Put(&[0], b"meta"), Op::Put(&[4, 7], b"dedupe")], true).unwrap();
    delete(&store, 2);
    store.close().unwrap();
    let mut expected = of(&[(1, 40), (3, 40), (4, 40)], true);
    expected.contents.extend([(vec![0], b"meta".to_vec()), (vec![4, 7], b"dedupe".to_vec())]);
    expected
}

fn crash_tail(path: &Path) -> Expected {
    let store = open(path);
    for id in 1..=3 {
        put(&store, id, &sparse(id, 40));
    }
    drop(store);
    let file = segments(path)[0].clone();
    let at = entry_at(&file, 3);
    OpenOptions::new().write(true).open(&file).unwrap().write_all_at(&[9], at + 30).unwrap();
    Expected { dropped: true, ..of(&[(1, 40), (2, 40)], false) }
}

/// Several segments, each but the last with a footer.
fn footers(path: &Path) -> Expected {
    let store = open(path);
    for id in 1..=8 {
        put(&store, id, &sparse(id, 20_000));
    }
    delete(&store, 4);
    drop(store);
    of(&[1, 2, 3, 5, 6, 7, 8].map(|id| (id, 20_000)), false)
}

/// The process ended between the frame that lets the first segment go and the unlinking.
fn freed(path: &Path) -> Expected {
    let store = open(path);
    for id in 1..=3 {
        put(&store, id, &sparse(id, 20_000));
    }
    let first = segments(path)[0].clone();
    let kept = fs::read(&first).unwrap();
    for id in 1..=3 {
        delete(&store, id);
    }
    put(&store, 4, &sparse(4, 20));
    drop(store);
    fs::write(&first, kept).unwrap();
    of(&[(4, 20)], false)
}

/// One entry's bytes rotted, and a later open gave it up.
fn lost(path: &Path) -> Expected {
    let store = open(path);
    for id in 1..=4 {
        put(&store, id, &sparse(id, 20_000));
    }
    drop(store);
    let (first, last) = (segments(path)[0].clone(), segments(path)[1].clone());
    let at = entry_at(&first, 2);
    OpenOptions::new().write(true).open(&first).unwrap().write_all_at(&[9], at + 1000).unwrap();
    let given_up = Lost {
        generation: header(&first).generation,
        bytes: (at, at + frame::span(20_000)),
        may_be: Some((2, 2)),
        ids: vec![(2, 2)],
    };
    let mut payload = Vec::new();
    given_up.encode(&mut payload);
    append(&last, &[(frame::LOST, 1, payload)]);
    of(&[1, 3, 4].map(|id| (id, 20_000)), false)
}

fn oversized(path: &Path) -> Expected {
    let store = open(path);
    put(&store, 1, &sparse(1, 10));
    put(&store, 2, &sparse(2, 300_000));
    put(&store, 3, &sparse(3, 10));
    store.close().unwrap();
    of(&[(1, 10), (2, 300_000), (3, 10)], true)
}

/// Ranges and bitmaps, of the segment they lie in and of the one before.
fn acks(path: &Path) -> Expected {
    let store = open(path);
    for id in 1..=100 {
        put(&store, id, &sparse(id, 400));
    }
    put(&store, 101, &sparse(101, 40_000));
    let gone: Vec<_> = (10..=20).chain((30..=80).step_by(2)).chain([101]).map(key::entry).collect();
    let ops: Vec<_> = gone.iter().map(|key| Op::Delete(key)).collect();
    store.commit(&ops, true).unwrap();
    drop(store);
    let stays: Vec<(u64, usize)> =
        (1..=100).filter(|id| !gone.contains(&key::entry(*id))).map(|id| (id, 400)).collect();
    assert!(stays.len() > 60);
    of(&stays, false)
}

/// Frames of a later version that may be skipped, one of them only while its segment stays.
fn unknown(path: &Path) -> Expected {
    let store = open(path);
    put(&store, 1, &sparse(1, 20));
    drop(store);
    append(&segments(path)[0], &[(0x80, 7, b"skip".to_vec()), (0xc1, 8, b"keep".to_vec())]);
    of(&[(1, 20)], false)
}

const ALL: [(&str, Make); 8] = [
    ("clean_close", clean_close),
    ("crash_tail", crash_tail),
    ("footers", footers),
    ("freed", freed),
    ("lost", lost),
    ("oversized", oversized),
    ("acks", acks),
    ("unknown", unknown),
];

/// The kinds, ids and lengths of the frames of each segment that is in use: what does not change from run to run.
fn outline(path: &Path) -> Vec<Vec<(u8, u8, u64, u32)>> {
    let mut all = Vec::new();
    for file in segments(path) {
        let (header, bytes) = (header(&file), fs::read(&file).unwrap());
        let mut frames = Vec::new();
        let mut at = 8192;
        while at + frame::HEAD <= bytes.len() {
            match frame::parse(&bytes[at..], header.seed(), at as u64) {
                Some(head) => {
                    let varies = matches!(head.kind, frame::BATCH | frame::FOOTER);
                    let id = if varies { 0 } else { head.id };
                    frames.push((head.kind, head.flags, id, head.len));
                    at += usize::try_from(head.span()).unwrap();
                }
                None => at += 8,
            }
        }
        if !frames.is_empty() {
            all.push(frames);
        }
    }
    all
}

#[test]
fn o13_every_fixture_opens_and_is_still_written_like_this() {
    for (name, make) in ALL {
        let kept = folder().join(name).with_extension("hex");
        let fresh = directory();
        let wanted = make(fresh.path());
        if std::env::var("MILLPOND_FIXTURES").is_ok_and(|value| value == "write") {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&kept, pack(fresh.path())).unwrap();
        }
        let dir = unpack(&fs::read_to_string(&kept).unwrap());
        assert_eq!(outline(dir.path()), outline(fresh.path()), "{name}");
        for path in [dir.path(), fresh.path()] {
            let store = open(path);
            assert_eq!(expected(&store), wanted, "{name}");
            // It can be written on, and says the same afterwards.
            put(&store, 1 << 40, b"more");
            drop(store);
            let mut contents = contents(&open(path));
            contents.remove(&key::entry(1 << 40)[..]).unwrap();
            assert_eq!(contents, wanted.contents, "{name}");
        }
    }
}

#[test]
fn acks_use_both_forms() {
    let dir = unpack(&fs::read_to_string(folder().join("acks.hex")).unwrap());
    let mut forms = [0, 0];
    for file in segments(dir.path()) {
        let (header, bytes) = (header(&file), fs::read(&file).unwrap());
        for at in (8192..bytes.len() - 64).step_by(8) {
            let head = frame::parse(&bytes[at..], header.seed(), at as u64);
            if let Some(head) = head.filter(|head| head.kind == frame::ACK) {
                let payload = &bytes[at + frame::HEAD..at + frame::HEAD + head.len as usize];
                let ids = std::cell::Cell::new(0);
                pieces::decode_all(payload, |first, last| ids.set(ids.get() + last - first + 1));
                // The top bit of the first count.
                forms[usize::from(payload[15] & 0x80 != 0)] += ids.get();
            }
        }
    }
    assert!(forms[0] > 0 && forms[1] > 30, "{forms:?}");
}

#[test]
fn a_segment_with_frames_of_a_later_version_stays() {
    let dir = unpack(&fs::read_to_string(folder().join("unknown.hex")).unwrap());
    let first = segments(dir.path())[0].clone();
    for round in 0..3 {
        let store = open(dir.path());
        if round == 0 {
            delete(&store, 1);
        }
        put(&store, 2, b"x");
        delete(&store, 2);
        store.close().unwrap();
        assert!(first.exists(), "round {round}");
    }
}
