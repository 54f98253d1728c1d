//! Every structure on disk, byte for byte: what is written here is written for ever.

use std::fmt::Write;

use super::*;
use crate::store::log::batch::Batch;
use crate::store::log::footer::{Block, Footer, Seal};
use crate::store::log::frame;
use crate::store::log::held::HeldFor;
use crate::store::log::index::Index;
use crate::store::log::lost::Lost;
use crate::store::log::open_record::{self, Living, OpenRecord};
use crate::store::log::segment::{Header, Segment};
use crate::store::log::{freed, pieces};

const HEADER: Header = Header {
    identity: *b"0123456789abcdef",
    generation: 0x1122_3344_5566_7788,
    number: 5,
    size: 65_536,
    recycled: false,
};

/// Rows of 16 bytes as hexadecimal digits.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for row in bytes.chunks(16) {
        for byte in row {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

fn one(kind: u8, id: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = frame::begin(&mut bytes, kind, 0, id);
    bytes.extend_from_slice(payload);
    frame::finish(&mut bytes, start);
    frame::seal_one(&mut bytes, HEADER.seed(), 12_416);
    bytes
}

/// Name and bytes of everything there is.
fn all() -> Vec<(&'static str, Vec<u8>)> {
    let mut held = HeldFor::new();
    for id in [1, 2, 3, 7] {
        held.entry(2).or_default().ids.insert(id, id);
    }
    held.entry(3).or_default().lost.push((12_416, 12_480));

    let mut record = OpenRecord {
        highest: 9,
        living: vec![Living {
            number: 4,
            generation: 6,
            size: 65_536,
            live_end: 20_000,
            mark: 19_000,
            ids: Some((1, 9)),
            torn: vec![(19_000, 19_048)],
        }],
        kv: [(vec![0], b"meta".to_vec())].into(),
        unknown: None,
    }
    .encode();
    open_record::seal(&mut record, 5, HEADER.seed(), 8192);

    let mut commit = Batch::default();
    let (first, second) = (key::entry(6), key::entry(7));
    let ops = [
        Op::Put(&first, b"one"),
        Op::Put(&second, b""),
        Op::Delete(&first),
        Op::Put(&[0], b"m"),
        Op::Delete(&[4, 1]),
    ];
    commit.build(&ops, &Index::default(), &[], &[]);
    commit.seal(12_400, HEADER.seed(), 12_416);
    let mut closing = Batch::default();
    closing.build_closing();
    closing.seal(12_416, HEADER.seed(), 12_416);

    let mut acks = Vec::new();
    let scattered: Vec<(u64, u64)> = (0..9).map(|at| (10 + 2 * at, 10 + 2 * at)).collect();
    pieces::encode(&mut acks, &[&scattered[..], &[(1 << 20, 1 << 21)]].concat());
    let mut gone = Vec::new();
    freed::encode(&mut gone, 6, &held);
    let mut given_up = Vec::new();
    let lost = Lost { generation: 6, bytes: (12_416, 12_480), may_be: Some((3, 4)), ids: vec![(3, 3)] };
    lost.encode(&mut given_up);
    let block = Block { offset: 12_440, count: 2, low: 6, high: 7, bytes: 3, shortest: 0, longest: 3 };
    let footer = Footer {
        end: 12_560,
        ids: Some((6, 7)),
        live_bytes: 3,
        pinned: false,
        blocks: vec![block],
        live: vec![(6, 7)],
        kv: vec![(vec![0], Some(b"m".to_vec())), (vec![4, 1], None)],
        gone: vec![(2, 77)],
        held: Vec::new(),
    };
    vec![
        ("header", HEADER.encode().to_vec()),
        ("header of a file that had a life before", Header { recycled: true, ..HEADER }.encode().to_vec()),
        ("open record at 8192", record),
        ("batch of entries, an ack and other keys at 12416", commit.bytes().to_vec()),
        ("closing batch at 12416", closing.bytes().to_vec()),
        ("ack of a range and a bitmap at 12416", one(frame::ACK, 2, &acks)),
        ("freed at 12416", one(frame::FREED, 4, &gone)),
        ("lost at 12416", one(frame::LOST, 4, &given_up)),
        ("footer at 12560", footer.encode(5, &held, HEADER.seed(), 12_560)),
        ("seal at 65472", Seal { offset: 12_560, length: 288 }.encode(5, HEADER.seed(), 65_472).to_vec()),
    ]
}

#[test]
fn every_structure_is_what_it_was() {
    let mut text = String::new();
    for (name, bytes) in all() {
        writeln!(text, "{name}\n{}", dump(&bytes)).unwrap();
    }
    let path = fixtures::folder().join("golden.hex");
    fixtures::keep_or_compare(&path, &text);
}

#[test]
fn only_its_own_place_and_life_make_a_frame_valid() {
    let disk = sim::SimDisk::new();
    let file = crate::store::log::Disk::create(&disk, "x").unwrap();
    let segment = Segment::new(HEADER, file, 0);
    let bytes = one(frame::ENTRY, 6, b"one");
    assert!(frame::parse(&bytes, segment.seed, 12_416).is_some());
    assert!(frame::parse(&bytes, segment.seed, 12_424).is_none());
    for other in [
        Header { identity: [0; 16], ..HEADER },
        Header { generation: HEADER.generation + 1, ..HEADER },
        Header { number: 6, ..HEADER },
    ] {
        assert!(frame::parse(&bytes, other.seed(), 12_416).is_none());
    }
}
