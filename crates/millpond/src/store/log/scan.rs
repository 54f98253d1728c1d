//! Reading a segment from end to end: every valid frame, and every stretch that is none.

use std::io;

use super::bytes::usize_of;
use super::disk::DiskFile;
use super::frame::{self, ALIGN, HEAD, Head};
use super::planted::{self, Fault};

const WINDOW: usize = 1024 * 1024;
const SMALL: usize = 16 * 1024;
/// Reads begin at multiples of this.
const PAGE: u64 = 4096;

/// The part of a file that is in memory.
pub(super) struct Window<'a> {
    file: &'a dyn DiskFile,
    /// Where the file ends.
    pub(super) len: u64,
    start: u64,
    bytes: Vec<u8>,
    /// The cache may be asked: what is read was durable before anybody relied on it.
    cached: bool,
    /// Bytes of one read.
    step: usize,
}

impl<'a> Window<'a> {
    /// For reading from the device, whatever the cache holds.
    pub(super) fn new(file: &'a dyn DiskFile) -> io::Result<Self> {
        Ok(Self { file, len: file.len()?, start: 0, bytes: Vec::new(), cached: false, step: WINDOW })
    }

    /// For reading what is vouched for.
    pub(super) fn cached(file: &'a dyn DiskFile) -> io::Result<Self> {
        Ok(Self { cached: true, ..Self::new(file)? })
    }

    /// For reading a little.
    pub(super) fn small(file: &'a dyn DiskFile) -> io::Result<Self> {
        Ok(Self { step: SMALL, ..Self::new(file)? })
    }

    /// The bytes from `at`: at least `want` of them, fewer only where the file ends.
    pub(super) fn at(&mut self, at: u64, want: usize) -> io::Result<&[u8]> {
        let want = want.min(usize_of(self.len.saturating_sub(at)));
        let end = self.start + self.bytes.len() as u64;
        if at < self.start || at + want as u64 > end {
            let start = at / PAGE * PAGE;
            let length = usize_of(at - start).saturating_add(want).max(self.step);
            let length = length.min(usize_of(self.len.saturating_sub(start)));
            self.bytes.resize(length, 0);
            // A file that shrinks while it is read ends where it ends now.
            let got = if self.cached || planted::is(Fault::ReadThroughCache) {
                self.file.read_at(&mut self.bytes, start)?
            } else {
                self.file.read_uncached_at(&mut self.bytes, start)?
            };
            self.bytes.truncate(got);
            self.start = start;
            self.len = self.len.min(if got < length { start + got as u64 } else { self.len });
        }
        Ok(self.bytes.get(usize_of(at - self.start)..).unwrap_or_default())
    }
}

/// A stretch that is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The ids that may have been in it, where that is known. Ids mostly ascend, so the neighbours bound them.
    pub(super) low: Option<u64>,
    pub(super) high: Option<u64>,
}

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Stretches before the last valid frame, in order.
    pub(super) bad: Vec<Bad>,
    /// Where the last valid frame ends.
    pub(super) end: u64,
    /// Where the last byte behind `end` that is not zero ends; `end` when there is none.
    pub(super) junk_end: u64,
    /// Where the last frame ends that has a header of this life and no valid payload; 0 when there is none.
    pub(super) own_end: u64,
    /// The entry whose header lies at `end` and whose payload does not check.
    pub(super) junk_id: Option<u64>,
    /// The largest mark.
    pub(super) mark: u64,
    /// The last frame is the closing batch.
    pub(super) closed: bool,
    /// The highest id that was seen.
    pub(super) last_id: Option<u64>,
    /// The file is shorter than the stretch asked for.
    pub(super) cut: bool,
}

/// What to read.
pub(super) struct Stretch<'a> {
    pub(super) seed: u32,
    pub(super) from: u64,
    /// The end, where somebody vouches for one.
    pub(super) to: Option<u64>,
    /// Where else the frames end, if the file goes that far.
    pub(super) most: u64,
    /// Stretches that are known to be no frames.
    pub(super) torn: &'a [(u64, u64)],
}

struct Scan<'a, 'f> {
    window: &'a mut Window<'f>,
    seed: u32,
    end: u64,
    found: Found,
    /// Where the current bad stretch began.
    bad_from: Option<u64>,
    /// The last entry whose header checks and whose payload does not, with its begin and its end.
    junk: Option<(u64, u64, u64)>,
    /// How many bad stretches have seen the entry behind them.
    bounded: usize,
}

/// Calls `each` for every valid frame, with its offset and, unless it is an entry, its payload.
pub(super) fn scan<E: From<io::Error>>(
    window: &mut Window<'_>,
    stretch: &Stretch<'_>,
    mut each: impl FnMut(u64, &Head, &[u8]) -> Result<(), E>,
) -> Result<Found, E> {
    let end = stretch.to.unwrap_or(stretch.most).min(window.len);
    let cut = stretch.to.is_some_and(|to| to > window.len);
    let found = Found { end: stretch.from, junk_end: stretch.from, cut, ..Found::default() };
    let mut scan = Scan { window, seed: stretch.seed, end, found, bad_from: None, junk: None, bounded: 0 };
    let mut torn = stretch.torn.iter().peekable();
    let mut at = stretch.from;
    let mut payload = Vec::new();
    while at < end {
        if let Some((from, to)) = torn.next_if(|(from, _)| *from <= at) {
            if *to > at {
                scan.close_bad((*from).max(scan.found.end));
                at = *to;
            }
            continue;
        }
        let Some(head) = scan.head(at)? else {
            at = scan.skip(at)?;
            continue;
        };
        let next = at + head.span();
        if !scan.payload(at, &head, &mut payload)? {
            // The header is of this life and place, so no other frame begins before `next`.
            scan.bad_from.get_or_insert(at);
            scan.found.junk_end = next.min(end);
            scan.found.own_end = next.min(end);
            scan.junk = (head.kind == frame::ENTRY).then_some((head.id, at, next));
            at = next;
            continue;
        }
        if head.kind == frame::FOOTER {
            // It ends what the segment holds and is no part of it.
            scan.close_bad(at);
        } else {
            each(at, &head, &payload)?;
            scan.valid(at, next, &head);
        }
        at = next;
    }
    scan.found.junk_end = scan.found.junk_end.max(scan.found.end);
    scan.found.junk_id = scan.junk.map(|(id, ..)| id);
    Ok(scan.found)
}

impl Scan<'_, '_> {
    /// The header at this place, if it is one and its frame ends within bounds.
    fn head(&mut self, at: u64) -> io::Result<Option<Head>> {
        let bytes = self.window.at(at, HEAD)?;
        Ok(frame::parse(bytes, self.seed, at))
    }

    /// Checks the payload, and keeps it unless it is an entry's.
    fn payload(&mut self, at: u64, head: &Head, kept: &mut Vec<u8>) -> io::Result<bool> {
        kept.clear();
        let from = at + HEAD as u64;
        if at + head.span() > self.end {
            return Ok(false);
        }
        let (mut done, mut crc) = (0, 0);
        while done < u64::from(head.len) {
            let want = usize_of(u64::from(head.len) - done).min(WINDOW / 2);
            let bytes = self.window.at(from + done, want)?;
            let Some(piece) = bytes.get(..want) else { return Ok(false) };
            crc = crc32c::crc32c_append(crc, piece);
            if head.kind != frame::ENTRY {
                kept.extend_from_slice(piece);
            }
            done += want as u64;
        }
        Ok(crc == head.crc || planted::is(Fault::IgnorePayloadChecksum))
    }

    /// Steps over bytes that are no frame: one step, or a run of zeros at once.
    fn skip(&mut self, at: u64) -> io::Result<u64> {
        self.bad_from.get_or_insert(at);
        let room = usize_of(self.end - at);
        let bytes = self.window.at(at, usize_of(ALIGN))?;
        let bytes = &bytes[..bytes.len().min(room)];
        let zeros = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len()) as u64;
        if bytes.is_empty() {
            return Ok(self.end);
        }
        if zeros >= ALIGN {
            return Ok(at + zeros / ALIGN * ALIGN);
        }
        if zeros < bytes.len() as u64 {
            self.found.junk_end = (at + ALIGN).min(self.end);
        }
        Ok(at + ALIGN)
    }

    fn close_bad(&mut self, to: u64) {
        let junk = self.junk.take();
        if let Some(from) = self.bad_from.take().filter(|from| *from < to) {
            let before = self.found.last_id.map(|id| id.saturating_add(1));
            // Where one frame is the whole stretch, its header tells all; else other entries may be beside it.
            let only = junk.filter(|(_, begin, end)| (*begin, *end) == (from, to)).map(|(id, ..)| id);
            self.found.bad.push(Bad { from, to, low: only.or(before), high: only });
        }
    }

    /// Bounds the bad stretches since the entry before by this one.
    fn bound(&mut self, id: u64) {
        let open = self.found.bad[self.bounded..].iter_mut().filter(|bad| bad.high.is_none());
        for bad in open {
            let high = id.checked_sub(1);
            if bad.low.is_some_and(|low| high < Some(low)) {
                (bad.low, bad.high) = (None, None);
            } else {
                bad.high = high;
            }
        }
        self.bounded = self.found.bad.len();
    }

    fn valid(&mut self, at: u64, next: u64, head: &Head) {
        let id = (head.kind == frame::ENTRY).then_some(head.id);
        self.close_bad(at);
        self.found.end = next;
        self.found.closed = head.kind == frame::BATCH && head.flags & frame::CLOSED != 0;
        if head.kind == frame::BATCH {
            self.found.mark = self.found.mark.max(head.id);
        }
        if let Some(id) = id {
            self.bound(id);
            self.found.last_id = Some(self.found.last_id.map_or(id, |last| last.max(id)));
        }
    }
}
