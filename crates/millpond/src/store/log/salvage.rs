//! Giving up what is damaged, so that the rest is delivered: the bytes are copied aside, a frame says that the stretch is
//! lost, and nobody stumbles over it again.

use std::io;
use std::sync::Arc;

use super::ahead;
use super::bytes::usize_of;
use super::core::{Core, Turn};
use super::disk::DiskFile;
use super::error::LogError;
use super::frame::{self, ALIGN, HEAD};
use super::index::Loc;
use super::lost::Lost;
use super::part::{Found, Part};
use super::quarantine;
use super::scan::{self, Bad, Window};
use super::segment::{self, Segment};
use crate::store::{Damage, LostEntry};

/// A stretch that is about to be given up, with the segment it lies in.
#[derive(Clone, Debug)]
pub(super) struct GivenUp {
    pub(super) segment: u64,
    pub(super) lost: Lost,
}

/// A stretch of a file, and the ids that may have been in it.
type BadStretch = ((u64, u64), Option<(u64, u64)>);

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
    pub(super) fn give_up_found(&self, turn: &mut Turn) -> Result<(), LogError> {
        for damage in std::mem::take(&mut turn.damage) {
            let Some((number, false)) = segment::number_of(&damage.file) else { continue };
            let Some(segment) = self.index.read().segment(number).map(Arc::clone) else { continue };
            let stretch = (damage.offset, damage.offset.saturating_add(damage.bytes));
            let may_be = damage.first_id.zip(damage.last_id);
            let mut lost = self.set_aside(&segment, stretch, may_be)?;
            // What lives there was read valid, at another place.
            let index = self.index.read();
            lost.ids.retain(|(id, _)| index.segment_of(*id) != Some(number));
            turn.given_up.push(GivenUp { segment: number, lost });
        }
        Ok(())
    }

    /// Gives up what the open found damaged now, with the next open record: it leaves out segments that are missing.
    pub(super) fn give_up_all(&self) -> Result<(), LogError> {
        let mut turn = self.turn.lock();
        self.check_writable()?;
        self.rotate_with_room(&mut turn, HEAD, false)?;
        self.commit_in(&mut turn, &[], true, true)?;
        Ok(())
    }

    /// Copies a stretch aside if it holds a frame header of its life, and says what is lost with it.
    fn set_aside(
        &self,
        segment: &Segment,
        stretch: (u64, u64),
        may_be: Option<(u64, u64)>,
    ) -> Result<Lost, LogError> {
        let generation = segment.header.generation;
        // What was listed may be larger than what is there.
        let there = (stretch.0, segment.file.len().map_or(stretch.1, |len| stretch.1.min(len)));
        let ids = headers(segment.file.as_ref(), segment.seed, there);
        if ids.is_some() {
            // Never a condition: without room, or where it cannot be read, the rest is delivered all the same.
            let kept = quarantine::keep(self.disk.as_ref(), segment.file.as_ref(), generation, there);
            if kept.is_ok_and(|kept| kept) {
                // The folder may be new. This is the directory of the log: where its sync fails the log ends.
                self.sync_directory()?;
            }
        }
        Ok(Lost { generation, bytes: stretch, may_be, ids: ids.unwrap_or_default() })
    }

    /// Gives up the entry `id`, which cannot be read where it should be although it was looked for past the cache.
    ///
    /// Fails only where the log cannot say so durably; then the entry stays as it is.
    pub(super) fn give_up(&self, id: u64, loc: &Loc) -> Result<(), LogError> {
        let mut turn = self.turn.lock();
        self.check_writable()?;
        let (segment, before) = {
            let index = self.index.read();
            let part =
                index.parts.get(&loc.segment).filter(|_| index.find(id, ahead::MOST).as_ref() == Some(loc));
            let Some(part) = part else { return Ok(()) };
            (Arc::clone(&part.segment), part.live_bytes())
        };
        let bad = self.bad_stretches(&segment, id, loc)?;
        let mut damage = Vec::new();
        for (stretch, may_be) in bad {
            let mut lost = self.set_aside(&segment, stretch, may_be)?;
            // Only what was asked for is known to be gone; the others are looked for when it is their turn.
            lost.ids = if damage.is_empty() { vec![(id, id)] } else { Vec::new() };
            turn.given_up.push(GivenUp { segment: loc.segment, lost });
            damage.push(Damage {
                file: segment::name(loc.segment),
                offset: stretch.0,
                bytes: stretch.1 - stretch.0,
                first_id: may_be.map(|ids| ids.0),
                last_id: may_be.map(|ids| ids.1),
                reason: "an entry does not match its checksum",
            });
        }
        self.commit_in(&mut turn, &[], true, true)?;
        let after = self.index.read().parts.get(&loc.segment).map_or(0, Part::live_bytes);
        let mut salvaged = self.salvaged.lock();
        salvaged.damage.append(&mut damage);
        salvaged.entries.push(LostEntry { id, bytes: before.saturating_sub(after) });
        Ok(())
    }

    /// Where an entry should be and is not: the stretch of it first.
    fn bad_stretches(&self, segment: &Segment, id: u64, loc: &Loc) -> Result<Vec<BadStretch>, LogError> {
        let own = Some((id, id));
        let stretches = match &loc.found {
            Found::At(place) => {
                return Ok(vec![((place.offset(), place.offset() + frame::span(place.len.into())), own)]);
            }
            Found::In(stretches) => stretches,
        };
        let mut bad = Vec::new();
        for stretch in stretches {
            let failed = |error| LogError::io("pread", self.path_of(segment), error);
            let mut window = Window::new(segment.file.as_ref()).map_err(failed)?;
            let wanted = scan::Stretch {
                seed: segment.seed,
                from: stretch.from,
                to: Some(stretch.end),
                most: stretch.end,
                torn: &loc.torn,
            };
            let found = scan::scan::<io::Error>(&mut window, &wanted, |_, _, _| Ok(())).map_err(failed)?;
            let ids = |bad: &Bad| bad.low.zip(bad.high).filter(|(low, high)| low <= high);
            bad.extend(found.bad.iter().map(|bad| ((bad.from, bad.to), ids(bad))));
            if found.end < stretch.end {
                bad.push(((found.end, stretch.end), own));
            }
        }
        // Ids in order, and the entry that is missed may be in the stretch that its neighbours leave for it.
        bad.sort_by_key(|(_, ids)| !ids.is_some_and(|(low, high)| (low..=high).contains(&id)));
        if bad.is_empty() {
            // A footer named an entry that no frame holds: nothing lies there.
            let from = stretches.first().map_or(0, |stretch| stretch.from);
            bad.push(((from, from), own));
        }
        Ok(bad)
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
