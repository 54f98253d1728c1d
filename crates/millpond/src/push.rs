//! Taking pushes in: checks, slots, ids, the way into the line or among those who wait.

use smallvec::{SmallVec, smallvec};

use crate::batch::{Batch, PartKind};
use crate::completion::{Completion, Settlements, SharedOutcome};
use crate::durability::Durability;
use crate::envelope;
use crate::error::{Failure, PushError};
use crate::group_commit::Verdict;
use crate::limits::{ID_MAX, PAYLOAD_BYTES_MAX, WAITING_BYTES_MAX};
use crate::room::Load;
use crate::state::{Shared, State, Waiting};
use crate::sync::{Arc, MutexGuard};

/// Payloads that lie one after another in one buffer.
#[derive(Clone, Copy)]
pub(crate) struct Payloads<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) lengths: &'a [u32],
}

/// Where each of some values ends. One of them, the usual case, takes no memory of its own.
pub(crate) type Ends = SmallVec<[usize; 1]>;

/// What a push does when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Each payload for itself; what finds no room waits.
    Each,
    /// All in one commit; waits until all fit.
    Whole,
    /// As `Whole`, but refused instead of waiting for room.
    Now,
}

/// An operation that was taken in.
pub(crate) struct Taken {
    /// The token of the first payload.
    pub(crate) token: u64,
    /// Settled on this thread; nobody is told again.
    pub(crate) settled: Option<Result<u64, Failure>>,
    /// The thread follows in a batch that another one leads: what it waits for, and its outcome if that is a success.
    pub(crate) follows: Option<(Arc<SharedOutcome>, u64)>,
}

impl Taken {
    pub(crate) fn settled(token: u64, outcome: Result<u64, Failure>) -> Self {
        Self { token, settled: Some(outcome), follows: None }
    }

    pub(crate) fn waits(token: u64) -> Self {
        Self { token, settled: None, follows: None }
    }
}

impl Payloads<'_> {
    /// Checks everything that can be refused before an id or a slot is used.
    fn check(&self) -> Result<(), PushError> {
        let mut total = 0usize;
        for &length in self.lengths {
            let bytes = length as usize;
            if bytes > PAYLOAD_BYTES_MAX {
                return Err(PushError::TooLarge { bytes, limit: PAYLOAD_BYTES_MAX });
            }
            total = total.saturating_add(bytes);
        }
        // INVARIANT of the callers: lengths describe exactly the buffer.
        if total == self.bytes.len() {
            Ok(())
        } else {
            Err(PushError::TooLarge { bytes: total, limit: self.bytes.len() })
        }
    }

    /// The envelopes of all payloads one after another, and where each ends.
    fn envelopes(&self) -> (Vec<u8>, Ends) {
        let mut values = Vec::with_capacity(self.bytes.len() + self.lengths.len() * envelope::OVERHEAD);
        let mut ends = Ends::with_capacity(self.lengths.len());
        let mut rest = self.bytes;
        for &length in self.lengths {
            let (payload, tail) = rest.split_at(length as usize);
            envelope::encode(payload, &mut values);
            ends.push(values.len());
            rest = tail;
        }
        (values, ends)
    }
}

impl Shared {
    /// Takes pushes in. `completion` is told for the token it is given, unless the caller, a thread that parks, may
    /// follow in a batch and does. `Ok(None)` only for [`Admission::Now`] on a full queue.
    pub(crate) fn submit(
        self: &Arc<Self>,
        payloads: Payloads<'_>,
        admission: Admission,
        durability: Option<Durability>,
        may_follow: bool,
        completion: impl FnOnce(u64) -> Completion,
    ) -> Result<Option<Taken>, PushError> {
        payloads.check()?;
        let count = payloads.lengths.len() as u64;
        if admission != Admission::Each && count > self.capacity.entries {
            return Err(PushError::TooMany { count, capacity: self.capacity.entries });
        }
        // Bytes are copied before the lock is taken: the copy is the long part.
        let (values, ends) = payloads.envelopes();
        let durability = durability.unwrap_or(self.durability);

        let mut state = self.state.lock();
        self.admit(&state, admission, Load::new(ends.len(), values.len()))?;
        if admission == Admission::Now && !self.has_room_now(&state, Load::new(ends.len(), values.len())) {
            return Ok(None);
        }
        self.start_committer(&mut state)?;
        let token = state.next_token;
        state.next_token += count;
        if count == 0 {
            return Ok(Some(Taken::settled(token, Ok(state.next_id))));
        }

        let fits = self.fits_now(&state, &ends, admission);
        if fits == count && durability == Durability::None {
            if count == 1
                && let Some(memory) = self.store.memory()
            {
                let settled = self.push_in_place(state, memory, values);
                return Ok(Some(Taken::settled(token, settled)));
            }
            return Ok(Some(self.push_inline(state, token, values, &ends, completion)));
        }
        let joins = may_follow && fits == count && durability == Durability::Group;
        let joins = joins && state.line.back().is_some_and(|last| last.takes_follower(values.len()));
        let completion = if joins { Completion::Nobody } else { completion(token) };
        let mut follows = None;
        if fits > 0 {
            let (now, _) = ends.split_at(usize::try_from(fits).unwrap_or(ends.len()));
            let end = now.last().copied().unwrap_or(0);
            let first = state.claim(Load::new(now.len(), end));
            let whole = admission != Admission::Each;
            state.enqueue_push(first, values.get(..end).unwrap_or(&[]), now, durability, &completion, whole);
            if joins && let Some(batch) = state.line.back_mut() {
                follows = Some((batch.follow(), first));
            }
        }
        let mut settlements = Settlements::default();
        if fits < count {
            state.wait_for_room(token, fits, &values, ends, durability, &completion, admission);
        }
        if fits < count || state.lease_runs_low() {
            state.grant(self.capacity, &mut settlements);
        }
        self.elect(&mut state);
        drop(state);
        settlements.tell();
        Ok(Some(Taken { follows, ..Taken::waits(token) }))
    }

    /// Refuses what could never be taken in.
    fn admit(&self, state: &State, admission: Admission, load: Load) -> Result<(), PushError> {
        if state.closed {
            return Err(PushError::Closed);
        }
        if let Some(poison) = &state.poison {
            return Err(PushError::Store(poison.clone()));
        }
        if admission != Admission::Each && state.next_id.saturating_add(load.entries) > ID_MAX + 1 {
            return Err(PushError::IdsExhausted);
        }
        let waits = !state.waiting.is_empty() || !self.capacity.admits(state.held(), load);
        let waiting = state.waiting_load.bytes;
        if waits && waiting > 0 && waiting.saturating_add(load.bytes) > WAITING_BYTES_MAX as u64 {
            return Err(PushError::WaitingLimit { limit: WAITING_BYTES_MAX });
        }
        Ok(())
    }

    /// Whether `load` has room even after everybody who waits (for ids only, then) was served.
    fn has_room_now(&self, state: &State, load: Load) -> bool {
        let mut held = state.held();
        held.add(state.waiting_load);
        self.capacity.admits(held, load)
    }

    /// How many of the payloads that end at `ends` can have a slot and an id at once.
    fn fits_now(&self, state: &State, ends: &[usize], admission: Admission) -> u64 {
        if !state.waiting.is_empty() {
            return 0;
        }
        let count = ends.len() as u64;
        let fits = if admission == Admission::Each {
            self.capacity.fitting(state.held(), ends)
        } else {
            let load = Load::new(ends.len(), ends.last().copied().unwrap_or(0));
            if self.capacity.admits(state.held(), load) { count } else { 0 }
        };
        let fits = fits.min(state.ids_left());
        if admission == Admission::Each || fits == count { fits } else { 0 }
    }

    /// A push without durability: on this thread if the store can do that without blocking, else in the line.
    fn push_inline(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        token: u64,
        values: Vec<u8>,
        ends: &[usize],
        completion: impl FnOnce(u64) -> Completion,
    ) -> Taken {
        let first = state.claim(Load::new(ends.len(), values.len()));
        let (count, bytes) = (u32::try_from(ends.len()).unwrap_or(u32::MAX), values.len() as u64);
        let part = PartKind::Push { first, count, bytes };
        let puts = match *ends {
            [end] => SmallVec::from_buf([(first, end)]),
            _ => ends.iter().zip(first..).map(|(&end, id)| (id, end)).collect(),
        };
        let batch = Batch { values, puts, ..Batch::of(part) };
        self.settle_inline(state, batch, || completion(token), Ok(first))
            .map_or(Taken::waits(token), |settled| Taken::settled(token, settled))
    }

    /// Commits `batch`, which holds one part without completion, on this thread; the outcome is `success` or the
    /// failure. `None`: it went into the line with `completion` instead.
    pub(crate) fn settle_inline(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        mut batch: Batch,
        completion: impl FnOnce() -> Completion,
        success: Result<u64, Failure>,
    ) -> Option<Result<u64, Failure>> {
        state.inline += 1;
        drop(state);
        let verdict = self.commit_inline(&batch);
        let mut settlements = Settlements::default();
        let mut state = self.state.lock();
        state.inline -= 1;
        let outcome = match verdict {
            None => {
                let completion = completion();
                for part in &mut batch.parts {
                    part.completion = completion.clone();
                }
                state.line.push_back(batch);
                None
            }
            Some(verdict) => {
                let outcome = match &verdict {
                    Verdict::Done { .. } => success,
                    Verdict::Failed { failure, .. } => Err(failure.clone()),
                };
                self.settle_batch(&mut state, batch, verdict, &mut settlements);
                Some(outcome)
            }
        };
        self.elect(&mut state);
        drop(state);
        settlements.tell();
        outcome
    }

    /// Takes a push back that still waits for room or ids. False once it has an id: it settles by its commit.
    pub(crate) fn withdraw(&self, token: u64) -> bool {
        let mut settlements = Settlements::default();
        let mut state = self.state.lock();
        let Some(waiting) = state.waiting.remove(&token) else { return false };
        state.waiting_load.remove(waiting.load());
        // A large one at the head may have kept smaller ones waiting.
        state.grant(self.capacity, &mut settlements);
        self.elect(&mut state);
        self.wake_ready(&mut state, &mut settlements);
        drop(state);
        settlements.tell();
        true
    }

    /// Stops intake: what waits for room is refused, what has an id commits.
    pub(crate) fn close(&self) {
        let mut settlements = Settlements::default();
        let mut state = self.state.lock();
        state.stop_intake(self.capacity, &mut settlements);
        state.wake_futures(&mut settlements);
        drop(state);
        settlements.tell();
        self.ready.notify_all();
        self.read.notify_all();
    }
}

impl State {
    /// Lets the payloads from place `skip` on wait: each for itself, or all as one.
    #[expect(clippy::too_many_arguments, reason = "the parts of one submission, taken apart once")]
    fn wait_for_room(
        &mut self,
        token: u64,
        skip: u64,
        values: &[u8],
        ends: Ends,
        durability: Durability,
        completion: &Completion,
        admission: Admission,
    ) {
        if admission != Admission::Each {
            let waiting =
                Waiting { values: values.to_vec(), ends, durability, completion: completion.clone() };
            self.waiting_load.add(waiting.load());
            self.waiting.insert(token, waiting);
            return;
        }
        let mut start = 0;
        for (end, offset) in ends.into_iter().zip(0u64..) {
            if offset >= skip
                && let Some(value) = values.get(start..end)
            {
                let waiting = Waiting {
                    values: value.to_vec(),
                    ends: smallvec![value.len()],
                    durability,
                    completion: completion.at(offset),
                };
                self.waiting_load.add(waiting.load());
                self.waiting.insert(token + offset, waiting);
            }
            start = end;
        }
    }
}
