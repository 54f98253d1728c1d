//! Images that were looked at: a disk that was seen before is not opened again, but judged again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use millpond_testkit::ledger::Seen;
use millpond_testkit::life::look;
use millpond_testkit::sim_disk::Medium;

/// What opening each disk showed.
#[derive(Default)]
pub(crate) struct Images {
    seen: HashMap<u64, Arc<Seen>>,
    /// Every disk that was opened, in all lives.
    hashes: HashSet<u64>,
    /// Moments at which something could be cut off.
    pub(crate) moments: u64,
    /// Judgements: an image at a moment.
    pub(crate) judged: u64,
}

impl Images {
    /// What a process sees that opens this disk, with whether the disk is new.
    pub(crate) fn look(&mut self, medium: Medium) -> Result<(Arc<Seen>, bool), String> {
        self.judged += 1;
        let hash = medium.hash();
        if let Some(seen) = self.seen.get(&hash) {
            return Ok((Arc::clone(seen), false));
        }
        let seen = Arc::new(look(medium)?);
        self.seen.insert(hash, Arc::clone(&seen));
        Ok((seen, self.hashes.insert(hash)))
    }

    /// Forgets what was seen, so that memory is bounded; what was counted stays counted once.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Different disks so far.
    pub(crate) fn distinct(&self) -> u64 {
        self.hashes.len() as u64
    }
}
