//! The bytes of a file as shared sectors, so that thousands of images of one file cost what differs between them.

use std::sync::Arc;

/// Bytes of a sector: old or new after a crash, never a mixture.
pub(crate) const SECTOR: usize = 512;

/// One sector with a hash of its bytes.
pub(crate) struct Block {
    bytes: [u8; SECTOR],
    hash: u64,
}

/// A sector; `None` is one of zeros.
pub(crate) type Sector = Option<Arc<Block>>;

/// A step of a hash: every bit of both goes into every bit of the result.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ 0x9E37_79B9_7F4A_7C15) * u128::from(value ^ 0xD6E8_FEB8_6659_FD93);
    let [low, high] = [product, product >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)));
    (low.unwrap_or(0) ^ high.unwrap_or(0)).wrapping_add(hash.rotate_left(29))
}

/// The sector with these bytes.
pub(crate) fn sector(bytes: &[u8; SECTOR]) -> Sector {
    if *bytes == [0; SECTOR] {
        return None;
    }
    let words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    Some(Arc::new(Block { hash: words.fold(1, mix), bytes: *bytes }))
}

/// Whether two sectors hold the same bytes.
pub(crate) fn is_same(one: &Sector, other: &Sector) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one.bytes == other.bytes,
        (None, None) => true,
        _ => false,
    }
}

/// The bytes of one file.
#[derive(Clone, Default)]
pub(crate) struct Content {
    sectors: Vec<Sector>,
    pub(crate) len: u64,
}

impl Content {
    pub(crate) fn get(&self, at: usize) -> Sector {
        self.sectors.get(at).cloned().flatten()
    }

    pub(crate) fn set(&mut self, at: usize, sector: Sector) {
        if self.sectors.len() <= at {
            self.sectors.resize(at + 1, None);
        }
        self.sectors[at] = sector;
    }

    /// What sector `at` becomes when `bytes` are written at `offset` of the file.
    pub(crate) fn written(&self, at: usize, bytes: &[u8], offset: usize) -> Sector {
        let start = at * SECTOR;
        let mut new = self.get(at).map_or([0; SECTOR], |block| block.bytes);
        let from = offset.max(start);
        let to = (offset + bytes.len()).min(start + SECTOR);
        new[from - start..to - start].copy_from_slice(&bytes[from - offset..to - offset]);
        sector(&new)
    }

    /// The file ends here from now on; what lay behind is zeros should it grow again.
    pub(crate) fn cut(&mut self, len: u64) {
        self.len = len;
        let whole = index(len);
        self.sectors.truncate(whole + 1);
        let rest = index_in(len);
        if let Some(Some(last)) = self.sectors.get(whole) {
            let mut bytes = last.bytes;
            bytes[rest..].fill(0);
            self.sectors[whole] = sector(&bytes);
        }
    }

    /// Fills `bytes` from `offset` as far as the file goes.
    pub(crate) fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let room = self.len.saturating_sub(offset);
        let count = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let (mut sector, mut skip, mut done) = (index(offset), index_in(offset), 0);
        while done < count {
            let step = (SECTOR - skip).min(count - done);
            let to = &mut bytes[done..done + step];
            match self.sectors.get(sector) {
                Some(Some(block)) => to.copy_from_slice(&block.bytes[skip..skip + step]),
                _ => to.fill(0),
            }
            done += step;
            (sector, skip) = (sector + 1, 0);
        }
        count
    }

    pub(crate) fn hash(&self) -> u64 {
        let mut hash = mix(7, self.len);
        for (at, block) in self.sectors.iter().enumerate() {
            if let Some(block) = block {
                hash = hash.wrapping_add(mix(at as u64 + 1, block.hash));
            }
        }
        hash
    }
}

/// The sector of an offset.
pub(crate) fn index(offset: u64) -> usize {
    usize::try_from(offset / SECTOR as u64).unwrap_or(usize::MAX)
}

fn index_in(offset: u64) -> usize {
    usize::try_from(offset % SECTOR as u64).unwrap_or(0)
}
