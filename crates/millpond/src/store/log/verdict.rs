//! What recovery thinks of what it read: damage, torn tails, segments that are gone and segments that are missing.

use std::collections::BTreeMap;

use super::freed::Freed;
use super::open_record::Living;
use super::planted::{self, Fault};
use super::recover::{Candidate, Recovery};
use super::scan::Found;
use super::segment;

impl Recovery<'_> {
    /// A segment with a successor: everything below its live end is vouched for, but for what is known as torn.
    pub(super) fn judge_listed(&mut self, part: &Living, found: &Found) {
        for bad in &found.bad {
            self.damaged(part.number, (bad.from, bad.to), (bad.low, bad.high), "a stretch does not check");
        }
        // Torn stretches may end the segment; then there is nothing behind the last frame.
        let end = part.torn.iter().map(|(_, to)| *to).fold(found.end, u64::max);
        if end < part.live_end {
            let ids = rest_of(part, found);
            let reason = if found.cut { "the file is too short" } else { "a stretch does not check" };
            self.damaged(part.number, (found.end, part.live_end), ids, reason);
        }
    }

    /// The last segment of a life: its largest mark vouches for what lies below, the rest may be torn.
    pub(super) fn judge_last(&mut self, number: u64, from: u64, found: &Found, len: u64) {
        let mark = found.mark;
        // In a file with a former life, what lies behind the frames is torn only where this life left a header.
        let recycled = self.files.get(&number).is_some_and(Candidate::is_recycled);
        let junk_end = if recycled { found.own_end.max(found.end) } else { found.junk_end };
        let mut torn = Vec::new();
        let mut first_bad = u64::MAX;
        for bad in &found.bad {
            if bad.from < mark {
                self.damaged(
                    number,
                    (bad.from, bad.to.min(mark)),
                    (bad.low, bad.high),
                    "a stretch does not check",
                );
            }
            if bad.to > mark {
                let range = (bad.from.max(mark), bad.to);
                first_bad = first_bad.min(range.0);
                self.report.dropped_tail_bytes += range.1 - range.0;
                torn.push(range);
            }
        }
        if found.end < mark {
            // Nobody says how many entries were behind the one whose header is left.
            let ids = (found.junk_id.or(found.last_id.map(|id| id.saturating_add(1))), None);
            let reason = if len < mark { "the file is too short" } else { "a stretch does not check" };
            self.damaged(number, (found.end, mark), ids, reason);
        } else if let Some(size) = self.size_of(number).filter(|size| len < *size) {
            // No crash makes a file shorter: what was cut off may have been acknowledged.
            let ids = (found.junk_id.or(found.last_id.map(|id| id.saturating_add(1))), None);
            self.damaged(number, (len, size), ids, "the file is too short");
        }
        self.report.dropped_tail_bytes += junk_end.saturating_sub(found.end.max(mark));
        self.report.clean = found.closed && junk_end == found.end;
        self.open_ends.insert(number, (mark, first_bad));
        self.unused = Some(number).filter(|_| found.end == from && mark == 0 && found.bad.is_empty());
        if let Some(part) = self.index.parts.get_mut(&number) {
            part.about.live_end = found.end.max(mark).max(from);
            part.about.mark = mark;
            part.about.torn = if planted::is(Fault::ForgetTornStretches) { Vec::new() } else { torn };
        }
    }

    /// Finishes what frames of the newest segments began: lets go of segments whose release is vouched for.
    pub(super) fn let_go(&mut self, living: &[Living]) {
        let generations: BTreeMap<u64, u64> =
            living.iter().map(|part| (part.number, part.generation)).collect();
        let newest = living.last().map_or(0, |part| part.number);
        for freed in std::mem::take(&mut self.index.freed) {
            let same = generations.get(&freed.segment) == Some(&freed.generation);
            if same && self.acts(&freed, newest) {
                self.gone(freed.segment);
            } else if let Some(part) = self.index.parts.get_mut(&freed.segment) {
                part.leaving = false;
            }
        }
    }

    fn gone(&mut self, number: u64) {
        self.released.insert(number);
        self.report.damage.retain(|damage| damage.file != segment::name(number));
        self.index.remove_part(number);
        if self.files.remove(&number).is_some() {
            self.leftovers.push(segment::name(number));
        }
    }

    /// Whether a frame that lets a segment go was durable, or must have been if anybody had acted on it.
    fn acts(&self, freed: &Freed, newest: u64) -> bool {
        match self.open_ends.get(&freed.holder) {
            Some((mark, first_bad)) => {
                freed.end <= *mark || freed.offset < *first_bad || freed.holder < newest
            }
            // A segment with a successor that still lists the other one: the release was found torn then.
            None => false,
        }
    }

    pub(super) fn report_missing(&mut self, living: &[Living]) {
        let parts = &self.index.parts;
        let gone = |number: &u64| !parts.contains_key(number) && !self.released.contains(number);
        let missing: Vec<Living> = living.iter().filter(|part| gone(&part.number)).cloned().collect();
        for part in missing {
            let reason = "a living segment is missing";
            let ids = (part.ids.map(|ids| ids.0), part.ids.map(|ids| ids.1));
            self.damaged(part.number, (0, part.size), ids, reason);
        }
    }
}

impl Recovery<'_> {
    /// Leaves out damage that was given up before.
    pub(super) fn forget_lost(&mut self) {
        let Self { index, report, .. } = self;
        for (number, part) in index.parts.iter_mut().filter(|(_, part)| !part.lost.is_empty()) {
            let name = segment::name(*number);
            part.lost.sort_unstable();
            report.damage.retain(|damage| {
                damage.file != name || !is_covered(&part.lost, damage.offset, damage.offset + damage.bytes)
            });
            part.damaged = report.damage.iter().any(|damage| damage.file == name);
        }
    }
}

/// Whether sorted stretches cover `from..to` without a gap.
fn is_covered(stretches: &[(u64, u64)], mut from: u64, to: u64) -> bool {
    for (begin, end) in stretches.iter().filter(|(begin, end)| begin < end) {
        if *begin > from {
            break;
        }
        from = from.max(*end);
    }
    from >= to
}

/// The ids that may lie behind the last valid frame of a segment. The header of the first may be left; others may
/// follow it.
fn rest_of(part: &Living, found: &Found) -> (Option<u64>, Option<u64>) {
    let Some((low, high)) = part.ids else { return (found.junk_id, None) };
    let first = found.junk_id.or(found.last_id.map(|id| id.saturating_add(1))).unwrap_or(low);
    if first <= high { (Some(first), Some(high)) } else { (None, None) }
}
