//! The commit pipeline: one party leads at a time, makes one store commit and answers for everybody in it.
//!
//! A thread leads only the batch that holds its own operation; then it hands over to a parked thread of the next
//! batch, else to the commit thread. So nobody leads for ever, and no batch waits for a leader that is not there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::batch::{Batch, PartKind};
use crate::code::{ErrorCode, Outcome};
use crate::completion::{Completion, Settlements, Ticket, Wake, guard};
use crate::durability::Durability;
use crate::error::Failure;
use crate::key::{self, Key};
use crate::limits::LEASE_IDS;
use crate::meta::Meta;
use crate::room::Load;
use crate::state::{Shared, State};
use crate::store::{AnyStore, FailureKind, Op, StoreError};
use crate::sync::{Arc, MutexGuard, ThreadBuilder, current_thread};

/// How a commit ended.
pub(crate) enum Verdict {
    /// It succeeded; these ids of acks by id were not there.
    Done { missing: Vec<u64> },
    /// It failed.
    Failed {
        failure: Failure,
        /// What is on disk is not known: nothing more is accepted.
        poisons: bool,
        /// Ids of this batch that readers see all the same.
        there: Vec<u64>,
        /// Ids whose delete took place all the same.
        gone: Vec<u64>,
    },
}

impl Shared {
    /// Starts the commit thread if it does not run yet.
    pub(crate) fn start_committer(
        self: &Arc<Self>,
        state: &mut MutexGuard<'_, State>,
    ) -> Result<(), Failure> {
        if state.threads.committer.is_none() {
            let shared = Arc::clone(self);
            let thread = ThreadBuilder::new().name("millpond-commit".to_owned());
            let handle = thread.spawn(move || shared.run_committer()).map_err(|error| {
                Failure::new(
                    ErrorCode::Io,
                    Outcome::NotDone,
                    format!("the commit thread did not start: {error}"),
                )
            })?;
            state.threads.committer = Some(handle);
        }
        Ok(())
    }

    /// Designates who leads the next batch, if nobody does. Call it after every change of the line.
    pub(crate) fn elect(&self, state: &mut State) {
        if state.leading {
            return;
        }
        let Some(front) = state.line.front() else {
            if state.finishing {
                self.commit.notify_one();
            }
            return;
        };
        state.leading = true;
        if let Some(ticket) = front.thread() {
            ticket.elect();
        } else {
            state.committer_elected = true;
            self.commit.notify_one();
        }
    }

    /// Waits for the operation behind `ticket`, leading its commit when that falls to this thread. `token` names it
    /// while it waits for room; `None` once the deadline has passed and it was withdrawn.
    pub(crate) fn drive(
        self: &Arc<Self>,
        ticket: &Ticket,
        token: u64,
        mut deadline: Option<Instant>,
    ) -> Option<Result<u64, Failure>> {
        loop {
            match ticket.wait(deadline) {
                Wake::Done(outcome) => return Some(outcome),
                Wake::Lead => self.lead(),
                Wake::TimedOut => {
                    if self.withdraw(token) {
                        return None;
                    }
                    deadline = None;
                }
            }
        }
    }

    /// Commits the batch at the front and designates the next leader.
    fn lead(&self) {
        let (batch, poison) = {
            let mut state = self.state.lock();
            state.leader = Some(current_thread().id());
            (state.line.pop_front(), state.poison.clone())
        };
        if let Some(batch) = batch {
            let verdict = match poison {
                // A write failed on another thread since: nothing more reaches the store.
                Some(failure) => {
                    Verdict::Failed { failure, poisons: true, there: Vec::new(), gone: Vec::new() }
                }
                None => catch_unwind(AssertUnwindSafe(|| self.commit(&batch))).unwrap_or_else(|_| panicked()),
            };
            let mut settlements = Settlements::default();
            {
                let mut state = self.state.lock();
                self.settle_batch(&mut state, batch, verdict, &mut settlements);
            }
            // ORDER: told before the next leader is designated, so that outcomes arrive in the order of commits.
            settlements.tell();
        }
        let mut state = self.state.lock();
        state.leading = false;
        state.leader = None;
        self.elect(&mut state);
    }

    /// Makes the store commit of `batch`. No lock is held.
    fn commit(&self, batch: &Batch) -> Verdict {
        let missing = self.missing(batch);
        self.weigh(batch);
        let empty = batch.meta.is_none() && batch.puts.is_empty() && batch.deletes.len() == missing.len();
        let flush = batch.parts.iter().any(|part| matches!(part.kind, PartKind::Flush));
        if empty && !flush {
            return Verdict::Done { missing };
        }
        let result = batch.with_ops(&missing, |ops| self.call_commit(ops, batch.durable));
        self.verdict(batch, missing, result)
    }

    /// A store commit whose panic is an error.
    fn call_commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), CommitFailure> {
        match catch_unwind(AssertUnwindSafe(|| self.store.commit(ops, durable))) {
            Ok(result) => result.map_err(CommitFailure::Store),
            Err(_) => Err(CommitFailure::Panic),
        }
    }

    /// Tries a non-durable commit on the caller's thread. `None`: not possible without blocking, nothing was done.
    pub(crate) fn commit_inline(&self, batch: &Batch) -> Option<Verdict> {
        catch_unwind(AssertUnwindSafe(|| self.try_inline(batch))).unwrap_or_else(|_| Some(panicked()))
    }

    fn try_inline(&self, batch: &Batch) -> Option<Verdict> {
        let result = catch_unwind(AssertUnwindSafe(|| batch.with_ops(&[], |ops| self.store.try_commit(ops))));
        let result = match result {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => return None,
            Ok(Err(error)) => Err(CommitFailure::Store(error)),
            Err(_) => Err(CommitFailure::Panic),
        };
        Some(self.verdict(batch, Vec::new(), result))
    }

    fn verdict(&self, batch: &Batch, missing: Vec<u64>, result: Result<(), CommitFailure>) -> Verdict {
        let (failure, poisons) = match result {
            Ok(()) => return Verdict::Done { missing },
            Err(CommitFailure::Store(error)) => {
                let keeps = matches!(error.kind(), FailureKind::NoSpace | FailureKind::NotWritten);
                (Failure::of_commit(&error), !keeps)
            }
            Err(CommitFailure::Panic) => (panic_failure(), true),
        };
        // A store that is not atomic may show parts of a failed commit: counts follow what readers see.
        let (mut there, mut gone) = (Vec::new(), Vec::new());
        if !self.store.is_atomic() {
            there.extend(
                batch.puts.iter().map(|&(id, _)| id).filter(|&id| self.is_stored(id).unwrap_or(false)),
            );
            gone.extend(batch.deletes.iter().copied().filter(|&id| !self.is_stored(id).unwrap_or(true)));
        }
        Verdict::Failed { failure, poisons, there, gone }
    }

    /// A read of the store whose panic is an error: a store of the user's must not take a leader or an item with it.
    pub(crate) fn call_read<T>(
        &self,
        id: Option<u64>,
        read: impl FnOnce(&dyn AnyStore) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        match catch_unwind(AssertUnwindSafe(|| read(self.store.as_ref()))) {
            Ok(result) => result.map_err(|error| Failure::of_store(&error, id)),
            Err(_) => {
                Err(Failure::new(ErrorCode::Internal, Outcome::NotDone, "the store panicked during a read"))
            }
        }
    }

    /// Whether readers of the store see entry `id`; no value is read.
    pub(crate) fn is_stored(&self, id: u64) -> Result<bool, Failure> {
        Ok(self.next_stored(id)? == Some(id))
    }

    /// The lowest stored id that is not below `from`.
    pub(crate) fn next_stored(&self, from: u64) -> Result<Option<u64>, Failure> {
        let found = self.call_read(None, |store| store.next_key(&key::entry(from)))?;
        Ok(found.and_then(|key| match Key::parse(&key) {
            Ok(Key::Entry(id)) => Some(id),
            _ => None,
        }))
    }

    /// The ids of acks by id that are not stored, sorted. An id whose look-up fails counts as stored: its delete is
    /// harmless.
    fn missing(&self, batch: &Batch) -> Vec<u64> {
        let mut missing = Vec::new();
        for part in &batch.parts {
            if let PartKind::AckIds { start, count } = part.kind {
                missing.extend(
                    batch.acks(start, count).iter().filter(|&&id| !self.is_stored(id).unwrap_or(true)),
                );
            }
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Finds out how many bytes acks by id give back, where the entry was not delivered and there is a byte limit.
    fn weigh(&self, batch: &Batch) {
        if self.capacity.bytes.is_none() {
            return;
        }
        let by_id = batch.parts.iter().filter_map(|part| match part.kind {
            PartKind::AckIds { start, count } => Some(batch.acks(start, count)),
            _ => None,
        });
        let unknown: Vec<u64> = {
            let state = self.state.lock();
            let is_unknown = |id: &u64| state.flights.get(id).is_some_and(|flight| flight.bytes == 0);
            by_id.flatten().copied().filter(is_unknown).collect()
        };
        for id in unknown {
            let value = self.call_read(Some(id), |store| store.get(&key::entry(id)));
            if let Ok(Some(value)) = value
                && let Some(flight) = self.state.lock().flights.get_mut(&id)
            {
                flight.bytes = value.len() as u64;
            }
        }
    }

    /// Applies the end of a commit to the state and gathers who is to be told what.
    pub(crate) fn settle_batch(
        &self,
        state: &mut State,
        batch: Batch,
        verdict: Verdict,
        settlements: &mut Settlements,
    ) {
        match verdict {
            Verdict::Done { missing } => Self::settle_done(state, batch, &missing, settlements),
            Verdict::Failed { failure, poisons, there, gone } => {
                if poisons && state.poison.is_none() {
                    state.poison = Some(failure.poison());
                }
                Self::settle_failed(state, batch, &failure, &there, &gone, settlements);
                if let Some(poison) = state.poison.clone() {
                    for batch in std::mem::take(&mut state.line) {
                        Self::settle_failed(state, batch, &poison, &[], &[], settlements);
                    }
                    state.refuse_waiting(&poison, settlements);
                }
            }
        }
        state.grant(self.capacity, settlements);
        self.wake_ready(state, settlements);
    }

    fn settle_done(state: &mut State, mut batch: Batch, missing: &[u64], settlements: &mut Settlements) {
        state.counters.commits += 1;
        state.counters.operations += batch.operations();
        settlements.share(batch.outcome.take(), || Ok(()));
        if let Some(ceiling) = batch.ceiling {
            state.meta.ceiling = ceiling;
            state.leasing = false;
            state.leased = true;
        }
        for part in std::mem::take(&mut batch.parts) {
            match part.kind {
                PartKind::Push { first, count, bytes } => {
                    let load = Load { entries: u64::from(count), bytes };
                    state.unclaim(first, load);
                    let early = state.take_early(first..first + load.entries);
                    state.stored += load.entries - early.entries;
                    state.stored_bytes += bytes.saturating_sub(early.bytes);
                    state.counters.pushed += u64::from(count);
                    settlements.push(part.completion, count, Ok(first));
                }
                PartKind::Ack { start, count } => {
                    for &id in batch.acks(start, count) {
                        state.remove(id);
                    }
                    settlements.push(part.completion, count, Ok(1));
                }
                PartKind::AckIds { start, count } => {
                    let mut removed = 0;
                    for &id in batch.acks(start, count) {
                        if missing.binary_search(&id).is_ok() {
                            state.unack_missing(id);
                        } else {
                            let by_handle = state.is_removed_by_handle(id);
                            removed += u64::from(state.remove(id) && !by_handle);
                        }
                    }
                    settlements.push(part.completion, 1, Ok(removed));
                }
                PartKind::Flush => settlements.push(part.completion, 1, Ok(0)),
            }
        }
    }

    fn settle_failed(
        state: &mut State,
        mut batch: Batch,
        failure: &Failure,
        there: &[u64],
        gone: &[u64],
        settlements: &mut Settlements,
    ) {
        settlements.share(batch.outcome.take(), || Err(failure.clone()));
        if batch.ceiling.is_some() {
            state.leasing = false;
            // Pushes that wait for ids would wait for ever: they get the lease's error and may be tried again.
            state.refuse_waiting(&failure.not_done(), settlements);
        }
        for part in std::mem::take(&mut batch.parts) {
            let told = match part.kind {
                PartKind::Push { first, count, bytes } => {
                    let ids = first..first + u64::from(count);
                    state.unclaim(first, Load { entries: u64::from(count), bytes });
                    // They are gone, so they are not among `there`.
                    state.take_early(ids.clone());
                    for &id in there.iter().filter(|id| ids.contains(id)) {
                        state.stored += 1;
                        state.stored_bytes += batch.value_bytes(id);
                    }
                    count
                }
                PartKind::Ack { start, count } | PartKind::AckIds { start, count } => {
                    for &id in batch.acks(start, count) {
                        if gone.contains(&id) {
                            state.remove(id);
                        } else if matches!(part.kind, PartKind::Ack { .. }) {
                            state.unack_handle(id);
                        } else {
                            state.unack(id);
                        }
                    }
                    if matches!(part.kind, PartKind::Ack { .. }) { count } else { 1 }
                }
                PartKind::Flush => 1,
            };
            settlements.push(part.completion, told, Err(failure.clone()));
        }
    }

    /// The commit thread: leads batches nobody waits for on a thread of their own, and closes the store at the end.
    pub(crate) fn run_committer(&self) {
        loop {
            let mut state = self.state.lock();
            while !state.committer_elected && !state.may_end() {
                self.commit.wait(&mut state);
            }
            if std::mem::take(&mut state.committer_elected) {
                drop(state);
                self.lead();
                continue;
            }
            state.leading = true;
            drop(state);
            self.end();
            return;
        }
    }

    /// The last commit, the end of the store, and the news of it.
    fn end(&self) {
        let last = {
            let state = self.state.lock();
            let shrinks = state.leased && state.poison.is_none() && state.meta.ceiling != state.next_id;
            shrinks.then(|| Meta { ceiling: state.next_id, ..state.meta.clone() }.encode())
        };
        let shrunk = match &last {
            Some(meta) => self.call_commit(&[Op::Put(&key::META_KEY, meta)], true),
            None => Ok(()),
        };
        let closed = match catch_unwind(AssertUnwindSafe(|| self.store.close())) {
            Ok(result) => result.map_err(CommitFailure::Store),
            Err(_) => Err(CommitFailure::Panic),
        };
        let result = shrunk.and(closed).map_err(|failure| {
            // A poisoned queue says so again; what stopped the store is told in it.
            let poison = self.state.lock().poison.clone();
            poison.unwrap_or_else(|| match failure {
                CommitFailure::Store(error) => Failure::of_commit(&error),
                CommitFailure::Panic => {
                    Failure::new(ErrorCode::Internal, Outcome::Unknown, "the store panicked while closing")
                }
            })
        });
        let ports = {
            let mut state = self.state.lock();
            state.finished = Some(result.clone());
            std::mem::take(&mut state.finish_ports)
        };
        self.ended.notify_all();
        self.read.notify_all();
        self.ready.notify_all();
        for port in ports {
            guard(|| port.sink.finished(result.clone()));
        }
    }

    /// Adds an operation that only waits until everything before it is durable.
    pub(crate) fn flush(self: &Arc<Self>) -> Result<(), Failure> {
        let ticket = Ticket::for_thread();
        {
            let mut state = self.state.lock();
            if let Some(refusal) = state.write_refusal() {
                return Err(refusal);
            }
            let alone = self.durability == Durability::Sync;
            if let Some(batch) = Batch::open(&mut state.line, 0, alone) {
                batch.durable = true;
                batch.add_part(Completion::Ticket(Arc::clone(&ticket)), PartKind::Flush);
            }
            self.elect(&mut state);
        }
        self.drive(&ticket, 0, None).map_or(Ok(()), |outcome| outcome.map(|_| ()))
    }
}

impl State {
    /// Nothing is under way any more and the end was asked for.
    fn may_end(&self) -> bool {
        let idle = !self.leading && self.line.is_empty() && self.waiting.is_empty() && self.inline == 0;
        self.finishing && idle && self.finished.is_none()
    }

    /// Whether the next lease should be asked for ahead of use.
    pub(crate) fn lease_runs_low(&self) -> bool {
        self.leased && self.ids_left() < LEASE_IDS / 2
    }
}

/// The verdict on a commit that a panic cut short.
pub(crate) fn panicked() -> Verdict {
    Verdict::Failed { failure: panic_failure(), poisons: true, there: Vec::new(), gone: Vec::new() }
}

pub(crate) fn panic_failure() -> Failure {
    Failure::new(ErrorCode::Internal, Outcome::Unknown, "the store panicked during a commit")
}

/// Why a store commit did not succeed.
enum CommitFailure {
    Store(StoreError),
    Panic,
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::fmt;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::builder::Builder;
    use crate::push::{Admission, Payloads};
    use crate::store::{MemStore, Pair, Store};

    /// A store whose commits on the caller's thread fail when asked to.
    struct InlineFails(MemStore, Arc<AtomicBool>);

    #[derive(Debug)]
    struct Fault;

    impl fmt::Display for Fault {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("injected fault")
        }
    }

    impl std::error::Error for Fault {}

    impl From<Infallible> for Fault {
        fn from(never: Infallible) -> Self {
            match never {}
        }
    }

    impl Store for InlineFails {
        type Error = Fault;

        fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
            Ok(Store::get(&self.0, key)?)
        }

        fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Fault> {
            Ok(self.0.seek(from)?)
        }

        fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Fault> {
            Ok(self.0.seek_back(upto)?)
        }

        fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), Fault> {
            Ok(Store::commit(&self.0, ops, durable)?)
        }

        fn try_commit(&self, ops: &[Op<'_>]) -> Result<bool, Fault> {
            if self.1.load(Ordering::SeqCst) { Err(Fault) } else { Ok(Store::try_commit(&self.0, ops)?) }
        }
    }

    #[test]
    fn a_designated_leader_whose_operation_was_refused_since_still_hands_over() {
        let fails = Arc::new(AtomicBool::new(false));
        let store = InlineFails(MemStore::new(), Arc::clone(&fails));
        let queue = Builder::new(store).durability(Durability::None).open().unwrap();
        queue.push(b"takes the lease").unwrap();
        let ticket = Ticket::for_thread();
        let payloads = Payloads { bytes: b"b", lengths: &[1] };
        let taken = queue
            .shared()
            .submit(payloads, Admission::Whole, Some(Durability::Group), false, |_| {
                Completion::Ticket(Arc::clone(&ticket))
            })
            .unwrap()
            .unwrap();
        // This thread is designated and has not begun when a push on another one poisons the queue.
        fails.store(true, Ordering::SeqCst);
        assert_eq!(queue.push(b"c").unwrap_err().code(), ErrorCode::Io);
        let outcome = queue.shared().drive(&ticket, taken.token, None).unwrap();
        assert_eq!(outcome.unwrap_err().code(), ErrorCode::Poisoned);
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            drop(queue);
            sender.send(())
        });
        receiver.recv_timeout(Duration::from_secs(20)).expect("the queue ends");
    }

    #[test]
    fn acks_of_old_ids_leave_nothing_in_memory() {
        let queue = Builder::new(MemStore::new()).durability(Durability::Group).open().unwrap();
        queue.push(b"a").unwrap();
        queue.reserve().unwrap().unwrap().ack().unwrap();
        for _ in 0..10 {
            assert!(!queue.ack(1).unwrap());
        }
        let state = queue.shared().state.lock();
        assert!(state.returned.is_empty() && state.flights.is_empty() && state.early.is_empty());
    }
}
