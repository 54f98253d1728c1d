//! The mount, from the side of the test that owns it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption};
use parking_lot::Mutex;

use super::boot::{Boot, Log, Plan, Remains};
use super::calls::Calls;
use crate::ledger::Crash;
use crate::random::Random;

/// The name of the directory that can be made in the folder of a boot.
pub const QUEUE: &str = "queue";

/// Boots by their numbers, which begin with 1.
pub(super) type Boots = Arc<Mutex<BTreeMap<u64, Boot>>>;

/// A mounted strict disk; unmounted when it goes.
pub struct StrictDisk {
    path: PathBuf,
    boots: Boots,
    last: u64,
    _session: BackgroundSession,
}

impl fmt::Debug for StrictDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StrictDisk").field("path", &self.path).finish_non_exhaustive()
    }
}

impl StrictDisk {
    /// Mounts one on `path`, which is there.
    ///
    /// # Errors
    /// That of the mount.
    pub fn mount(path: &Path) -> io::Result<Self> {
        let boots = Boots::default();
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("strict-disk".to_owned()), MountOption::NoAtime];
        let session = fuser::spawn_mount(Calls::new(Arc::clone(&boots)), path, &config)?;
        Ok(Self { path: path.to_owned(), boots, last: 0, _session: session })
    }

    /// Starts a machine on what a crash left, and says which one it is and where the queue's directory will be.
    pub fn boot(&mut self, remains: Remains, plan: Plan, seed: u64) -> (u64, PathBuf) {
        self.last += 1;
        self.boots.lock().insert(self.last, Boot::new(remains, plan, seed));
        (self.last, self.path.join(self.last.to_string()).join(QUEUE))
    }

    /// How a boot has gone so far.
    pub fn log(&self, number: u64) -> Option<Log> {
        self.boots.lock().get(&number).map(Boot::log)
    }

    /// Ends a boot and says what is left. Whoever still has a file of it gets errors from now on.
    pub fn crash(&self, number: u64, crash: Crash, random: &mut Random) -> Option<Remains> {
        let boot = self.boots.lock().remove(&number)?;
        Some(boot.end(crash, random))
    }
}
