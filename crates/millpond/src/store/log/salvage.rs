//! Giving up what is damaged, so that the rest is delivered: the bytes are copied aside, a frame says that the stretch is
//! lost, and nobody stumbles over it again.

use std::sync::Arc;

use super::bytes::usize_of;
use super::core::{Core, Turn};
use super::disk::DiskFile;
use super::error::LogError;
use super::frame::{self, ALIGN, HEAD};
use super::index::Loc;
use super::lost::Lost;
use super::quarantine;
use super::segment::{self, Segment};
use crate::store::{Damage, LostEntry};

/// A stretch that is about to be given up, with the segment it lies in.
#[derive(Clone, Debug)]
pub(super) struct GivenUp {
    pub(super) segment: u64,
    pub(super) lost: Lost,
}

/// What was given up since the open.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    /// Damage that was found by reading.
    pub(super) damage: Vec<Damage>,
    /// Entries that are gone and that nobody was told of.
    pub(super) entries: Vec<LostEntry>,
}

impl Core {
    /// Prepares the frames that give up what the open found damaged. Done before the first frame is written, because an
    /// open changes nothing.
    pub(super) fn give_up_found(&self, turn: &mut Turn) {
        for damage in std::mem::take(&mut turn.damage) {
            let Some((number, false)) = segment::number_of(&damage.file) else { continue };
            let Some(segment) = self.index.read().segment(number).map(Arc::clone) else { continue };
            let stretch = (damage.offset, damage.offset.saturating_add(damage.bytes));
            let may_be = damage.first_id.zip(damage.last_id);
            let lost = self.set_aside(&segment, stretch, may_be);
            turn.given_up.push(GivenUp { segment: number, lost });
        }
    }

    /// Copies a stretch aside if it holds a frame header of its life, and says what is lost with it.
    fn set_aside(&self, segment: &Segment, stretch: (u64, u64), may_be: Option<(u64, u64)>) -> Lost {
        let generation = segment.header.generation;
        let ids = headers(segment.file.as_ref(), segment.seed, stretch);
        if ids.is_some() {
            // Never a condition: without room, or where it cannot be read, the rest is delivered all the same.
            let _ = quarantine::keep(self.disk.as_ref(), segment.file.as_ref(), generation, stretch);
        }
        Lost { generation, bytes: stretch, may_be, ids: ids.unwrap_or_default() }
    }

    /// Gives up the entry `id`, whose frame at `loc` does not check although it was read past the cache.
    ///
    /// Fails only where the log cannot say so durably; then the entry stays as it is.
    pub(super) fn give_up(&self, id: u64, loc: Loc) -> Result<(), LogError> {
        let mut turn = self.turn.lock();
        self.check_writable()?;
        let segment = {
            let index = self.index.read();
            if index.find(id) != Some(loc) {
                return Ok(());
            }
            index.segment(loc.segment).map(Arc::clone)
        };
        let Some(segment) = segment else { return Ok(()) };
        let stretch = (loc.offset(), loc.offset() + frame::span(u64::from(loc.len)));
        let mut lost = self.set_aside(&segment, stretch, Some((id, id)));
        lost.ids = vec![(id, id)];
        turn.given_up.push(GivenUp { segment: loc.segment, lost });
        self.commit_in(&mut turn, &[], true, true)?;
        let mut salvaged = self.salvaged.lock();
        salvaged.damage.push(Damage {
            file: segment::name(loc.segment),
            offset: stretch.0,
            bytes: stretch.1 - stretch.0,
            first_id: Some(id),
            last_id: Some(id),
            reason: "an entry does not match its checksum",
        });
        salvaged.entries.push(LostEntry { id, bytes: loc.len.into() });
        Ok(())
    }

    /// What was given up is no damage any more: its segment may go.
    pub(super) fn gave_up(&self, turn: &mut Turn) {
        if turn.given_up.is_empty() {
            return;
        }
        let mut index = self.index.write();
        for given_up in turn.given_up.drain(..) {
            if let Some(part) = index.parts.get_mut(&given_up.segment) {
                part.damaged = false;
            }
        }
    }
}

/// The ids of entries whose headers of this life lie in a stretch; `None` where no header at all does.
fn headers(file: &dyn DiskFile, seed: u32, (from, to): (u64, u64)) -> Option<Vec<(u64, u64)>> {
    const STEP: u64 = 1024 * 1024;
    let mut ids = Vec::new();
    let mut found = false;
    let mut bytes = Vec::new();
    let mut start = from.next_multiple_of(ALIGN);
    while start < to {
        // A header may begin in this step and end in the next one.
        bytes.resize(usize_of((to - start).min(STEP)) + HEAD, 0);
        let got = file.read_uncached_at(&mut bytes, start).ok()?;
        let end = usize_of((to - start).min(STEP)).min(got);
        for at in (0..end).step_by(usize_of(ALIGN)) {
            let offset = start + at as u64;
            if let Some(head) = bytes.get(at..at + HEAD).and_then(|head| frame::parse(head, seed, offset)) {
                found = true;
                if head.kind == frame::ENTRY {
                    ids.push((head.id, head.id));
                }
            }
        }
        start += STEP;
    }
    ids.sort_unstable();
    ids.dedup();
    found.then_some(ids)
}
