//! Whether a file may have come into use, told by one look through it.
//!
//! A spare is zeros, or bytes of a former life. What this life writes to a file begins with an open record and goes on with
//! batches, and their checksums know the life.

use std::io;

use super::bytes::{get_u32, usize_of};
use super::frame::{self, ALIGN, HEAD};
use super::open_record;
use super::recover::Candidate;
use super::scan::Window;
use super::segment::{BLOCK_BYTES, RECORD_AT};

/// Bytes looked at in one go.
const STEP: usize = 64 * 1024;

/// Whether an open record or the header of a batch of this life lies anywhere in the file.
///
/// The cache is asked: it shows what was written last, so what the device has of this life shows up here. A trace says
/// nothing more than that a closer look, past the cache, is due.
pub(super) fn may_be_in_use(file: &Candidate) -> io::Result<bool> {
    let (seed, number) = (file.header.seed(), file.header.number);
    let mut window = Window::cached(file.file.as_ref())?;
    let mut at = RECORD_AT;
    while at < window.len {
        // A header may begin in this step and end in the next one.
        let bytes = window.at(at, STEP + HEAD)?;
        let end = bytes.len().min(STEP);
        if end == 0 {
            break;
        }
        let blank = bytes[..end].chunks(64).all(|row| row.iter().fold(0, |all, byte| all | byte) == 0);
        if !blank {
            if begins_batch(bytes, end, seed, at) {
                return Ok(true);
            }
            let lengths: Vec<_> = (0..end)
                .step_by(BLOCK_BYTES)
                .filter_map(|place| Some((at + place as u64, open_record::length_of(bytes.get(place..)?)?)))
                .collect();
            for (begin, length) in lengths {
                let record = window.at(begin, length)?.get(..length);
                if record.and_then(|bytes| open_record::open(bytes, seed, begin, number)).is_some() {
                    return Ok(true);
                }
            }
        }
        at += end as u64;
    }
    Ok(false)
}

/// Whether the header of a batch lies in the first `end` of these bytes, which lie at `at` in the file.
fn begins_batch(bytes: &[u8], end: usize, seed: u32, at: u64) -> bool {
    (0..end).step_by(usize_of(ALIGN)).any(|place| {
        let head = bytes.get(place..place + HEAD);
        // Without the two comparisons a checksum would be made of every eight bytes of the former life.
        head.is_some_and(|head| {
            head[12] == frame::BATCH
                && get_u32(head, 4) == 0
                && frame::parse(head, seed, at + place as u64).is_some()
        })
    })
}
