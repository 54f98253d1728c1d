//! The reserve: on a full disk pushes stop in time, and acks go on until they have made room.
//!
//! Two files are kept that need no room to become the next segment. Pushes are refused before they would leave fewer. Acks
//! may take them: a segment that holds nothing but acks is let go when it is full, because the one behind it begins with
//! what it held, and then it is a spare again. So acks never need new room.

use super::core::{Core, Turn};
use super::error::LogError;
use super::footer;
use super::held;
use super::life::OldFile;
use super::open_record;
use super::segment::{self, SMALLEST};
use super::spare::Need;

/// What a file of the reserve has room for beside records and acks, at least and at most.
const SLACK: (u64, u64) = (16 * 1024, 1024 * 1024);

/// What must be there before this is written: a push leaves the reserve whole, an ack needs one file to let the segment
/// before go, and what lets segments go needs nothing.
pub(super) fn need(any: bool, puts: bool) -> Need {
    match (any, puts) {
        (_, true) => Need::Reserve,
        (true, false) => Need::Any,
        (false, false) => Need::Nothing,
    }
}

impl Core {
    /// Waits for files that need no room. Where the device has none left, segments that nobody needs give theirs.
    pub(super) fn restock(&self, turn: &mut Turn, need: Need) -> Result<(), LogError> {
        match self.pool.ensure(self, need) {
            Err(error @ LogError::NoSpace { .. }) => {
                if self.free_now(turn)? {
                    self.pool.ensure(self, need)
                } else {
                    Err(error)
                }
            }
            other => other,
        }
    }

    /// Puts the next segment into use. With `spared` that leaves the reserve whole.
    pub(super) fn rotate_with_room(
        &self,
        turn: &mut Turn,
        length: usize,
        spared: bool,
    ) -> Result<(), LogError> {
        match self.rotate(turn, length, spared) {
            Err(error @ LogError::NoSpace { .. }) => {
                if self.free_now(turn)? || self.give_unused(turn) {
                    self.rotate(turn, length, spared)
                } else {
                    Err(error)
                }
            }
            other => other,
        }
    }

    /// Takes back a segment that came into use and was never written to: whoever took the last file was killed before he
    /// let another one go.
    ///
    /// CRASH: without it the log is what it was before that change of segment: everything in the one before was synced.
    fn give_unused(&self, turn: &mut Turn) -> bool {
        let Some(number) = turn.unused.take() else { return false };
        let mut index = self.index.write();
        let Some(size) = index.parts.get(&number).map(|part| part.segment.header.size) else { return false };
        index.remove_part(number);
        drop(index);
        self.pool.keep(vec![OldFile { name: segment::name(number), size }]);
        true
    }

    /// Lets go of what nobody needs, by a commit of its own; false when there is nothing or no room to say so.
    fn free_now(&self, turn: &mut Turn) -> Result<bool, LogError> {
        self.build(turn, &[]);
        if turn.batch.is_empty() {
            return Ok(false);
        }
        let length = turn.batch.bytes().len();
        let at = match self.append.lock().active.as_mut().filter(|active| active.fits(length)) {
            Some(active) => self.write(active, &mut turn.batch, false)?,
            None => return Ok(false),
        };
        self.sync()?;
        self.index.write().apply_batch(at.0, at.1, turn.batch.bytes());
        self.release();
        Ok(true)
    }

    /// What a file of the reserve must hold when records are as long as this one: a record that has grown, and the acks
    /// of everything that is stored, twice.
    pub(super) fn floor(&self, record: u64) -> u64 {
        let index = self.index.read();
        let held: u64 = index.parts.values().map(|part| held::bytes_bound(&part.held)).sum();
        let acks = held + index.summary().count / 8;
        let slack = (index.live_bytes().min(self.largest) / 16).clamp(SLACK.0, SLACK.1);
        footer::size_for(open_record::frames_at(2 * record) + 2 * acks + slack).max(SMALLEST)
    }
}
