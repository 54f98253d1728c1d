//! What a log does that is left alone: it lets drained segments go, makes its segments small again when little is stored,
//! and clears away files that nobody needs.

use super::core::{Core, Turn};
use super::error::LogError;
use super::life::OldFile;
use super::segment::{self, SMALLEST};
use super::spare::Released;

/// A segment this many times larger than what is stored asks for goes when the log is left alone.
const OVERSIZE: u64 = 4;

impl Core {
    /// Asks for a visit of the thread if there is something to let go, and for a spare if one will be needed soon.
    pub(super) fn look_around(&self, active: u64, filling: bool) {
        if filling {
            self.pool.look_ahead();
        }
        let waiting = {
            let index = self.index.read();
            let size = |number: u64| index.parts.get(&number).map_or(0, |part| part.segment.header.size);
            // Nothing is stored, but the segments are those of a log that had more.
            let large = || size(active) >= OVERSIZE * SMALLEST || self.pool.is_hoarding();
            // With more than two there may be some that few old entries keep.
            index.parts.len() > 2
                || (index.empties.len() == index.parts.len() && large())
                || !index.freed.is_empty()
                || !index.candidates(active, 1).is_empty()
        };
        if waiting {
            self.pool.tidy_later();
        }
    }

    /// The commit of a log that is left alone. Never waits for anybody.
    pub(super) fn tidy(&self) {
        if self.check_writable().is_err() {
            return;
        }
        let Some(mut turn) = self.turn.try_lock() else {
            self.pool.tidy_later();
            return;
        };
        let drained = self.has_drained() || !self.index.read().freed.is_empty();
        let done = if drained { self.commit_in(&mut turn, &[], true, false).map(|_| ()) } else { Ok(()) };
        // A failure is remembered where it matters; without room the next commit does it.
        drop(done.and_then(|()| self.shrink(&mut turn)).and_then(|()| self.compact(&mut turn)));
    }

    /// Goes on in a small segment when little is stored and nothing was written since the last look.
    fn shrink(&self, turn: &mut Turn) -> Result<(), LogError> {
        let (number, end, size) = match &self.append.lock().active {
            Some(active) => (active.segment.number(), active.end, active.segment.header.size),
            None => return Ok(()),
        };
        let (wanted, is_empty) = {
            let index = self.index.read();
            let wanted = (index.live_bytes() / 2).clamp(SMALLEST, self.largest);
            (wanted, index.empties.len() == index.parts.len())
        };
        let quiet = std::mem::replace(&mut turn.seen, (number, end)) == (number, end);
        if size < wanted.saturating_mul(OVERSIZE) {
            if is_empty && quiet {
                self.pool.look_no_further();
            } else if is_empty && self.pool.is_hoarding() {
                self.pool.tidy_later();
            }
            return Ok(());
        }
        if quiet {
            turn.size = wanted;
            self.pool.set_size(wanted, self.floor(0));
            self.pool.look_ahead();
            // The thread that runs this makes the spares, so it must not wait for one.
            if self.pool.can_spare() {
                self.rotate(turn, 0, true)?;
                self.release();
                return Ok(());
            }
        }
        self.pool.tidy_later();
        Ok(())
    }

    /// Unlinks what nobody needs any more, at the end.
    pub(super) fn clear_away(&self) -> Result<(), LogError> {
        // Where nothing was ever appended nothing is changed, and no thread made spares.
        if self.append.lock().active.is_none() {
            return Ok(());
        }
        let (names, released) = self.pool.drain();
        self.clear(&names, &released, false)
    }

    /// Takes files out of the log. Only when their names are gone for good may acks of entries in them be forgotten.
    ///
    /// With `reuse` the room of segments is kept where the reserve is short.
    pub(super) fn clear(&self, names: &[String], released: &[Released], reuse: bool) -> Result<(), LogError> {
        if names.is_empty() && released.is_empty() {
            return Ok(());
        }
        // The directory may be what failed to sync: a second sync of it would prove nothing.
        self.check_poison()?;
        for name in names {
            // A name that stays is no loss: no open record lists it, so a later open clears it away.
            let _ = self.disk.unlink(name);
            self.handles.forget(name);
        }
        let mut kept = Vec::new();
        for Released { number, size } in released {
            let name = segment::name(*number);
            let temporary =
                (reuse && self.pool.may_keep(*size, kept.len())).then(|| self.pool.temporary_name());
            match temporary.filter(|temporary| self.disk.rename_new(&name, temporary).is_ok()) {
                Some(temporary) => kept.push(OldFile { name: temporary, size: *size }),
                None => drop(self.disk.unlink(&name)),
            }
            self.handles.forget(&name);
        }
        self.sync_directory()?;
        if !released.is_empty() {
            let mut index = self.index.write();
            for one in released {
                index.remove_part(one.number);
            }
        }
        self.pool.keep(kept);
        Ok(())
    }

    /// Makes names durable.
    pub(super) fn sync_directory(&self) -> Result<(), LogError> {
        self.disk
            .sync_dir()
            .map_err(|error| self.failed(LogError::io("fsync", self.disk.path().to_path_buf(), error)))
    }
}
