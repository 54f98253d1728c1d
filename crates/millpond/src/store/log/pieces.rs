//! Sets of ids on disk: a row of pieces, each a range or a bitmap, whichever is smaller.
//!
//! ```text
//! first id (8), count (8); the top bit of count says: that many bits follow, in words of 64; bit i is the id first + i
//! ```

use super::bytes::{Cursor, usize_of};

/// Bytes of a piece without its bits.
const HEAD: u64 = 16;
const BITMAP: u64 = 1 << 63;
/// The longest range of one piece.
const LONGEST: u64 = BITMAP - 1;

fn words(first: u64, last: u64) -> u64 {
    (last - first) / 64 + 1
}

/// Ranges of more words than this stand alone.
const LONG: u64 = 4;

/// Ranges that go into one bitmap, or stand alone.
struct Group<'a> {
    ranges: &'a [(u64, u64)],
    is_bitmap: bool,
}

/// Splits sorted ranges: one joins the bitmap before it where that costs no more than standing alone.
fn groups(ranges: &[(u64, u64)]) -> impl Iterator<Item = Group<'_>> {
    let mut rest = ranges;
    std::iter::from_fn(move || {
        let &(first, mut last) = rest.first()?;
        let mut taken = 1;
        // A long range is better off alone.
        while words(first, last) <= LONG || taken > 1 {
            let Some(&(_, next)) = rest.get(taken) else { break };
            let more = words(first, next).saturating_sub(words(first, last));
            if more.saturating_mul(8) > HEAD {
                break;
            }
            last = next;
            taken += 1;
        }
        let is_bitmap = HEAD + words(first, last).saturating_mul(8) < HEAD * taken as u64;
        let (group, others) = rest.split_at(taken);
        rest = others;
        Some(Group { ranges: group, is_bitmap })
    })
}

/// Bytes of these ranges, which are sorted and neither overlap nor touch.
#[cfg(test)]
fn bytes_of(ranges: &[(u64, u64)]) -> u64 {
    groups(ranges)
        .map(|group| match group.ranges {
            [(first, _), .., (_, last)] if group.is_bitmap => HEAD + 8 * words(*first, *last),
            ranges => HEAD * ranges.len() as u64,
        })
        .sum()
}

fn put(buffer: &mut Vec<u8>, first: u64, count: u64) {
    buffer.extend_from_slice(&first.to_le_bytes());
    buffer.extend_from_slice(&count.to_le_bytes());
}

/// Writes these ranges, which are sorted and neither overlap nor touch, and says how many pieces they took.
pub(super) fn encode(buffer: &mut Vec<u8>, ranges: &[(u64, u64)]) -> u32 {
    let mut pieces = 0;
    for group in groups(ranges) {
        match group.ranges {
            [(first, _), .., (_, last)] if group.is_bitmap => {
                let count = words(*first, *last) * 64;
                put(buffer, *first, BITMAP | count);
                pieces += 1;
                let start = buffer.len();
                buffer.resize(start + usize_of(count / 8), 0);
                for id in group.ranges.iter().flat_map(|(low, high)| *low..=*high) {
                    let bit = usize_of(id - first);
                    buffer[start + bit / 8] |= 1 << (bit % 8);
                }
            }
            ranges => {
                for &(mut first, last) in ranges {
                    // Only a range of more than half of all ids takes more than one piece.
                    while last - first >= LONGEST {
                        put(buffer, first, LONGEST);
                        first += LONGEST;
                        pieces += 1;
                    }
                    put(buffer, first, last - first + 1);
                    pieces += 1;
                }
            }
        }
    }
    pieces
}

/// Reads one piece and calls `each` for every range in it, in order; `None` if it is cut or not valid.
pub(super) fn decode(cursor: &mut Cursor<'_>, mut each: impl FnMut(u64, u64)) -> Option<()> {
    let (first, count) = (cursor.u64()?, cursor.u64()?);
    let length = count & !BITMAP;
    let last = first.checked_add(length.checked_sub(1)?);
    if count & BITMAP == 0 {
        each(first, last?);
        return Some(());
    }
    if !length.is_multiple_of(64) {
        return None;
    }
    // The words behind the highest id there is, if any, are zeros.
    let mut run: Option<(u64, u64)> = None;
    for base in (0..length).step_by(64) {
        let word = cursor.u64()?;
        for bit in (0..64).filter(|bit| word & (1 << bit) != 0) {
            let id = first.checked_add(base + bit)?;
            match &mut run {
                Some((_, high)) if *high + 1 == id => *high = id,
                _ => {
                    if let Some((low, high)) = run.replace((id, id)) {
                        each(low, high);
                    }
                }
            }
        }
    }
    if let Some((low, high)) = run {
        each(low, high);
    }
    Some(())
}

/// Reads pieces to the end of `payload`. What is cut or not valid is left out: the checksum that covers it says that
/// nobody wrote it.
pub(super) fn decode_all(payload: &[u8], mut each: impl FnMut(u64, u64)) {
    let mut cursor = Cursor::new(payload);
    while decode(&mut cursor, &mut each).is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(ranges: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let pieces = encode(&mut bytes, ranges);
        assert_eq!(bytes.len() as u64, bytes_of(ranges));
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut cursor = Cursor::new(&bytes);
        for _ in 0..pieces {
            decode(&mut cursor, |low, high| found.push((low, high))).unwrap();
        }
        assert!(cursor.u64().is_none());
        assert_eq!(found, ranges);
        bytes
    }

    #[test]
    fn sets_come_back_and_the_smaller_form_is_used() {
        assert_eq!(round_trip(&[]).len(), 0);
        assert_eq!(round_trip(&[(7, 7)]).len(), 16);
        assert_eq!(round_trip(&[(1, 1 << 40)]).len(), 16);
        assert_eq!(round_trip(&[(1, 2), (1 << 30, 1 << 30)]).len(), 32);
        let scattered: Vec<(u64, u64)> = (0..640).map(|at| (5 + at * 2, 5 + at * 2)).collect();
        assert_eq!(round_trip(&scattered).len(), 16 + 1280 / 8);
        let mut mixed = scattered;
        mixed.extend([(1 << 33, 1 << 34), (u64::MAX - 200, u64::MAX - 190)]);
        mixed.extend((0..20).map(|at| (u64::MAX - 38 + at * 2, u64::MAX - 38 + at * 2)));
        round_trip(&mixed);
    }

    #[test]
    fn a_range_of_all_ids_takes_several_pieces() {
        let mut bytes = Vec::new();
        assert_eq!(encode(&mut bytes, &[(0, u64::MAX)]), 3);
        let mut next = Some(0);
        decode_all(&bytes, |low, high| {
            assert_eq!(next, Some(low));
            next = high.checked_add(1);
        });
        assert_eq!(next, None);
    }

    #[test]
    fn what_is_cut_or_wrong_is_refused() {
        let mut bytes = Vec::new();
        encode(&mut bytes, &(0..50).map(|at| (at * 2, at * 2)).collect::<Vec<_>>());
        for cut in 0..bytes.len() {
            assert!(decode(&mut Cursor::new(&bytes[..cut]), |_, _| {}).is_none());
        }
        for (first, count) in [(0, 0), (0, BITMAP), (9, u64::MAX), (u64::MAX, 2), (0, BITMAP | 63)] {
            let mut bytes = Vec::new();
            bytes.extend_from_slice(&u64::to_le_bytes(first));
            bytes.extend_from_slice(&u64::to_le_bytes(count));
            bytes.extend_from_slice(&[255; 16]);
            assert!(decode(&mut Cursor::new(&bytes), |_, _| {}).is_none(), "{first} {count:x}");
        }
    }
}
