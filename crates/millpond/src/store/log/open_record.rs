//! The open record: what a segment says about the log before its own first frame.
//!
//! It is the authority on which segments are living, where each of them ends and what the other keys held; nothing
//! else has to be kept for the sake of any of these.

use std::collections::BTreeMap;

use super::bytes::{Cursor, get_u32, usize_of};
use super::segment::{BLOCK, RECORD_AT};

const MAGIC: &[u8; 8] = b"MPONDOPN";
const FIXED: usize = 64;
/// In a flags field of the record, the bits that must be understood; the others may be ignored.
const MUST: u32 = 0xffff;

/// A living segment other than the one that holds the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Living {
    pub(super) number: u64,
    pub(super) generation: u64,
    pub(super) size: u64,
    /// Nothing at or behind this is part of the segment.
    pub(super) live_end: u64,
    /// Everything below this was vouched for by the open that wrote it.
    pub(super) mark: u64,
    /// The lowest and the highest id ever stored in it.
    pub(super) ids: Option<(u64, u64)>,
    /// Stretches between mark and live end that never were frames.
    pub(super) torn: Vec<(u64, u64)>,
}

/// The record, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenRecord {
    /// The highest id that was ever stored in the log, as far as its writer knew; 0 when none was.
    pub(super) highest: u64,
    pub(super) living: Vec<Living>,
    /// Every key that is not an entry, with its value.
    pub(super) kv: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Flags that must be understood and are not known here.
    pub(super) unknown: Option<(&'static str, u32)>,
}

fn put(bytes: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

fn count(bytes: &mut Vec<u8>, length: usize) {
    // INVARIANT: the caller bounded the record as a whole below 4 GiB.
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

impl OpenRecord {
    /// The record without what depends on its place: see [`seal`].
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(MAGIC);
        // Checksum and length; flags that must be understood and flags that may be ignored: none yet; the number of this
        // segment, put in by `seal`.
        put(&mut bytes, &[0, 0, 0, self.highest]);
        count(&mut bytes, self.living.len());
        count(&mut bytes, self.kv.len());
        put(&mut bytes, &[0, 0]);
        for part in &self.living {
            let (low, high) = part.ids.unwrap_or((u64::MAX, 0));
            put(&mut bytes, &[part.number, part.generation, part.size, part.live_end, part.mark, low, high]);
            count(&mut bytes, part.torn.len());
            // Flags: none yet.
            count(&mut bytes, 0);
            for (from, to) in &part.torn {
                put(&mut bytes, &[*from, *to]);
            }
        }
        for (key, value) in &self.kv {
            count(&mut bytes, key.len());
            count(&mut bytes, value.len());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value);
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], own: u64) -> Option<Self> {
        let unknown = |what, flags: u32| Some((what, flags & MUST)).filter(|(_, bits)| *bits != 0);
        let mut cursor = Cursor::new(bytes.get(24..)?);
        if cursor.u64()? != own {
            return None;
        }
        let mut record = Self { highest: cursor.u64()?, ..Self::default() };
        record.unknown = unknown("open record flags", get_u32(bytes, 16));
        let (living, keys) = (cursor.u32()?, cursor.u32()?);
        cursor.take(16)?;
        for _ in 0..living {
            let mut part = Living {
                number: cursor.u64()?,
                generation: cursor.u64()?,
                size: cursor.u64()?,
                live_end: cursor.u64()?,
                mark: cursor.u64()?,
                ..Living::default()
            };
            let (low, high) = (cursor.u64()?, cursor.u64()?);
            part.ids = (low <= high).then_some((low, high));
            let torn = cursor.u32()?;
            record.unknown = record.unknown.or(unknown("flags of a living segment", cursor.u32()?));
            for _ in 0..torn {
                part.torn.push((cursor.u64()?, cursor.u64()?));
            }
            record.living.push(part);
        }
        for _ in 0..keys {
            let (key, value) = (cursor.u32()? as usize, cursor.u32()? as usize);
            record.kv.insert(cursor.take(key)?.to_vec(), cursor.take(value)?.to_vec());
        }
        Some(record)
    }
}

/// Where the second copy of a record of this length begins: in a block that the first copy does not touch.
pub(super) fn second_at(length: u64) -> u64 {
    (RECORD_AT + length).next_multiple_of(BLOCK)
}

/// Where the frames behind a record of this length begin.
pub(super) fn frames_at(length: u64) -> u64 {
    second_at(length) + length
}

/// Gives an encoded record its segment and the checksum of its place.
pub(super) fn seal(bytes: &mut [u8], own: u64, seed: u32, at: u64) {
    bytes[24..32].copy_from_slice(&own.to_le_bytes());
    let crc = sum(bytes, seed, at);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
}

fn sum(bytes: &[u8], seed: u32, at: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &at.to_le_bytes()), &bytes[12..])
}

/// How long the record that begins here says it is; `None` when no record begins here.
pub(super) fn length_of(start: &[u8]) -> Option<usize> {
    if start.get(..8)? != MAGIC {
        return None;
    }
    let length = usize_of(u64::from(get_u32(start.get(..16)?, 12)));
    (length >= FIXED && length.is_multiple_of(8)).then_some(length)
}

/// The record that lies at `at`, if these bytes are one of this life.
pub(super) fn open(bytes: &[u8], seed: u32, at: u64, own: u64) -> Option<OpenRecord> {
    let valid = bytes.len() >= FIXED && get_u32(bytes, 8) == sum(bytes, seed, at);
    valid.then(|| OpenRecord::decode(bytes, own)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_at_its_own_place_only() {
        let living =
            Living { number: 3, ids: Some((4, 9)), torn: vec![(8, 16), (32, 40)], ..Living::default() };
        let kv = BTreeMap::from([(vec![0], vec![1, 2, 3]), (vec![4, 4], vec![])]);
        let record = OpenRecord { highest: 12, living: vec![living, Living::default()], kv, unknown: None };
        let mut bytes = record.encode();
        seal(&mut bytes, 8, 77, RECORD_AT);
        assert_eq!(length_of(&bytes), Some(bytes.len()));
        assert_eq!(open(&bytes, 77, RECORD_AT, 8), Some(record));
        for (seed, at, own) in [(78, RECORD_AT, 8), (77, RECORD_AT + 8, 8), (77, RECORD_AT, 9)] {
            assert_eq!(open(&bytes, seed, at, own), None);
        }
        // The flags of the record, then those of its first living segment.
        for (at, must) in [(16, true), (18, false), (64 + 56 + 4, true), (64 + 56 + 6, false)] {
            let mut bytes = bytes.clone();
            bytes[at] = 1;
            seal(&mut bytes, 8, 77, RECORD_AT);
            assert_eq!(open(&bytes, 77, RECORD_AT, 8).unwrap().unknown.is_some(), must, "{at}");
        }
    }
}
