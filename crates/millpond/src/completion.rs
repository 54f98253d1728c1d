//! How the outcome of an operation reaches whoever waits for it: a parked thread, a waker, or the batch callback of
//! an event loop. One pipeline serves all three.

use std::task::{Poll, Waker};
use std::time::Instant;

use smallvec::SmallVec;

use crate::error::Failure;
use crate::reserved::Reserved;
use crate::sync::{Arc, Condvar, Latch, Mutex};

/// Receives what a queue has to say to an event loop. Called on the queue's own threads, never with a lock held.
/// Implementations must not block; a panic in one is caught and loses only that call.
pub trait Sink: Send + Sync {
    /// Once per commit: everything of this port that the commit settled.
    fn settled(&self, settled: Vec<Settled>);

    /// Once per sweep: at most as many items as were demanded. An item that is dropped is nacked. An error is one
    /// failed read and uses up one demand.
    fn delivered(&self, items: Result<Vec<Reserved>, Failure>);

    /// The answer to [`Port::scan`](crate::Port::scan).
    fn scanned(&self, token: u64, entries: Result<Vec<Entry>, Failure>);

    /// The answer to [`Port::finish`](crate::Port::finish): the store is closed, its lock is free.
    fn finished(&self, result: Result<(), Failure>);
}

/// A run of operations with consecutive tokens and one outcome.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The token of the first operation.
    pub token: u64,
    /// How many operations.
    pub count: u32,
    /// Pushes: the id of the first, the others follow. Acks by handle: 1. Acks by id: how many were removed.
    pub outcome: Result<u64, Failure>,
}

/// An unacked entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Vec<u8>> {
    /// Its id.
    pub id: u64,
    /// Its payload: bytes, or the value of a typed queue.
    pub payload: T,
}

/// A sink and its identity, so that a commit can group what belongs to one port.
pub(crate) struct PortSink {
    pub(crate) sink: Box<dyn Sink>,
}

/// Who is told about an operation.
#[derive(Clone)]
pub(crate) enum Completion {
    /// A thread or a future.
    Ticket(Arc<Ticket>),
    /// A port, by the token of its (first) operation.
    Port(Arc<PortSink>, u64),
    /// Nobody: the queue's own operation.
    Nobody,
}

impl Completion {
    /// Whether a parked thread stands behind it.
    pub(crate) fn can_lead(&self) -> bool {
        matches!(self, Completion::Ticket(ticket) if ticket.can_lead())
    }

    /// The completion of the operation `offset` places behind this one's first.
    pub(crate) fn at(&self, offset: u64) -> Self {
        match self {
            Completion::Port(port, token) => Completion::Port(Arc::clone(port), token + offset),
            other => other.clone(),
        }
    }
}

/// Where one thread or one future waits.
#[derive(Default)]
pub(crate) struct Ticket {
    slot: Mutex<Slot>,
    changed: Condvar,
    is_thread: bool,
}

#[derive(Default)]
struct Slot {
    elected: bool,
    outcome: Option<Result<u64, Failure>>,
    waker: Option<Waker>,
}

/// Why a parked thread woke.
pub(crate) enum Wake {
    /// Its operation is settled.
    Done(Result<u64, Failure>),
    /// It leads the next commit, which holds its own operation.
    Lead,
    /// The time given is over.
    TimedOut,
}

impl Ticket {
    pub(crate) fn for_thread() -> Arc<Self> {
        Arc::new(Self { is_thread: true, ..Self::default() })
    }

    pub(crate) fn for_future() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Whether a parked thread stands behind it, which can lead a commit. A future can be dropped, so it never leads.
    pub(crate) fn can_lead(&self) -> bool {
        self.is_thread
    }

    pub(crate) fn elect(&self) {
        self.slot.lock().elected = true;
        self.changed.notify_one();
    }

    pub(crate) fn settle(&self, outcome: Result<u64, Failure>) {
        let mut slot = self.slot.lock();
        slot.outcome = Some(outcome);
        let waker = slot.waker.take();
        drop(slot);
        self.changed.notify_one();
        if let Some(waker) = waker {
            guard(|| waker.wake());
        }
    }

    /// Parks the calling thread until something happens to its operation.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Wake {
        let mut slot = self.slot.lock();
        loop {
            // ORDER: first the designation. A failure on another thread may have settled the operation since, and the
            // line waits for whoever was designated all the same.
            if std::mem::take(&mut slot.elected) {
                return Wake::Lead;
            }
            if let Some(outcome) = slot.outcome.take() {
                return Wake::Done(outcome);
            }
            match deadline {
                None => self.changed.wait(&mut slot),
                Some(deadline) => {
                    if self.changed.wait_until(&mut slot, deadline).timed_out()
                        && slot.outcome.is_none()
                        && !slot.elected
                    {
                        return Wake::TimedOut;
                    }
                }
            }
        }
    }

    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<u64, Failure>> {
        // Cloned before and dropped after the lock is held: both are code of the runtime's.
        let waker = waker.clone();
        let mut slot = self.slot.lock();
        if let Some(outcome) = slot.outcome.take() {
            return Poll::Ready(outcome);
        }
        let before = slot.waker.replace(waker);
        drop(slot);
        drop(before);
        Poll::Pending
    }
}

/// The one outcome of a batch, for the threads in it that never lead it: they know what success means to each of them.
/// All of them wake by one call of the system.
#[derive(Default)]
pub(crate) struct SharedOutcome {
    latch: Latch,
    failure: Mutex<Option<Failure>>,
}

impl SharedOutcome {
    fn settle(&self, outcome: Result<(), Failure>) {
        // ORDER: the failure is there before anybody is let through.
        if let Err(failure) = outcome {
            *self.failure.lock() = Some(failure);
        }
        self.latch.open();
    }

    /// Parks the calling thread until the batch is settled.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        self.latch.wait();
        self.failure.lock().clone().map_or(Ok(()), Err)
    }
}

/// A batch that threads follow, and how it ended.
type SettledBatch = (Arc<SharedOutcome>, Result<(), Failure>);

/// What one commit (or one refusal) settled, gathered under the lock and told after it.
#[derive(Default)]
pub(crate) struct Settlements {
    batches: SmallVec<[SettledBatch; 1]>,
    tickets: Vec<(Arc<Ticket>, Result<u64, Failure>)>,
    ports: Vec<(Arc<PortSink>, Vec<Settled>)>,
    wakers: Vec<Waker>,
}

impl Settlements {
    /// Somebody to wake who is told nothing.
    pub(crate) fn wake(&mut self, waker: Waker) {
        self.wakers.push(waker);
    }

    /// The outcome of a whole batch, for the threads that follow in it.
    pub(crate) fn share(
        &mut self,
        batch: Option<Arc<SharedOutcome>>,
        outcome: impl FnOnce() -> Result<(), Failure>,
    ) {
        if let Some(batch) = batch {
            self.batches.push((batch, outcome()));
        }
    }

    pub(crate) fn push(&mut self, completion: Completion, count: u32, outcome: Result<u64, Failure>) {
        match completion {
            Completion::Nobody => {}
            Completion::Ticket(ticket) => self.tickets.push((ticket, outcome)),
            Completion::Port(port, token) => {
                let settled = Settled { token, count, outcome };
                match self.ports.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &port)) {
                    Some((_, list)) => append(list, settled),
                    None => self.ports.push((port, vec![settled])),
                }
            }
        }
    }

    /// Tells everybody. Never call it with the state's lock held.
    pub(crate) fn tell(self) {
        for (batch, outcome) in self.batches {
            batch.settle(outcome);
        }
        for (ticket, outcome) in self.tickets {
            ticket.settle(outcome);
        }
        for (port, settled) in self.ports {
            guard(|| port.sink.settled(settled));
        }
        for waker in self.wakers {
            guard(|| waker.wake());
        }
    }
}

/// Appends `next`, joined to the run before it where tokens and ids both go on: single pushes that waited for room
/// and were granted together then cost one record.
fn append(list: &mut Vec<Settled>, next: Settled) {
    if let Some(last) = list.last_mut()
        && last.token + u64::from(last.count) == next.token
        && let (Ok(first), Ok(id)) = (&last.outcome, &next.outcome)
        && first + u64::from(last.count) == *id
        && let Some(count) = last.count.checked_add(next.count)
    {
        last.count = count;
        return;
    }
    list.push(next);
}

/// Runs a callback of the user; a panic in it stays in it.
pub(crate) fn guard(callback: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback));
}
