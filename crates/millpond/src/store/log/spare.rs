//! Spares: files whose life has begun and that wait for use, so that no commit waits for a file to be filled.
//!
//! One thread makes them. It also unlinks what nobody needs, and gives an idle log the commit that lets drained
//! segments go.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::core::Core;
use super::error::LogError;
use super::segment::{self, BLOCK, Header, SMALLEST, Segment};

/// Spares kept ready.
const READY: usize = 2;
/// How long a drained segment waits for a commit that takes the frame of its release along.
const IDLE: Duration = Duration::from_millis(100);
const FILL: usize = 256 * 1024;

#[derive(Default)]
struct State {
    spares: VecDeque<Arc<Segment>>,
    /// The number of the next file. Never given out twice.
    next: u64,
    /// The size of the next file.
    size: u64,
    /// What a commit that waits needs at least.
    least: u64,
    /// Making failed: nothing more is made until somebody asks.
    halted: bool,
    failed: Option<LogError>,
    /// Names to unlink that no living segment has.
    discarded: Vec<String>,
    /// Segments whose release is vouched for.
    released: Vec<u64>,
    tidy_at: Option<Instant>,
    stopping: bool,
    /// No thread does the work: whoever waits for a file makes it.
    by_hand: bool,
}

impl State {
    fn job(&mut self, now: Instant) -> Option<Job> {
        let wanted = self.spares.iter().all(|spare| spare.header.size < self.least) && self.least > 0;
        let short = self.spares.len() < READY;
        let idle = self.discarded.is_empty() && self.released.is_empty();
        if !self.halted && (wanted || (short && idle)) {
            let number = self.next;
            self.next += 1;
            let size = self.size.max(self.least.next_multiple_of(SMALLEST));
            return Some(Job::Make { number, size });
        }
        if !idle {
            let names = std::mem::take(&mut self.discarded);
            return Some(Job::Unlink { names, segments: std::mem::take(&mut self.released) });
        }
        self.tidy_at.take_if(|at| *at <= now).map(|_| Job::Tidy)
    }
}

enum Job {
    Make { number: u64, size: u64 },
    Unlink { names: Vec<String>, segments: Vec<u64> },
    Tidy,
}

/// What the thread and the commits share.
pub(super) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

impl Pool {
    pub(super) fn new(next: u64, leftovers: Vec<String>, by_hand: bool) -> Self {
        let state = State { next, size: SMALLEST, discarded: leftovers, by_hand, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// A spare with room for `least` bytes, waiting until there is one.
    pub(super) fn take(&self, core: &Core, least: u64) -> Result<Arc<Segment>, LogError> {
        let mut state = self.state.lock();
        state.halted = false;
        state.failed = None;
        state.least = least;
        let result = loop {
            if let Some(spare) = state.spares.pop_front() {
                if spare.header.size >= least {
                    break Ok(spare);
                }
                // ORDER: numbers in use ascend, and the file that fits will have a higher one than this.
                state.discarded.push(segment::name(spare.number()));
                continue;
            }
            if let Some(error) = state.failed.take() {
                break Err(error);
            }
            if state.stopping {
                break Err(LogError::Closed);
            }
            self.changed.notify_all();
            if state.by_hand {
                MutexGuard::unlocked(&mut state, || work(core));
            } else {
                self.changed.wait(&mut state);
            }
        };
        state.least = 0;
        drop(state);
        self.changed.notify_all();
        result
    }

    /// Says what size files are wanted from now on, and drops spares that are far from it.
    pub(super) fn set_size(&self, size: u64) {
        let mut state = self.state.lock();
        state.size = size;
        let far = |spare: &Arc<Segment>| spare.header.size * 4 <= size || size * 4 <= spare.header.size;
        let (far, near) = std::mem::take(&mut state.spares).into_iter().partition::<Vec<_>, _>(far);
        state.spares = near.into();
        state.discarded.extend(far.iter().map(|spare| segment::name(spare.number())));
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn discard(&self, spare: &Segment) {
        self.state.lock().discarded.push(segment::name(spare.number()));
        self.changed.notify_all();
    }

    pub(super) fn release(&self, segments: Vec<u64>) {
        if !segments.is_empty() {
            self.state.lock().released.extend(segments);
            self.changed.notify_all();
        }
    }

    /// Asks for a commit that lets drained segments go, should none come by itself.
    pub(super) fn tidy_later(&self) {
        let mut state = self.state.lock();
        if state.tidy_at.is_none() {
            state.tidy_at = Some(Instant::now() + IDLE);
            drop(state);
            self.changed.notify_all();
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Bytes of the spares.
    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().spares.iter().map(|spare| spare.header.size).sum()
    }

    /// Takes everything that is left to unlink, the spares included: no later open would use them.
    pub(super) fn drain(&self) -> (Vec<String>, Vec<u64>) {
        let mut state = self.state.lock();
        let mut names = std::mem::take(&mut state.discarded);
        names.extend(state.spares.drain(..).map(|spare| segment::name(spare.number())));
        (names, std::mem::take(&mut state.released))
    }

    /// Waits for something to do; `None` at the end.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            if let Some(job) = state.job(Instant::now()) {
                return Some(job);
            }
            match state.tidy_at {
                Some(at) => {
                    self.changed.wait_until(&mut state, at);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn job_by_hand(&self) -> Option<Job> {
        let mut state = self.state.lock();
        // By hand every moment is late enough, so that no outcome depends on a clock.
        let late = state.tidy_at.unwrap_or_else(Instant::now);
        state.job(late)
    }

    fn made(&self, result: Result<Arc<Segment>, LogError>) {
        let mut state = self.state.lock();
        match result {
            Ok(spare) => state.spares.push_back(spare),
            Err(error) => {
                state.halted = true;
                state.failed = Some(error);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }
}

/// Ends the waiting of others when the thread ends, however it does.
struct Ended<'a>(&'a Pool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The thread.
pub(super) fn run(core: &Core) {
    let _ended = Ended(&core.pool);
    while let Some(job) = core.pool.next_job() {
        perform(core, job);
    }
}

/// Does one job of the thread on this one; false when there is none.
pub(super) fn work(core: &Core) -> bool {
    core.pool.job_by_hand().map(|job| perform(core, job)).is_some()
}

fn perform(core: &Core, job: Job) {
    match job {
        Job::Make { number, size } => {
            // A commit that began before the failure may still ask for a file. Its name would be made durable by a
            // second sync of a directory whose first one failed.
            let made = core.check_poison().and_then(|()| make(core, number, size));
            if let Err(error) = &made {
                core.poison_by(error);
            }
            core.pool.made(made);
        }
        // A failure poisons the log; the next commit tells.
        Job::Unlink { names, segments } => drop(core.unlink(&names, &segments)),
        Job::Tidy => core.tidy(),
    }
}

/// Begins the life of a file.
fn make(core: &Core, number: u64, size: u64) -> Result<Arc<Segment>, LogError> {
    let name = segment::temporary_name(number);
    let made = fill(core, number, size, &name);
    if matches!(made, Err(LogError::NoSpace { .. })) {
        // Gives back what was taken; what stays is cleared away by a later open.
        let _ = core.disk.unlink(&name);
    }
    made
}

fn fill(core: &Core, number: u64, size: u64, temporary: &str) -> Result<Arc<Segment>, LogError> {
    let path = core.disk.path().join(temporary);
    let failed = |operation| {
        let path = path.clone();
        move |error| LogError::write(operation, path, error)
    };
    let mut random = [0; 8];
    core.disk.random(&mut random).map_err(failed("getrandom"))?;
    let generation = u64::from_le_bytes(random);
    let header = Header { identity: core.identity, generation, number, size, recycled: false };
    let file = core.disk.create(temporary).map_err(failed("openat"))?;
    let zeros = vec![0; FILL];
    let mut at = 0;
    while at < size {
        if core.pool.is_stopping() {
            return Err(LogError::Closed);
        }
        let length = super::bytes::usize_of((size - at).min(FILL as u64));
        file.write_all_at(&zeros[..length], at).map_err(failed("pwrite"))?;
        at += length as u64;
    }
    for start in [0, BLOCK] {
        file.write_all_at(&header.encode(), start).map_err(failed("pwrite"))?;
    }
    file.sync_all().map_err(|error| LogError::io("fsync", path.clone(), error))?;
    core.disk.rename_new(temporary, &segment::name(number)).map_err(failed("renameat2"))?;
    core.disk.sync_dir().map_err(|error| LogError::io("fsync", core.disk.path().to_path_buf(), error))?;
    Ok(Arc::new(Segment::new(header, file, 0)))
}
