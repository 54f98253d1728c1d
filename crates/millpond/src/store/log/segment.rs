//! A segment file: its name, its header, and its open file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bytes::{get_u32, get_u64};
use super::disk::DiskFile;
use super::error::LogError;
use super::planted::{self, Fault};

/// The format this version writes, and the newest it reads.
pub(super) const FORMAT: u32 = 1;
/// The two header copies lie in blocks of this size, as do the two copies of the open record.
pub(super) const BLOCK: u64 = 4096;
/// [`BLOCK`] as a size in memory.
pub(super) const BLOCK_BYTES: usize = 4096;
/// Where the first copy of the open record begins.
pub(super) const RECORD_AT: u64 = 2 * BLOCK;
/// Bytes of one header copy.
pub(super) const HEADER: usize = 72;
/// The smallest segment.
pub(super) const SMALLEST: u64 = 64 * 1024;

const MAGIC: &[u8; 8] = b"MPONDSEG";
const SUFFIX: &str = ".seg";
const DIGITS: usize = 16;

/// Flag of a header that may be ignored: behind the frames of this life lie bytes of a former one, not zeros.
const RECYCLED: u32 = 1;

/// Which queue a file belongs to.
pub(super) type Identity = [u8; 16];

/// What a file life begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) identity: Identity,
    pub(super) generation: u64,
    pub(super) number: u64,
    pub(super) size: u64,
    /// Behind the frames of this life may lie bytes of a former one.
    pub(super) recycled: bool,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        // 12..16 flags that must be understood, 20..24 reserved: none yet.
        bytes[16..20].copy_from_slice(&if self.recycled { RECYCLED } else { 0 }.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.identity);
        bytes[40..48].copy_from_slice(&self.generation.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.number.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.size.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..64]);
        bytes[64..68].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header in the first two blocks of a file; `None` when neither copy checks.
    pub(super) fn decode(start: &[u8]) -> Result<Option<Self>, LogError> {
        let first = start.get(..HEADER).unwrap_or_default();
        let second = start.get(BLOCK_BYTES..BLOCK_BYTES + HEADER).unwrap_or_default();
        for copy in [first, second] {
            if copy.len() == HEADER && copy[..8] == *MAGIC && get_u32(copy, 64) == crc32c::crc32c(&copy[..64])
            {
                understand(copy)?;
                let mut identity = Identity::default();
                identity.copy_from_slice(&copy[24..40]);
                return Ok(Some(Self {
                    identity,
                    generation: get_u64(copy, 40),
                    number: get_u64(copy, 48),
                    size: get_u64(copy, 56),
                    recycled: get_u32(copy, 16) & RECYCLED != 0,
                }));
            }
        }
        // Two equal copies with the right magic are no accident even where this version's checksum does not fit them:
        // a later format may sum differently.
        if first.len() == HEADER && first == second && first[..8] == *MAGIC {
            understand(first)?;
        }
        Ok(None)
    }

    /// What every checksum of this life starts from.
    pub(super) fn seed(&self) -> u32 {
        let seed = crc32c::crc32c(&self.identity);
        let generation = if planted::is(Fault::IgnoreGeneration) { 0 } else { self.generation };
        let seed = crc32c::crc32c_append(seed, &generation.to_le_bytes());
        crc32c::crc32c_append(seed, &self.number.to_le_bytes())
    }
}

fn understand(copy: &[u8]) -> Result<(), LogError> {
    let found = get_u32(copy, 8);
    if found > FORMAT {
        return Err(LogError::NewerFormat { found, known: FORMAT });
    }
    match get_u32(copy, 12) {
        0 => Ok(()),
        bits => Err(LogError::UnknownFeature { what: "header flags", bits }),
    }
}

/// The name of a segment.
pub(super) fn name(number: u64) -> String {
    format!("{number:0DIGITS$}{SUFFIX}")
}

/// The name a segment is made under.
pub(super) fn temporary_name(number: u64) -> String {
    format!("{}.new", name(number))
}

/// The number in a name, with whether it is a name that is still being made.
pub(super) fn number_of(file: &str) -> Option<(u64, bool)> {
    let (stem, temporary) = match file.strip_suffix(".new") {
        Some(stem) => (stem, true),
        None => (file, false),
    };
    let digits = stem.strip_suffix(SUFFIX)?;
    // One number has one name, so two files never claim the same place.
    let number = digits.parse().ok().filter(|number| name(*number) == stem)?;
    Some((number, temporary))
}

/// An open segment file.
pub(super) struct Segment {
    pub(super) header: Header,
    pub(super) seed: u32,
    pub(super) file: Arc<dyn DiskFile>,
    /// Readers never look behind this: what lies there may be half written.
    written: AtomicU64,
}

impl Segment {
    pub(super) fn new(header: Header, file: Arc<dyn DiskFile>, written: u64) -> Self {
        Self { header, seed: header.seed(), file, written: AtomicU64::new(written) }
    }

    pub(super) fn number(&self) -> u64 {
        self.header.number
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(super) fn set_written(&self, end: u64) {
        self.written.store(end, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers() {
        assert_eq!(name(7), "0000000000000007.seg");
        assert_eq!(number_of(&name(7)), Some((7, false)));
        assert_eq!(number_of(&temporary_name(7)), Some((7, true)));
        for other in [
            "LOCK",
            "7.seg",
            "000000000000000x.seg",
            "+000000000000007.seg",
            "0000000000000007.segment",
            "00000000000000007.seg",
        ] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }

    #[test]
    fn one_header_copy_is_enough_and_newer_ones_are_refused() {
        let header = Header { identity: [7; 16], generation: 1, number: 2, size: SMALLEST, recycled: true };
        let mut file = vec![0; 2 * BLOCK_BYTES];
        file[..HEADER].copy_from_slice(&header.encode());
        file[BLOCK_BYTES..][..HEADER].copy_from_slice(&header.encode());
        for damaged in [0, 8, 12, 30, 66, BLOCK_BYTES + 3] {
            let mut copy = file.clone();
            copy[damaged] ^= 1;
            assert_eq!(Header::decode(&copy).unwrap(), Some(header));
        }
        for (at, with_sum) in [(8, true), (8, false), (12, true)] {
            let mut copy = file.clone();
            for start in [0, BLOCK_BYTES] {
                copy[start + at] += 1;
                if with_sum {
                    let sum = crc32c::crc32c(&copy[start..start + 64]).to_le_bytes();
                    copy[start + 64..start + 68].copy_from_slice(&sum);
                }
            }
            assert!(Header::decode(&copy).is_err());
        }
    }
}
