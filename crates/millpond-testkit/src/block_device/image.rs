//! What a disk holds, in memory and sparse, and what a crash leaves of the writes that were not flushed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::SECTOR;
use super::write_log::{Entry, WriteLog};
use crate::random::Random;

const BLOCK: usize = 4096;
const SECTOR_BYTES: usize = 512;

type Block = [u8; BLOCK];

/// The content of a disk. Blocks that were never written are zeros and take no memory; a clone shares blocks.
#[derive(Clone, Debug, Default)]
pub struct Image {
    bytes: u64,
    blocks: BTreeMap<u64, Arc<Block>>,
}

impl Image {
    /// Reads an image file.
    ///
    /// # Errors
    /// That of reading it.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut image = Self { bytes: file.metadata()?.len(), blocks: BTreeMap::new() };
        let mut chunk = vec![0; 1 << 20];
        let mut number = 0;
        loop {
            let length = fill(&mut file, &mut chunk)?;
            if length == 0 {
                return Ok(image);
            }
            for bytes in chunk[..length].chunks(BLOCK) {
                if bytes.iter().any(|byte| *byte != 0) {
                    let mut block = [0; BLOCK];
                    block[..bytes.len()].copy_from_slice(bytes);
                    image.blocks.insert(number, Arc::new(block));
                }
                number += 1;
            }
        }
    }

    /// Writes the image to a file, which is replaced.
    ///
    /// # Errors
    /// That of writing it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.bytes)?;
        for (number, block) in &self.blocks {
            file.write_all_at(&block[..], number * BLOCK as u64)?;
        }
        Ok(())
    }

    /// Writes those sectors of `data` at `sector` for which `is_kept` says so.
    fn apply(&mut self, sector: u64, data: &[u8], mut is_kept: impl FnMut() -> bool) {
        for (number, bytes) in (sector..).zip(data.chunks_exact(SECTOR_BYTES)) {
            if !is_kept() {
                continue;
            }
            let at = number * SECTOR;
            let block = self.blocks.entry(at / BLOCK as u64).or_insert_with(|| Arc::new([0; BLOCK]));
            // A block is a whole number of sectors, and the offset in it is below its size.
            #[expect(clippy::cast_possible_truncation, reason = "below the size of a block")]
            let within = (at % BLOCK as u64) as usize;
            Arc::make_mut(block)[within..within + SECTOR_BYTES].copy_from_slice(bytes);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// What a crash does to writes that reached the device and were not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The operating system ends: the device keeps all of them.
    OperatingSystem,
    /// The power goes: each of them is kept, lost or, by sectors, torn, as the seed says.
    Power {
        /// Of every choice.
        seed: u64,
    },
}

/// A disk that follows a recording.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    log: &'a WriteLog,
    /// What no crash takes away.
    durable: Image,
    /// Entries after the last flush, and up to where the recording was followed.
    unflushed: Vec<&'a Entry>,
    next: usize,
}

impl<'a> Replay<'a> {
    /// A disk with this content when the recording began.
    pub fn new(log: &'a WriteLog, begin: Image) -> Self {
        Self { log, durable: begin, unflushed: Vec::new(), next: 0 }
    }

    /// Follows the recording until this many entries have reached the device.
    ///
    /// # Errors
    /// That of reading the recording.
    pub fn advance(&mut self, entries: usize) -> io::Result<()> {
        let upto = entries.min(self.log.entries.len());
        for entry in self.log.entries.get(self.next..upto).unwrap_or_default() {
            if entry.flushes {
                for entry in std::mem::take(&mut self.unflushed) {
                    self.durable.apply(entry.sector, &self.log.data(entry)?, || true);
                }
            }
            if entry.writes() {
                self.unflushed.push(entry);
            }
        }
        self.next = self.next.max(upto);
        Ok(())
    }

    /// What a crash at this moment leaves.
    ///
    /// # Errors
    /// That of reading the recording.
    pub fn crash(&self, crash: Crash) -> io::Result<Image> {
        let mut image = self.durable.clone();
        let mut random = match crash {
            Crash::OperatingSystem => None,
            Crash::Power { seed } => Some(Random::new(seed)),
        };
        for entry in &self.unflushed {
            let fate = match &mut random {
                Some(random) if !entry.is_durable => random.below(8),
                _ => KEPT,
            };
            let is_whole = entry.sector < WHOLE;
            match (fate, &mut random) {
                // Lost.
                (1..=3, _) => {}
                // Torn: a device writes sectors in any order.
                (4..=5, Some(random)) if !is_whole => {
                    image.apply(entry.sector, &self.log.data(entry)?, || random.below(2) == 0);
                }
                _ => image.apply(entry.sector, &self.log.data(entry)?, || true),
            }
        }
        Ok(image)
    }
}

/// One of the fates of a write that keep it whole.
const KEPT: u64 = 0;
/// Writes that begin before this sector are never torn: ext4 takes it that its super block, two sectors with one
/// checksum, is old or new, and refuses to mount otherwise.
const WHOLE: u64 = 8;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A recording with the given writes (sector, content, sectors) and flushes (`None`).
    fn recording(entries: &[Option<(u64, u8, u64)>]) -> WriteLog {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut sector = |words: [u64; 4]| {
            let mut bytes = words.map(u64::to_le_bytes).concat();
            bytes.resize(512, 0);
            file.write_all(&bytes).unwrap();
        };
        sector([0x006a_7366_7773_6872, 1, 0, 512]);
        for entry in entries {
            match *entry {
                None => sector([0, 0, 1, 0]),
                Some((at, content, sectors)) => {
                    sector([at, sectors, 0, 0]);
                    for _ in 0..sectors {
                        sector([u64::from_le_bytes([content; 8]); 4]);
                    }
                }
            }
        }
        WriteLog::open(file.path()).unwrap()
    }

    fn first_byte(image: &Image, sector: u64) -> u8 {
        let at = usize::try_from(sector * SECTOR).unwrap();
        image.blocks.get(&(at / BLOCK).try_into().unwrap()).map_or(0, |block| block[at % BLOCK])
    }

    #[test]
    fn a_flush_makes_durable_what_came_before_it() {
        let log = recording(&[Some((3, 1, 1)), None, Some((20, 2, 1))]);
        let mut replay = Replay::new(&log, Image { bytes: 1 << 16, ..Image::default() });
        let mut lost = 0;
        replay.advance(3).unwrap();
        for seed in 0..100 {
            let image = replay.crash(Crash::Power { seed }).unwrap();
            assert_eq!(first_byte(&image, 3), 1);
            lost += u32::from(first_byte(&image, 20) == 0);
        }
        assert!((30..70).contains(&lost), "{lost} of 100 lost");
        assert_eq!(first_byte(&replay.crash(Crash::OperatingSystem).unwrap(), 20), 2);
    }

    #[test]
    fn before_the_flush_nothing_is_durable() {
        let log = recording(&[Some((3, 1, 1)), None]);
        let mut replay = Replay::new(&log, Image { bytes: 1 << 16, ..Image::default() });
        replay.advance(1).unwrap();
        let images = (0..50).map(|seed| replay.crash(Crash::Power { seed }).unwrap());
        assert!(images.into_iter().any(|image| first_byte(&image, 3) == 0));
    }

    #[test]
    fn a_write_is_torn_between_sectors_and_never_within() {
        let log = recording(&[Some((12, 9, 8))]);
        let mut replay = Replay::new(&log, Image { bytes: 1 << 16, ..Image::default() });
        replay.advance(1).unwrap();
        let mut torn = 0;
        for seed in 0..100 {
            let image = replay.crash(Crash::Power { seed }).unwrap();
            let kept: Vec<u8> = (12..20).map(|sector| first_byte(&image, sector)).collect();
            assert!(kept.iter().all(|byte| [0, 9].contains(byte)));
            torn += u32::from(kept.contains(&0) && kept.contains(&9));
        }
        assert!(torn > 10, "{torn} of 100 torn");
    }

    #[test]
    fn the_later_of_two_writes_of_a_sector_wins() {
        let log = recording(&[Some((3, 1, 1)), Some((3, 2, 1))]);
        let mut replay = Replay::new(&log, Image { bytes: 1 << 16, ..Image::default() });
        replay.advance(2).unwrap();
        assert_eq!(first_byte(&replay.crash(Crash::OperatingSystem).unwrap(), 3), 2);
    }

    #[test]
    fn an_image_is_read_as_it_was_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = vec![0; 40_960];
        bytes[5000] = 7;
        bytes[40_959] = 8;
        std::fs::write(file.path(), &bytes).unwrap();
        let image = Image::read(file.path()).unwrap();
        assert_eq!(image.blocks.len(), 2);
        image.write(file.path()).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
    }
}
