//! Who holds a directory in this process: the thread and the lock of one open log, and how a stopped log gives way.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

use super::core::Core;
use super::disk::Disk;
use super::error::LogError;
use super::spare;

/// The logs that are open in this process.
static OPEN: Mutex<Vec<Weak<Holder>>> = Mutex::new(Vec::new());

/// One open log with what is given up once.
pub(super) struct Holder {
    pub(super) core: Arc<Core>,
    owned: Mutex<Owned>,
}

struct Owned {
    thread: Option<JoinHandle<()>>,
    lock: Option<Box<dyn Any + Send + Sync>>,
    /// Its work is done by whoever asks for it.
    without_thread: bool,
}

impl Holder {
    pub(super) fn new(core: Core, lock: Box<dyn Any + Send + Sync>, without_thread: bool) -> Arc<Self> {
        let owned = Mutex::new(Owned { thread: None, lock: Some(lock), without_thread });
        let holder = Arc::new(Self { core: Arc::new(core), owned });
        let mut open = OPEN.lock();
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&holder));
        holder
    }

    /// Starts the thread that makes spares; the first append needs one.
    pub(super) fn start(&self) -> Result<(), LogError> {
        let mut owned = self.owned.lock();
        if owned.thread.is_none() && owned.lock.is_some() && !owned.without_thread {
            let core = Arc::clone(&self.core);
            let started = thread::Builder::new().name("millpond-log".into()).spawn(move || spare::run(&core));
            let failed = |error| LogError::io("clone", self.core.disk.path().to_path_buf(), error);
            owned.thread = Some(started.map_err(failed)?);
        }
        Ok(())
    }

    /// Ends the thread, does `last`, lets go of the files, and of the lock after them.
    pub(super) fn end<R>(&self, last: impl FnOnce(&Core) -> R) -> R {
        let mut owned = self.owned.lock();
        self.core.pool.stop();
        if let Some(thread) = owned.thread.take() {
            // A thread that panicked has nothing to hand over.
            let _ = thread.join();
        }
        let result = last(&self.core);
        self.core.abandon();
        owned.lock = None;
        // Whoever keeps the closed log, as JavaScript does until it collects garbage, keeps no descriptor.
        self.core.disk.release();
        result
    }
}

/// Ends the log that holds the directory of `disk` in this process, if a failed write stopped it: it accepts nothing
/// more, and only a new open finds out what the disk holds. True when the lock is worth another try.
pub(super) fn give_way(disk: &dyn Disk) -> bool {
    let holders: Vec<Arc<Holder>> = OPEN.lock().iter().filter_map(Weak::upgrade).collect();
    let same = |holder: &&Arc<Holder>| {
        disk.directory().is_some() && holder.core.disk.directory() == disk.directory()
    };
    let mut gave = false;
    for holder in holders.iter().filter(same).filter(|holder| holder.core.is_poisoned()) {
        holder.end(Core::wait_for_turn);
        gave = true;
    }
    gave
}
