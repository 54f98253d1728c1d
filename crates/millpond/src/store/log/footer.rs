//! What a segment holds, written behind its last frame so that an open need not read the frames.
//!
//! A footer is found through the seal, which lies at the end of the file. Both vouch only for the life and the end they
//! name.
//!
//! ```text
//! footer   where the frames end (8), lowest and highest id ever stored (8 + 8; lowest above highest: none), bytes of live
//!          values (8), flags (4), blocks (4), pieces of live ids (4), other keys (4), segments let go (4), 12 zero bytes,
//!          the blocks, the pieces, the keys, the segments, what is held
//! block    offset / 8 (4), live entries (4), lowest and highest live id (8 + 8), bytes of their values (8), shortest and
//!          longest value (4 + 4)
//! key      length of the key (4), of the value (4; 2^32 - 1: it is no more), key, value
//! segment  number (8), generation (8)
//! seal     "MPONDEND", checksum (4), flags (4), begin and length of the footer's frame (8 + 8), number (8), 24 zero bytes
//! ```

use super::bytes::{Cursor, get_u32, get_u64, usize_of};
use super::frame;
use super::held::{self, Carried, HeldFor};
use super::pieces;

/// Bytes of the seal.
pub(super) const SEAL: usize = 64;
const MAGIC: &[u8; 8] = b"MPONDEND";
/// Flag of a footer: the segment holds frames of a newer version that may be skipped but not dropped.
const PINNED: u32 = 1;
/// In the flags of the seal, the bits that must be understood.
const MUST: u32 = 0xffff;
const FIXED: usize = 64;
/// In place of the length of a value: the key is no more.
const REMOVED: u32 = u32::MAX;
const BLOCK: usize = 40;
/// A block ends with the first entry that begins this far behind its own first one.
pub(super) const STEP: u64 = 64 * 1024;
/// Bytes kept free for a footer at most.
const ROOM_MOST: u64 = 256 * 1024;

/// A stretch of a segment: where to look for an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Where its first entry begins.
    pub(super) offset: u64,
    /// Live entries that begin in it, up to the next block.
    pub(super) count: u32,
    /// Their lowest and highest id.
    pub(super) low: u64,
    pub(super) high: u64,
    /// Bytes of their values together, and of the shortest and the longest one.
    pub(super) bytes: u64,
    pub(super) shortest: u32,
    pub(super) longest: u32,
}

/// What a segment holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Footer {
    /// Where the frames it speaks of end.
    pub(super) end: u64,
    /// The lowest and the highest id ever stored.
    pub(super) ids: Option<(u64, u64)>,
    pub(super) live_bytes: u64,
    pub(super) pinned: bool,
    pub(super) blocks: Vec<Block>,
    /// Entries that were not settled when it was written.
    pub(super) live: Vec<(u64, u64)>,
    /// Other keys that were put or removed in the segment, as they were at its end.
    pub(super) kv: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Number and generation of segments that frames in this one let go.
    pub(super) gone: Vec<(u64, u64)>,
    /// What the segment held for others.
    pub(super) held: Vec<Carried>,
}

/// Splits entries, which come in the order of their offsets, into blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) blocks: Vec<Block>,
}

impl Blocks {
    /// Adds the entry that lies behind all others.
    pub(super) fn add(&mut self, offset: u64, id: u64, len: u32) {
        match self.blocks.last_mut().filter(|block| offset < block.offset + STEP) {
            Some(block) => {
                block.count += 1;
                block.low = block.low.min(id);
                block.high = block.high.max(id);
                block.bytes += u64::from(len);
                block.shortest = block.shortest.min(len);
                block.longest = block.longest.max(len);
            }
            None => self.blocks.push(Block {
                offset,
                count: 1,
                low: id,
                high: id,
                bytes: len.into(),
                shortest: len,
                longest: len,
            }),
        }
    }
}

/// Bytes that stay free behind the frames of a file of this size, so that a footer mostly has room: it is left out where
/// it has none.
pub(super) fn room(size: u64) -> u64 {
    (size / 64).min(ROOM_MOST)
}

/// The size from which on a file has room for frames up to `end`.
pub(super) fn size_for(end: u64) -> u64 {
    let least = end + SEAL as u64;
    // A 64th of the size stays free, at most ROOM_MOST; one more unit for what the division drops.
    (least + least / 63 + frame::ALIGN).min(least + ROOM_MOST + frame::ALIGN)
}

fn put(buffer: &mut Vec<u8>, number: usize) {
    buffer.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

impl Footer {
    /// The frame of this footer of segment `number`, which will lie at `offset`.
    pub(super) fn encode(&self, number: u64, held: &HeldFor, seed: u32, offset: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1024);
        let start = frame::begin(&mut bytes, frame::FOOTER, 0, number);
        let (low, high) = self.ids.unwrap_or((u64::MAX, 0));
        for number in [self.end, low, high, self.live_bytes] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        put(&mut bytes, usize::from(self.pinned) * PINNED as usize);
        put(&mut bytes, self.blocks.len());
        let pieces_at = bytes.len();
        put(&mut bytes, 0);
        put(&mut bytes, self.kv.len());
        put(&mut bytes, self.gone.len());
        bytes.extend_from_slice(&[0; 12]);
        for block in &self.blocks {
            put(&mut bytes, usize_of(block.offset / frame::ALIGN));
            put(&mut bytes, block.count as usize);
            for number in [block.low, block.high, block.bytes] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            put(&mut bytes, block.shortest as usize);
            put(&mut bytes, block.longest as usize);
        }
        let pieces = pieces::encode(&mut bytes, &self.live);
        bytes[pieces_at..pieces_at + 4].copy_from_slice(&pieces.to_le_bytes());
        for (key, value) in &self.kv {
            put(&mut bytes, key.len());
            put(&mut bytes, value.as_ref().map_or(REMOVED as usize, Vec::len));
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        for (number, generation) in &self.gone {
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&generation.to_le_bytes());
        }
        held::encode(&mut bytes, held);
        frame::finish(&mut bytes, start);
        frame::seal_one(&mut bytes, seed, offset);
        bytes
    }

    /// The footer of segment `number` in this frame, if the frame is valid and what it says can be.
    pub(super) fn decode(bytes: &[u8], number: u64, seed: u32, offset: u64) -> Option<Self> {
        let head = frame::parse(bytes, seed, offset)?;
        let payload = bytes.get(frame::HEAD..)?.get(..head.len as usize)?;
        let valid = head.kind == frame::FOOTER && head.id == number && head.unknown().is_none();
        if !valid || frame::payload_crc(payload) != head.crc || payload.len() < FIXED {
            return None;
        }
        let mut cursor = Cursor::new(payload);
        let end = cursor.u64()?;
        let (low, high) = (cursor.u64()?, cursor.u64()?);
        let ids = (low <= high).then_some((low, high));
        let live_bytes = cursor.u64()?;
        let pinned = cursor.u32()? & PINNED != 0;
        let (blocks, pieces) = (cursor.u32()?, cursor.u32()?);
        let (keys, gone) = (cursor.u32()?, cursor.u32()?);
        cursor.take(12)?;
        let mut footer = Self { end, ids, live_bytes, pinned, ..Self::default() };
        for _ in 0..blocks {
            let block = cursor.take(BLOCK)?;
            footer.blocks.push(Block {
                offset: u64::from(get_u32(block, 0)) * frame::ALIGN,
                count: get_u32(block, 4),
                low: get_u64(block, 8),
                high: get_u64(block, 16),
                bytes: get_u64(block, 24),
                shortest: get_u32(block, 32),
                longest: get_u32(block, 36),
            });
        }
        // A bitmap says much in little room: more ranges than the segment can have entries are not kept.
        let most = usize_of(end / frame::HEAD as u64).min(usize_of(offset));
        for _ in 0..pieces {
            pieces::decode(&mut cursor, |first, last| {
                if footer.live.len() < most {
                    footer.live.push((first, last));
                }
            })?;
        }
        for _ in 0..keys {
            let (length, value) = (cursor.u32()?, cursor.u32()?);
            let key = cursor.take(length as usize)?.to_vec();
            let value = if value == REMOVED { None } else { Some(cursor.take(value as usize)?.to_vec()) };
            footer.kv.push((key, value));
        }
        for _ in 0..gone {
            footer.gone.push((cursor.u64()?, cursor.u64()?));
        }
        footer.held = held::decode(&mut cursor)?;
        footer.is_possible().then_some(footer)
    }

    /// Whether the parts fit together. The checksum says that a log wrote it; this bounds what it can ask for.
    fn is_possible(&self) -> bool {
        let mut left = self.end / frame::HEAD as u64;
        let counted = self.blocks.iter().map(|block| u64::from(block.count)).sum::<u64>();
        let bounded = self.live.iter().all(|(first, last)| {
            let fits = last - first < left;
            left = left.saturating_sub((last - first).saturating_add(1));
            fits && self.ids.is_some_and(|(low, high)| low <= *first && *last <= high)
        });
        let count = self.end / frame::HEAD as u64 - left;
        let ascend = self.blocks.windows(2).all(|pair| pair[0].offset < pair[1].offset);
        let inside = self.blocks.iter().all(|block| block.offset < self.end && block.low <= block.high);
        bounded && counted == count && ascend && inside
    }
}

/// The seal of a segment: where its footer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    /// Where the footer's frame begins.
    pub(super) offset: u64,
    /// Bytes of the footer's frame.
    pub(super) length: u64,
}

/// Where the seal of a file of this size lies.
pub(super) fn seal_at(size: u64) -> u64 {
    size.saturating_sub(SEAL as u64) / frame::ALIGN * frame::ALIGN
}

fn seal_sum(bytes: &[u8], seed: u32, at: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &at.to_le_bytes()), &bytes[12..SEAL])
}

impl Seal {
    /// The seal of segment `number`, which will lie at `at`.
    pub(super) fn encode(&self, number: u64, seed: u32, at: u64) -> [u8; SEAL] {
        let mut bytes = [0; SEAL];
        bytes[..8].copy_from_slice(MAGIC);
        for (place, number) in [(16, self.offset), (24, self.length), (32, number)] {
            bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
        let crc = seal_sum(&bytes, seed, at);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The seal in these bytes, if it is one of this segment, life and place.
    pub(super) fn decode(bytes: &[u8], number: u64, seed: u32, at: u64) -> Option<Self> {
        let bytes = bytes.get(..SEAL)?;
        let valid = bytes[..8] == *MAGIC && get_u32(bytes, 8) == seal_sum(bytes, seed, at);
        // A flag of a later version may change what a footer means; without one the frames say the same.
        let known = get_u32(bytes, 12) & MUST == 0 && get_u64(bytes, 32) == number;
        (valid && known).then(|| Self { offset: get_u64(bytes, 16), length: get_u64(bytes, 24) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer() -> Footer {
        let block =
            |offset, low, high| Block { offset, count: 3, low, high, bytes: 30, shortest: 9, longest: 11 };
        Footer {
            end: 70_000,
            ids: Some((2, 90)),
            live_bytes: 60,
            pinned: true,
            blocks: vec![block(12_304, 5, 7), block(65_600, 8, 20)],
            live: vec![(5, 8), (19, 20)],
            kv: vec![(vec![0], Some(b"meta".to_vec())), (vec![4, 1], None), (vec![4, 2], Some(Vec::new()))],
            gone: vec![(2, 77)],
            held: Vec::new(),
        }
    }

    #[test]
    fn a_footer_comes_back_at_its_own_place_only() {
        let mut held = HeldFor::new();
        held.entry(3).or_default().ids.insert(1, 4);
        let bytes = footer().encode(7, &held, 99, 70_000);
        let found = Footer::decode(&bytes, 7, 99, 70_000).unwrap();
        assert_eq!(found.held.len(), 1);
        assert_eq!((found.held[0].segment, found.held[0].ids.ranges()), (3, vec![(1, 4)]));
        // All other parts: written again it is the same.
        assert_eq!(found.encode(7, &held, 99, 70_000), bytes);
        assert!(found.pinned && found.blocks == footer().blocks && found.kv == footer().kv);
        for (number, seed, offset) in [(8, 99, 70_000), (7, 98, 70_000), (7, 99, 70_008)] {
            assert!(Footer::decode(&bytes, number, seed, offset).is_none());
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Footer::decode(&damaged, 7, 99, 70_000).is_none() || at >= bytes.len() - 7, "{at}");
            assert!(Footer::decode(&bytes[..at], 7, 99, 70_000).is_none() || at >= bytes.len() - 7);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refuse = |change: &dyn Fn(&mut Footer)| {
            let mut footer = footer();
            change(&mut footer);
            let bytes = footer.encode(7, &HeldFor::new(), 99, 70_000);
            assert!(Footer::decode(&bytes, 7, 99, 70_000).is_none());
        };
        refuse(&|footer| footer.live = vec![(5, 1 << 50)]);
        refuse(&|footer| footer.live = vec![(5, 9)]);
        refuse(&|footer| footer.live = vec![(1, 6)]);
        refuse(&|footer| footer.ids = None);
        refuse(&|footer| footer.blocks.swap(0, 1));
        refuse(&|footer| footer.end = 100);
    }

    #[test]
    fn a_file_of_the_size_asked_for_has_the_room() {
        for end in (0..200_000).step_by(8).chain((1 << 23..1 << 25).step_by(81_848)) {
            for size in [size_for(end), size_for(end) + 1, size_for(end) + 65_536, size_for(end) * 3] {
                assert!(seal_at(size) - room(size) >= end, "{end} {size}");
            }
        }
    }

    #[test]
    fn a_seal_comes_back_at_its_own_place_only() {
        let seal = Seal { offset: 70_000, length: 320 };
        let bytes = seal.encode(7, 99, 131_008);
        assert_eq!(Seal::decode(&bytes, 7, 99, 131_008), Some(seal));
        for (number, seed, at) in [(8, 99, 131_008), (7, 98, 131_008), (7, 99, 131_016)] {
            assert_eq!(Seal::decode(&bytes, number, seed, at), None);
        }
        for at in 0..SEAL {
            let mut damaged = bytes;
            damaged[at] ^= 4;
            assert_eq!(Seal::decode(&damaged, 7, 99, 131_008), None, "{at}");
        }
    }
}
