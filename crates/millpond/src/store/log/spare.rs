//! Spares: files whose life has begun and that wait for use, so that no commit waits for a file to be filled.
//!
//! One thread makes them, of files whose former life is over where there are such. It also clears away what nobody needs,
//! and gives an idle log the commit that lets drained segments go.
//!
//! Two files, spares or old ones that can become spares without any room on the device, are the *reserve*: pushes stop
//! before they would break it, so that acks, the letting go of segments and a later open work on a full disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::core::Core;
use super::error::LogError;
use super::life::{self, OldFile};
use super::segment::{self, SMALLEST, Segment};

/// Files that pushes leave for acks and recovery.
pub(super) const RESERVE: usize = 2;
/// Files of the least size that are made after the device was full.
const TIGHT: u8 = 16;
/// How long a drained segment waits for a commit that takes the frame of its release along.
const IDLE: Duration = Duration::from_millis(100);

/// A segment whose release is vouched for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Released {
    pub(super) number: u64,
    pub(super) size: u64,
}

/// What must be there before something is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Need {
    #[default]
    Nothing,
    /// One file, so that the segment in use can be let go when it is full of acks.
    Any,
    /// The whole reserve.
    Reserve,
}

#[derive(Default)]
struct State {
    spares: VecDeque<Arc<Segment>>,
    /// Files whose life is over: their room belongs to the reserve.
    old: Vec<OldFile>,
    /// Files found at open that no segment needs, whose size is not known yet.
    found: Vec<String>,
    /// The number of the next file. Never given out twice.
    next: u64,
    /// The size of the next file.
    size: u64,
    /// What a file of the reserve must hold at least.
    floor: u64,
    /// What a commit that waits needs: room for so many bytes in one spare, and so many files in all.
    least: u64,
    count: usize,
    need: Need,
    pace: Pace,
    /// Files to be made until the device counts as roomy again.
    tight: u8,
    /// Making failed: nothing more is made until somebody asks.
    halted: bool,
    failed: Option<LogError>,
    /// Names nobody needs.
    discarded: Vec<String>,
    released: Vec<Released>,
    tidy_at: Option<Instant>,
    stopping: bool,
    worker: Worker,
}

/// How much is written, and so how many files are kept beside the reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Pace {
    /// Nothing is stored and nothing comes.
    #[default]
    Rest = 0,
    /// An old file is kept for the spare after the next.
    Going = 1,
    /// The segment in use is filling up: one spare more is wanted.
    Filling = 2,
}

/// Who makes files. Whoever else waits for one leaves it to him.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Worker {
    #[default]
    None,
    Thread(ThreadId),
    /// No thread does the work: whoever waits for a file makes it.
    ByHand,
}

impl Worker {
    fn is_caller(self) -> bool {
        match self {
            Self::None => false,
            Self::Thread(id) => id == thread::current().id(),
            Self::ByHand => true,
        }
    }
}

impl State {
    /// The size of the next file: where the device was full lately, no more than is needed.
    fn goal(&self) -> u64 {
        if self.tight > 0 { self.floor } else { self.size }
    }

    /// Whether a file is so much larger or smaller than wanted that another one should take its place.
    fn is_far(&self, size: u64) -> bool {
        let goal = self.goal();
        size.saturating_mul(4) <= goal || goal.saturating_mul(4) <= size || size < self.floor
    }

    /// Files of at least this size that can be the next segment, now or without any room on the device.
    fn files(&self, least: u64) -> usize {
        let spares = self.spares.iter().filter(|spare| spare.header.size >= least).count();
        spares + self.old.iter().filter(|old| old.size >= least).count()
    }

    /// Files of the reserve.
    fn stock(&self) -> usize {
        self.files(self.floor)
    }

    fn meets(&self, need: Need) -> bool {
        match need {
            Need::Nothing => true,
            Need::Any => self.files(SMALLEST) > 0,
            Need::Reserve => self.stock() >= RESERVE,
        }
    }

    fn wanted(&self) -> usize {
        RESERVE + usize::from(self.pace == Pace::Filling)
    }

    fn near(&self) -> usize {
        self.spares.iter().filter(|spare| !self.is_far(spare.header.size)).count()
    }

    /// The spare to use for `least` bytes: one of the wanted size if there is one.
    fn fitting(&self, least: u64) -> Option<usize> {
        let fits = |spare: &&Arc<Segment>| spare.header.size >= least;
        let near = self.spares.iter().position(|spare| fits(&spare) && !self.is_far(spare.header.size));
        near.or_else(|| self.spares.iter().position(|spare| fits(&spare)))
    }

    /// Whether somebody waits for a file.
    fn is_asked(&self) -> bool {
        (self.least > 0 && self.fitting(self.least).is_none())
            || self.stock() < self.count
            || !self.meets(self.need)
    }

    /// A spare that is not needed, when there are enough of the wanted size.
    fn surplus(&self) -> Option<usize> {
        let far = self.spares.iter().position(|spare| self.is_far(spare.header.size));
        far.or_else(|| self.spares.len().checked_sub(1).filter(|last| *last >= self.wanted()))
    }

    /// Gives up old files that are too small for the reserve; false when there are none. One file stays in any case.
    fn give_small(&mut self) -> bool {
        let (small, enough): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.old).into_iter().partition(|old| old.size < self.floor);
        self.old = enough;
        let mut small = small.into_iter();
        if self.spares.is_empty() && self.old.is_empty() {
            self.old.extend(small.next());
        }
        let before = self.discarded.len();
        self.discarded.extend(small.map(|old| old.name));
        self.discarded.len() > before
    }

    /// Gives up a spare that is far larger than what a full device can afford; false when there is none. One file stays
    /// in any case, and what goes is room for several others.
    fn give_large(&mut self) -> bool {
        let large = |spare: &Arc<Segment>| self.floor.saturating_mul(4) <= spare.header.size;
        let at = self.spares.iter().position(large).filter(|_| self.files(SMALLEST) > 1);
        let spare = at.and_then(|at| self.spares.remove(at));
        self.discarded.extend(spare.iter().map(|spare| segment::name(spare.number())));
        spare.is_some()
    }

    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn job(&mut self, now: Instant) -> Option<Job> {
        if !self.found.is_empty() {
            return Some(Job::Measure(std::mem::take(&mut self.found)));
        }
        // ORDER: what goes gives room, or is what the next spare is made of.
        if !self.discarded.is_empty() || !self.released.is_empty() {
            let names = std::mem::take(&mut self.discarded);
            return Some(Job::Clear { names, released: std::mem::take(&mut self.released) });
        }
        let asked = self.is_asked();
        if asked || self.near() < self.wanted() {
            let least = self.least.max(self.floor).max(SMALLEST);
            // Without room on the device any old file is better than none.
            let any = self.halted && (asked || self.spares.len() < self.wanted());
            let useful = |old: &OldFile| old.size >= least && (any || !self.is_far(old.size));
            if let Some(at) = self.old.iter().position(useful) {
                let old = self.old.swap_remove(at);
                return Some(Job::Recycle { old, number: self.number() });
            }
            if !self.halted {
                let number = self.number();
                let size = self.goal().max(least.next_multiple_of(SMALLEST));
                return Some(Job::Make { number, size, least });
            }
        } else if let Some(at) = self.surplus() {
            let spare = self.spares.remove(at)?;
            self.discarded.push(segment::name(spare.number()));
            return self.job(now);
        } else if self.old.len() > usize::from(self.pace >= Pace::Going) {
            self.discarded.extend(self.old.pop().map(|old| old.name));
            return self.job(now);
        }
        self.tidy_at.take_if(|at| *at <= now).map(|_| Job::Tidy)
    }
}

enum Job {
    Make {
        number: u64,
        size: u64,
        least: u64,
    },
    Recycle {
        old: OldFile,
        number: u64,
    },
    /// Look how large files are that were found at open.
    Measure(Vec<String>),
    Clear {
        names: Vec<String>,
        released: Vec<Released>,
    },
    Tidy,
}

/// What the thread and the commits share.
pub(super) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    /// [`State::stock`], and files of any size, for those who only look.
    stock: AtomicUsize,
    files: AtomicUsize,
    pace: AtomicU8,
    /// Somebody asked for a visit, and it has not begun.
    tidy_asked: AtomicBool,
}

impl Pool {
    pub(super) fn new(next: u64, leftovers: Vec<String>, by_hand: bool) -> Self {
        let worker = if by_hand { Worker::ByHand } else { Worker::None };
        let state =
            State { next, size: SMALLEST, floor: SMALLEST, found: leftovers, worker, ..State::default() };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            stock: AtomicUsize::new(0),
            files: AtomicUsize::new(0),
            pace: AtomicU8::new(Pace::Rest as u8),
            tidy_asked: AtomicBool::new(false),
        }
    }

    /// Whether what must be there is there.
    pub(super) fn meets(&self, need: Need) -> bool {
        match need {
            Need::Nothing => true,
            Need::Any => self.files.load(Ordering::Acquire) > 0,
            Need::Reserve => self.stock.load(Ordering::Acquire) >= RESERVE,
        }
    }

    /// Whether a spare of about the wanted size can be taken at once, and the reserve stays whole.
    pub(super) fn can_spare(&self) -> bool {
        let state = self.state.lock();
        state.near() > 0 && state.stock() > RESERVE
    }

    fn publish(&self, state: &State) {
        self.stock.store(state.stock(), Ordering::Release);
        self.files.store(state.files(SMALLEST), Ordering::Release);
    }

    /// Changes the state and tells everybody.
    fn change<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = act(&mut state);
        self.publish(&state);
        drop(state);
        self.changed.notify_all();
        result
    }

    /// Waits until `ready` gives something, or making a file fails.
    fn wait<T>(
        &self,
        core: &Core,
        ask: impl FnOnce(&mut State),
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, LogError> {
        let mut state = self.state.lock();
        state.halted = false;
        state.failed = None;
        ask(&mut state);
        let result = loop {
            if let Some(found) = ready(&mut state) {
                break Ok(found);
            }
            if let Some(error) = state.failed.take() {
                break Err(error);
            }
            if state.stopping {
                break Err(LogError::Closed);
            }
            self.changed.notify_all();
            if state.worker.is_caller() {
                MutexGuard::unlocked(&mut state, || work(core));
            } else {
                self.changed.wait(&mut state);
            }
        };
        (state.least, state.count, state.need) = (0, 0, Need::Nothing);
        self.publish(&state);
        drop(state);
        self.changed.notify_all();
        result
    }

    /// A spare with room for `least` bytes, waiting until there is one. With `spared` it leaves the reserve whole.
    pub(super) fn take(&self, core: &Core, least: u64, spared: bool) -> Result<Arc<Segment>, LogError> {
        let count = if spared { RESERVE + 1 } else { 0 };
        let ask = |state: &mut State| (state.least, state.count) = (least, count);
        self.wait(core, ask, |state| {
            let at = state.fitting(least).filter(|_| state.stock() >= count)?;
            // ORDER: numbers in use ascend, so the spares before this one get new numbers.
            let passed: Vec<_> = state.spares.drain(..at).collect();
            state.old.extend(passed.iter().map(|spare| old_file(spare)));
            self.set_pace(state, Pace::Going);
            state.spares.pop_front()
        })
    }

    /// Waits until what must be there is there.
    pub(super) fn ensure(&self, core: &Core, need: Need) -> Result<(), LogError> {
        let ask = |state: &mut State| state.need = need;
        self.wait(core, ask, |state| state.meets(need).then_some(()))
    }

    /// Says what size files are wanted from now on, and what those of the reserve must hold.
    pub(super) fn set_size(&self, size: u64, floor: u64) {
        self.change(|state| (state.size, state.floor) = (size, floor));
    }

    fn set_pace(&self, state: &mut State, pace: Pace) {
        state.pace = pace;
        self.pace.store(pace as u8, Ordering::Relaxed);
    }

    /// Asks for one spare more before it is needed.
    pub(super) fn look_ahead(&self) {
        if self.pace.load(Ordering::Relaxed) != Pace::Filling as u8 {
            self.change(|state| self.set_pace(state, Pace::Filling));
        }
    }

    /// Nothing is stored and nothing comes: no file more than the reserve is wanted.
    pub(super) fn look_no_further(&self) {
        if self.is_hoarding() {
            self.change(|state| self.set_pace(state, Pace::Rest));
        }
    }

    /// Whether there are files for a log that goes on to be written.
    pub(super) fn is_hoarding(&self) -> bool {
        self.pace.load(Ordering::Relaxed) != Pace::Rest as u8
    }

    pub(super) fn discard(&self, spare: &Segment) {
        self.change(|state| state.old.push(old_file(spare)));
    }

    pub(super) fn release(&self, segments: Vec<Released>) {
        if !segments.is_empty() {
            self.change(|state| state.released.extend(segments));
        }
    }

    /// Whether the room of a file of this size is worth keeping; then the caller brings it by [`Pool::keep`].
    pub(super) fn may_keep(&self, size: u64, kept: usize) -> bool {
        let state = self.state.lock();
        let short = state.stock() + kept < state.wanted() + 1;
        size >= SMALLEST && short && (state.stock() + kept < RESERVE || !state.is_far(size))
    }

    pub(super) fn keep(&self, files: Vec<OldFile>) {
        if !files.is_empty() {
            self.change(|state| state.old.extend(files));
        }
    }

    /// A name for a file whose life is over.
    pub(super) fn temporary_name(&self) -> String {
        segment::temporary_name(self.state.lock().number())
    }

    /// Asks for a commit that lets drained segments go, should none come by itself.
    pub(super) fn tidy_later(&self) {
        // Most commits ask for what was asked for already.
        if self.tidy_asked.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut state = self.state.lock();
        if state.tidy_at.is_none() {
            state.tidy_at = Some(Instant::now() + IDLE);
            drop(state);
            self.changed.notify_all();
        }
    }

    pub(super) fn stop(&self) {
        self.change(|state| state.stopping = true);
    }

    /// Bytes of the spares and of old files.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        let old: u64 = state.old.iter().map(|old| old.size).sum();
        old + state.spares.iter().map(|spare| spare.header.size).sum::<u64>()
    }

    /// Takes everything that is left to unlink, the spares included: no later open would use them.
    pub(super) fn drain(&self) -> (Vec<String>, Vec<Released>) {
        let mut state = self.state.lock();
        let mut names = std::mem::take(&mut state.discarded);
        names.append(&mut state.found);
        names.extend(state.old.drain(..).map(|old| old.name));
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

    fn made(&self, result: Result<Option<Arc<Segment>>, LogError>) {
        self.change(|state| match result {
            // ORDER: numbers in use ascend, and so do those of the spares: one job at a time gives them out.
            Ok(Some(spare)) => {
                state.tight = state.tight.saturating_sub(1);
                state.spares.push_back(spare);
            }
            // An old file was of no use: what could be hoped of it is not there.
            Ok(None) => state.halted = false,
            // Files that are too small for the reserve, or far too large, give their room for one that is neither.
            Err(LogError::NoSpace { .. }) if state.give_small() || state.give_large() => state.tight = TIGHT,
            Err(error) => {
                state.halted = true;
                if matches!(error, LogError::NoSpace { .. }) {
                    state.tight = TIGHT;
                }
                // Whoever waits for a spare may still be helped by an old file.
                let least = state.least.max(state.floor).max(SMALLEST);
                let helped = state.least > 0
                    && state.stock() >= state.count
                    && state.old.iter().any(|old| old.size >= least);
                if !(helped && matches!(error, LogError::NoSpace { .. })) {
                    state.failed = Some(error);
                }
            }
        });
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }
}

fn old_file(spare: &Segment) -> OldFile {
    OldFile { name: segment::name(spare.number()), size: spare.header.size }
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
    core.pool.change(|state| state.worker = Worker::Thread(thread::current().id()));
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
        Job::Make { number, size, least } => {
            // A commit that began before the failure may still ask for a file. Its name would be made durable by a
            // second sync of a directory whose first one failed.
            let made = core.check_poison().and_then(|()| life::begin(core, number, size, least));
            if let Err(error) = &made {
                core.poison_by(error);
            }
            core.pool.made(made.map(Some));
        }
        Job::Recycle { old, number } => {
            let made = core.check_poison().and_then(|()| life::begin_again(core, &old, number));
            if let Err(error) = &made {
                core.poison_by(error);
            }
            core.pool.made(made);
        }
        Job::Measure(names) => core.pool.keep(measure(core, names)),
        // A failure poisons the log; the next commit tells.
        Job::Clear { names, released } => drop(core.clear(&names, &released, true)),
        Job::Tidy => {
            // ORDER: whoever asks from now on may have changed what this visit does not see any more.
            core.pool.tidy_asked.swap(false, Ordering::AcqRel);
            core.tidy();
        }
    }
}

/// How large files are that were found at open. What is too small for a segment has no use as one.
fn measure(core: &Core, names: Vec<String>) -> Vec<OldFile> {
    // CRASH: a temporary name may be one that a former process gave, and its sync of the directory may have failed. Then
    // the old name is still on the disk whatever later syncs say, and must not come back with the header of another number.
    let is_temporary = |name: &str| segment::number_of(name).is_some_and(|(_, temporary)| temporary);
    let size = |name: &str| {
        if is_temporary(name) { 0 } else { core.handles.file(name.to_owned()).len().unwrap_or(0) }
    };
    names.into_iter().map(|name| OldFile { size: size(&name), name }).collect()
}
