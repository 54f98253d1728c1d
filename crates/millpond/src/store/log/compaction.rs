//! Storing a few old entries again, so that the large segments they lie in can go.
//!
//! The rule bounds what is written for it. Nothing is done while the segments together are not much larger than what lives
//! in them. Then the emptiest one is rewritten, if what lives in it takes at most a quarter of its file and if nobody was
//! settling its entries lately: one that is being drained goes by itself. So a byte is written again at most for every four
//! bytes of files that go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ahead;
use super::core::{Core, Turn};
use super::error::LogError;
use super::frame;
use super::freed;
use super::index::Index;
use super::part::Part;
use super::segment::SMALLEST;
use super::spare::Need;
use crate::key;
use crate::store::Op;

/// A segment is worth rewriting when what lives in it takes at most this part of its file.
const SHARE: u64 = 4;
/// Segments are let be while they are at most this many times as large as what lives in them, and this much larger.
const TIMES: u64 = 2;
const SLACK: u64 = 4 * SMALLEST;
/// Values that are stored again in one batch, in bytes, unless one is larger.
const STEP: u64 = 256 * 1024;

/// Bytes of the frames of everything that lives in a segment.
fn live_span(part: &Part) -> u64 {
    part.live_bytes() + part.live() * frame::span(0)
}

impl Index {
    /// The segment whose few entries are worth storing again.
    fn wasteful(&self, active: u64) -> Option<u64> {
        let (mut size, mut span) = (0, 0);
        let mut best: Option<(u64, u64, u64)> = None;
        for (number, part) in self.parts.iter().filter(|(number, _)| **number != active) {
            let (own, live) = (part.segment.header.size, live_span(part));
            size = own.saturating_add(size);
            span = live.saturating_add(span);
            let held = freed::bytes_bound(&part.held);
            let stays = part.pinned || part.damaged || part.leaving || held > own / 2;
            let few = part.live() > 0 && live.saturating_add(held).saturating_mul(SHARE) <= own;
            // Compared by shares, without a division.
            let emptier = |(_, of, than): (u64, u64, u64)| {
                u128::from(live) * u128::from(of) < u128::from(than) * u128::from(own)
            };
            if few && !stays && best.is_none_or(emptier) {
                best = Some((*number, own, live));
            }
        }
        best.filter(|_| size > span.saturating_mul(TIMES).saturating_add(SLACK)).map(|(number, ..)| number)
    }
}

impl Core {
    /// Stores some entries of the emptiest segment again, if the rule says so.
    pub(super) fn compact(&self, turn: &mut Turn) -> Result<(), LogError> {
        let active = self.append.lock().active.as_ref().map_or(0, |active| active.segment.number());
        let chosen = {
            let index = self.index.read();
            index.wasteful(active).and_then(|number| Some((number, index.parts.get(&number)?.live())))
        };
        let Some((number, live)) = chosen.filter(|(number, _)| turn.unreadable != *number) else {
            return Ok(());
        };
        if turn.watched.replace((number, live)) != Some((number, live)) {
            self.pool.tidy_later();
            return Ok(());
        }
        let entries = match self.survivors(number) {
            Ok(entries) => entries,
            Err(error) => {
                // Whoever is given the entry finds out; its segment stays.
                turn.unreadable = number;
                return Err(error);
            }
        };
        if self.store_again(turn, number, &entries)? {
            turn.watched = Some((number, live - entries.len() as u64));
            self.sync()?;
            self.release();
        }
        self.pool.tidy_later();
        Ok(())
    }

    /// The next entries of a segment with their values.
    fn survivors(&self, number: u64) -> Result<Vec<(u64, Vec<u8>)>, LogError> {
        let mut entries = Vec::new();
        let (mut from, mut bytes) = (Some(0), 0);
        while bytes < STEP {
            let found = {
                let index = self.index.read();
                let part = index.parts.get(&number);
                let id = from.and_then(|from| part?.next(from));
                id.and_then(|id| Some((id, index.find(id, ahead::MOST)?, Arc::clone(&part?.segment))))
            };
            let Some((id, loc, segment)) = found.filter(|(_, loc, _)| loc.segment == number) else { break };
            let value = self.reader.read(self.disk.as_ref(), &segment, &loc, id)?;
            if bytes > 0 && bytes + value.len() as u64 > STEP {
                break;
            }
            bytes += value.len() as u64;
            entries.push((id, value));
            from = id.checked_add(1);
        }
        Ok(entries)
    }

    /// Stores entries again that live in this segment; false where one of them was settled meanwhile.
    fn store_again(
        &self,
        turn: &mut Turn,
        number: u64,
        entries: &[(u64, Vec<u8>)],
    ) -> Result<bool, LogError> {
        let keys: Vec<_> = entries.iter().map(|(id, _)| key::entry(*id)).collect();
        let ops: Vec<Op<'_>> =
            keys.iter().zip(entries).map(|(key, (_, value))| Op::Put(key, value)).collect();
        turn.batch.build(&ops, &self.index.read(), &[], &[]);
        let length = turn.batch.bytes().len();
        if !self.pool.meets(Need::Reserve) {
            return Ok(false);
        }
        let fits = self.append.lock().active.as_ref().is_some_and(|active| active.fits(length));
        if !fits {
            self.rotate(turn, length, true)?;
        }
        let mut append = self.append.lock();
        let Some(active) = append.active.as_mut().filter(|active| active.fits(length)) else {
            return Ok(false);
        };
        // ORDER: acks that need no turn take this lock too, so an entry that lives now is not settled before it is visible
        // at its new place, and an ack that comes later names that place.
        let lives = {
            let index = self.index.read();
            entries.iter().all(|(id, _)| index.segment_of(*id) == Some(number))
        };
        if !lives {
            return Ok(false);
        }
        self.write(active, &mut turn.batch, true)?;
        self.rewritten.fetch_add(length as u64, Ordering::Relaxed);
        Ok(true)
    }
}
