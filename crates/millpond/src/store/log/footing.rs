//! Opening a segment by its footer.

use std::io;

use super::bytes::usize_of;
use super::disk::DiskFile;
use super::footer::{self, Footer, SEAL, Seal};
use super::frame::{self, HEAD};
use super::freed::Freed;
use super::open_record::Living;
use super::recover::Recovery;

impl Recovery<'_> {
    /// Takes over what the footer of a segment says, if it has one that speaks of this life and this end.
    pub(super) fn read_footer(&mut self, part: &Living, replays_kv: bool, listed: bool) -> io::Result<bool> {
        let number = part.number;
        let Some(file) = self.files.get(&number) else { return Ok(false) };
        let (seed, size) = (file.header.seed(), file.header.size);
        let Some(footer) = read(file.file.as_ref(), number, seed, size, listed)? else { return Ok(false) };
        if listed {
            // Written before the record that lists the segment, and about exactly what that record calls the segment.
            if footer.end != part.live_end || !part.torn.is_empty() {
                return Ok(false);
            }
        } else if !is_closed(file.file.as_ref(), seed, footer.end)? {
            // Nobody vouches for what lies below: only a clean close synced it before the footer was written.
            return Ok(false);
        }
        self.index.apply_footer(number, &footer, replays_kv);
        if !listed {
            for (segment, generation) in &footer.gone {
                let (segment, generation) = (*segment, *generation);
                self.index.freed.push(Freed { segment, generation, holder: number, offset: 0, end: 0 });
            }
            self.open_ends.insert(number, (footer.end, u64::MAX));
            self.report.clean = true;
            if let Some(part) = self.index.parts.get_mut(&number) {
                part.about.live_end = footer.end;
                part.about.mark = footer.end;
            }
        }
        Ok(true)
    }
}

/// The footer that the seal of this segment leads to.
fn read(file: &dyn DiskFile, number: u64, seed: u32, size: u64, cached: bool) -> io::Result<Option<Footer>> {
    let read = |bytes: &mut [u8], at| {
        if cached { file.read_at(bytes, at) } else { file.read_uncached_at(bytes, at) }
    };
    let at = footer::seal_at(size);
    let mut bytes = [0; SEAL];
    let got = read(&mut bytes, at)?;
    let Some(seal) = Seal::decode(&bytes[..got], number, seed, at) else { return Ok(None) };
    // Bounded by the file before anything is allocated.
    if seal.offset > at || seal.length > at - seal.offset {
        return Ok(None);
    }
    let mut bytes = vec![0; usize_of(seal.length)];
    let got = read(&mut bytes, seal.offset)?;
    let footer = Footer::decode(&bytes[..got], number, seed, seal.offset);
    Ok(footer.filter(|footer| footer.end == seal.offset))
}

/// Whether the frames end at `end` with a closing batch that says that everything before it was durable.
fn is_closed(file: &dyn DiskFile, seed: u32, end: u64) -> io::Result<bool> {
    let Some(at) = end.checked_sub(HEAD as u64) else { return Ok(false) };
    let mut bytes = [0; HEAD];
    let got = file.read_uncached_at(&mut bytes, at)?;
    let head = frame::parse(&bytes[..got], seed, at);
    let closes = |head: &frame::Head| head.kind == frame::BATCH && head.flags & frame::CLOSED != 0;
    Ok(head.is_some_and(|head| closes(&head) && head.id == at && head.unknown().is_none()))
}
