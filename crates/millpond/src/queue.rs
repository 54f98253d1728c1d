//! The queue.

use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::completion::{Completion, Entry, PortSink, Settlements, Sink, Ticket, guard};
use crate::delivery::{InFlight, Items};
use crate::durability::Durability;
use crate::error::{AckError, CloseError, Failure, PushError, ReadError, ReserveError, TryPushError};
use crate::futures::PushFuture;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::port::Port;
use crate::push::{Admission, Payloads};
use crate::reserved::Reserved;
use crate::state::{Shared, State};
use crate::store::{RecoveryReport, StoreStats};
use crate::sync::{Arc, JoinHandle, MutexGuard, current_thread};
use crate::typed::Postcard;

/// A durable FIFO queue. Clones are the same queue; the last one that is dropped closes the store.
///
/// `Queue` without parameters holds bytes. `Queue<T>` holds values of `T`, which the codec `C` encodes; see
/// [`typed`](crate::typed). Everything that does not touch a payload is the same for both.
pub struct Queue<T: ?Sized = [u8], C = Postcard> {
    owner: Arc<Owner>,
    /// Neither holds nor borrows a value: the queue is `Send` and `Sync` whatever `T` is.
    of: PhantomData<fn(&T) -> C>,
}

impl<T: ?Sized, C> Clone for Queue<T, C> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

/// The part that all clones share; its end is the queue's end.
struct Owner {
    shared: Arc<Shared>,
}

/// Figures of a queue, read at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Unacked entries.
    pub length: u64,
    /// Unacked entries that can be handed out.
    pub ready: u64,
    /// Delivered entries that are not settled.
    pub in_flight: u64,
    /// Pushes that have an id and are not stored yet.
    pub claimed: u64,
    /// Pushes that wait for room.
    pub waiting_pushes: u64,
    /// Entries stored since open.
    pub pushed: u64,
    /// Entries removed since open.
    pub acked: u64,
    /// Items put back since open.
    pub nacked: u64,
    /// Deliveries since open.
    pub delivered: u64,
    /// Deliveries since open of entries that were delivered before.
    pub redelivered: u64,
    /// Store commits since open.
    pub commits: u64,
    /// Pushes and acks in those commits.
    pub committed_operations: u64,
    /// A write failed: nothing more is accepted until the queue is opened again.
    pub poisoned: bool,
    /// The store's figures.
    pub store: StoreStats,
}

/// A queue of bytes.
impl Queue {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { owner: Arc::new(Owner { shared }), of: PhantomData }
    }

    /// Appends an entry and returns its id. Waits while the queue is full.
    ///
    /// # Durability
    /// As the queue's policy says; see [`Durability`].
    ///
    /// # Errors
    /// [`PushError`]. When its outcome is [`Outcome::Unknown`](crate::Outcome::Unknown) the entry may be stored all the
    /// same, so repeating the push may deliver it twice.
    pub fn push(&self, payload: impl AsRef<[u8]>) -> Result<u64, PushError> {
        self.push_until(payload.as_ref(), None, None)
    }

    /// [`Queue::push`] with a policy of its own and a limit to the wait for room.
    ///
    /// # Errors
    /// As [`Queue::push`]; [`PushError::Timeout`] when there was no room in time.
    pub fn push_with(
        &self,
        payload: impl AsRef<[u8]>,
        durability: Option<Durability>,
        timeout: Option<Duration>,
    ) -> Result<u64, PushError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.push_until(payload.as_ref(), durability, deadline)
    }

    /// Appends an entry if there is room now.
    ///
    /// # Durability
    /// As [`Queue::push`].
    ///
    /// # Errors
    /// [`TryPushError::Full`] when there is no room; else as [`Queue::push`].
    pub fn try_push(&self, payload: impl AsRef<[u8]>) -> Result<u64, TryPushError> {
        self.push_now(payload.as_ref())
    }

    /// Appends entries in one commit and returns their ids, which are consecutive. Waits until all fit.
    ///
    /// # Errors
    /// As [`Queue::push`]; [`PushError::TooMany`] when there are more than the capacity.
    pub fn push_many<P: AsRef<[u8]>>(&self, payloads: &[P]) -> Result<Vec<u64>, PushError> {
        let mut row = Row::default();
        for payload in payloads {
            row.add(|bytes| {
                bytes.extend_from_slice(payload.as_ref());
                Ok(())
            })?;
        }
        self.push_row(&row)
    }

    /// [`Queue::push`] as a future. The payload is copied now.
    pub fn push_async(&self, payload: impl AsRef<[u8]>) -> PushFuture {
        self.push_later(payload.as_ref(), None)
    }

    /// The lowest ready entry, or `None` when nothing is ready. Never waits.
    ///
    /// # Errors
    /// [`ReserveError`]; the entry stays ready.
    pub fn reserve(&self) -> Result<Option<Reserved>, ReserveError> {
        self.take_one().map_err(ReserveError::Store)
    }

    /// Up to `max` ready entries, lowest first. Never waits.
    ///
    /// # Errors
    /// [`ReserveError`]; nothing was handed out.
    pub fn reserve_many(&self, max: usize) -> Result<Vec<Reserved>, ReserveError> {
        self.shared().take(max).map(Items::into_vec).map_err(ReserveError::Store)
    }

    /// The lowest ready entry; waits for one up to `timeout`. `None` when the time is over, or when the queue is
    /// closed and nothing is ready.
    ///
    /// # Errors
    /// [`ReserveError`]; the entry stays ready.
    pub fn reserve_timeout(&self, timeout: Duration) -> Result<Option<Reserved>, ReserveError> {
        self.take_timeout(timeout)
    }

    /// The payload of an unacked entry, without delivering it.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn get(&self, id: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let value = self.shared().read_value(id).map_err(ReadError::Store)?;
        Ok(value.map(|(mut value, offset)| {
            value.drain(..offset);
            value
        }))
    }

    /// All unacked entries in id order, without delivering them. Entries that come or go meanwhile may be there or
    /// not.
    pub fn iter(&self) -> Iter {
        Iter { queue: self.clone(), from: Some(0) }
    }

    /// Access for an event loop, which is answered through `sink`.
    pub fn port(&self, sink: Box<dyn Sink>) -> Port {
        Port::new(self.clone(), sink)
    }
}

/// What is the same for every payload.
impl<T: ?Sized, C> Queue<T, C> {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    /// The same queue with payloads of another type.
    pub(crate) fn cast<U: ?Sized, D>(&self) -> Queue<U, D> {
        Queue { owner: Arc::clone(&self.owner), of: PhantomData }
    }

    pub(crate) fn push_until(
        &self,
        payload: &[u8],
        durability: Option<Durability>,
        deadline: Option<Instant>,
    ) -> Result<u64, PushError> {
        let lengths = [payload_length(payload)?];
        let payloads = Payloads { bytes: payload, lengths: &lengths };
        self.push_all(payloads, Admission::Whole, durability, deadline).map(|id| id.unwrap_or(0))
    }

    /// Submits as one and waits on this thread. `None` only for [`Admission::Now`].
    fn push_all(
        &self,
        payloads: Payloads<'_>,
        admission: Admission,
        durability: Option<Durability>,
        deadline: Option<Instant>,
    ) -> Result<Option<u64>, PushError> {
        let shared = self.shared();
        // Made only when the push has to wait for anything.
        let mut ticket = None;
        let completion = |_| Completion::Ticket(Arc::clone(ticket.insert(Ticket::for_thread())));
        let Some(taken) = shared.submit(payloads, admission, durability, true, completion)? else {
            return Ok(None);
        };
        let outcome = match (taken.settled, taken.follows, &ticket) {
            (Some(outcome), ..) => outcome,
            (None, Some((batch, first)), _) => batch.wait().map(|()| first),
            (None, None, Some(ticket)) => {
                shared.drive(ticket, taken.token, deadline).ok_or(PushError::Timeout)?
            }
            (None, None, None) => return Ok(None),
        };
        Ok(Some(outcome?))
    }

    pub(crate) fn push_now(&self, payload: &[u8]) -> Result<u64, TryPushError> {
        let lengths = [payload_length(payload)?];
        let payloads = Payloads { bytes: payload, lengths: &lengths };
        self.push_all(payloads, Admission::Now, None, None)?.ok_or(TryPushError::Full)
    }

    pub(crate) fn push_row(&self, row: &Row) -> Result<Vec<u64>, PushError> {
        if row.lengths.is_empty() {
            return Ok(Vec::new());
        }
        let payloads = Payloads { bytes: &row.bytes, lengths: &row.lengths };
        let first = self.push_all(payloads, Admission::Whole, None, None)?.unwrap_or(0);
        Ok((first..).take(row.lengths.len()).collect())
    }

    pub(crate) fn push_later(&self, payload: &[u8], durability: Option<Durability>) -> PushFuture {
        let shared = Arc::clone(self.shared());
        let ticket = Ticket::for_future();
        let submitted = payload_length(payload).and_then(|length| {
            let payloads = Payloads { bytes: payload, lengths: &[length] };
            let completion = |_| Completion::Ticket(Arc::clone(&ticket));
            shared.submit(payloads, Admission::Whole, durability, false, completion)
        });
        match submitted {
            Err(error) => PushFuture::ready(shared, Err(error)),
            Ok(Some(taken)) if taken.settled.is_none() => PushFuture::pending(shared, taken.token, ticket),
            Ok(taken) => {
                let settled = taken.and_then(|taken| taken.settled).unwrap_or(Ok(0));
                PushFuture::ready(shared, settled.map_err(PushError::from))
            }
        }
    }

    pub(crate) fn take_one(&self) -> Result<Option<Reserved>, Failure> {
        self.shared().take_one()
    }

    pub(crate) fn take_timeout(&self, timeout: Duration) -> Result<Option<Reserved>, ReserveError> {
        // A time too large to add is no limit.
        let deadline = Instant::now().checked_add(timeout);
        let shared = self.shared();
        loop {
            match self.take_one() {
                Ok(None) => {}
                Ok(Some(item)) => return Ok(Some(item)),
                Err(_) if shared.state.lock().finishing => return Ok(None),
                Err(failure) => return Err(ReserveError::Store(failure)),
            }
            let mut state = shared.state.lock();
            if state.finishing {
                return Ok(None);
            }
            if state.may_be_ready() {
                continue;
            }
            if state.has_run_dry() {
                return Ok(None);
            }
            state.ready_waiters += 1;
            let timed_out = if let Some(deadline) = deadline {
                shared.ready.wait_until(&mut state, deadline).timed_out()
            } else {
                shared.ready.wait(&mut state);
                false
            };
            state.ready_waiters -= 1;
            if timed_out && !state.may_be_ready() {
                return Ok(None);
            }
        }
    }

    /// Removes an entry by id. `Ok(false)` when there is none (it was acked before, or never existed).
    ///
    /// # Errors
    /// [`AckError`]; the entry is where it was.
    pub fn ack(&self, id: u64) -> Result<bool, AckError> {
        self.ack_many(&[id]).map(|removed| removed > 0)
    }

    /// Removes entries by id in one commit and returns how many there were.
    ///
    /// # Errors
    /// [`AckError`]; the entries are where they were.
    pub fn ack_many(&self, ids: &[u64]) -> Result<u64, AckError> {
        self.shared().ack_here(ids)
    }

    /// Puts whichever delivery of `id` there is back in its place. False when there is none, or an ack is under way.
    pub fn nack(&self, id: u64) -> bool {
        self.shared().nack_id(id)
    }

    /// Unacked entries: ready, in flight or being acked.
    pub fn len(&self) -> u64 {
        self.shared().state.lock().stored
    }

    /// Whether there is no unacked entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries that can be handed out.
    pub fn ready_len(&self) -> u64 {
        self.shared().state.lock().ready_len()
    }

    /// Delivered items that are not settled, lowest id first.
    pub fn in_flight(&self) -> Vec<InFlight> {
        self.shared().in_flight()
    }

    /// The largest number of unacked entries before pushes wait.
    pub fn capacity(&self) -> u64 {
        self.shared().capacity.entries
    }

    /// The queue's policy.
    pub fn durability(&self) -> Durability {
        self.shared().durability
    }

    /// Figures of this moment.
    pub fn stats(&self) -> Stats {
        let store = self.shared().store.stats();
        let state = self.shared().state.lock();
        let counters = state.counters;
        Stats {
            length: state.stored,
            ready: state.ready_len(),
            in_flight: state.in_flight,
            claimed: state.claimed.entries,
            waiting_pushes: state.waiting.len() as u64,
            pushed: counters.pushed,
            acked: counters.acked,
            nacked: counters.nacked,
            delivered: counters.delivered,
            redelivered: counters.redelivered,
            commits: counters.commits,
            committed_operations: counters.operations,
            poisoned: state.poison.is_some(),
            store,
        }
    }

    /// What opening the store found.
    pub fn recovery(&self) -> RecoveryReport {
        self.shared().store.recovery()
    }

    /// Blocks until everything accepted so far is durable, whatever the policy.
    ///
    /// # Errors
    /// The failure of the commit.
    pub fn flush(&self) -> Result<(), Failure> {
        self.shared().flush()
    }

    /// Stops intake: pushes that wait for room and later ones get `Closed`. The consumer drains what is there, then
    /// [`Queue::reserve_timeout`] returns `None`. The store closes when the last clone is dropped.
    pub fn close(&self) {
        self.shared().close();
    }

    /// Whether intake was stopped.
    pub fn is_closed(&self) -> bool {
        self.shared().state.lock().closed
    }

    /// Ends the queue for all clones and waits for it: what has an id commits, reservations go back, the store closes
    /// and its lock is free. Later calls fail with `Closed`; a second call waits for the same end.
    ///
    /// # Errors
    /// [`CloseError`] when the last write failed. The store is closed all the same.
    pub fn finish(&self) -> Result<(), CloseError> {
        self.shared().finish(None);
        self.shared().wait_for_end().map_err(CloseError::Store)
    }
}

impl IntoIterator for &Queue {
    type Item = Result<Entry, ReadError>;
    type IntoIter = Iter;

    fn into_iter(self) -> Iter {
        self.iter()
    }
}

impl<T: ?Sized, C> fmt::Debug for Queue<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("len", &self.len()).finish_non_exhaustive()
    }
}

pub(crate) fn payload_length(payload: &[u8]) -> Result<u32, PushError> {
    let bytes = payload.len();
    u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= PAYLOAD_BYTES_MAX)
        .ok_or(PushError::TooLarge { bytes, limit: PAYLOAD_BYTES_MAX })
}

/// Payloads of one commit, one after another.
#[derive(Default)]
pub(crate) struct Row {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
}

impl Row {
    /// Appends the payload that `write` appends to the bytes.
    pub(crate) fn add(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), PushError>,
    ) -> Result<(), PushError> {
        let start = self.bytes.len();
        write(&mut self.bytes)?;
        self.lengths.push(payload_length(self.bytes.get(start..).unwrap_or(&[]))?);
        Ok(())
    }
}

/// Unacked entries in id order; see [`Queue::iter`].
#[derive(Debug)]
pub struct Iter {
    queue: Queue,
    from: Option<u64>,
}

impl Iter {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.queue.shared()
    }
}

impl Iterator for Iter {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.queue.shared().entry_from(self.from?);
        match entry {
            Ok(Some(entry)) => {
                self.from = entry.id.checked_add(1);
                Some(Ok(entry))
            }
            Ok(None) => {
                self.from = None;
                None
            }
            Err(failure) => {
                self.from = None;
                Some(Err(ReadError::Store(failure)))
            }
        }
    }
}

impl Shared {
    /// Acks by id and waits on this thread.
    pub(crate) fn ack_here(self: &Arc<Self>, ids: &[u64]) -> Result<u64, AckError> {
        let ticket = Ticket::for_thread();
        let taken = self.ack_ids(ids, |_| Completion::Ticket(Arc::clone(&ticket)))?;
        let outcome = match taken.settled {
            Some(outcome) => outcome,
            None => self.drive(&ticket, taken.token, None).unwrap_or(Ok(0)),
        };
        outcome.map_err(AckError::from)
    }

    /// Asks for the end. `port` is told when it has come.
    pub(crate) fn finish(self: &Arc<Self>, port: Option<&Arc<PortSink>>) {
        let mut settlements = Settlements::default();
        let mut state = self.state.lock();
        if let Some(port) = port {
            if let Some(result) = state.finished.clone() {
                drop(state);
                guard(|| port.sink.finished(result));
                return;
            }
            state.finish_ports.push(Arc::clone(port));
        }
        if !state.finishing {
            state.stop_intake(self.capacity, &mut settlements);
            state.demands.clear();
            state.finishing = true;
            state.wake_futures(&mut settlements);
            // Without its thread the end is made on this one, below.
            let started = self.start_committer(&mut state);
            drop(state);
            settlements.tell();
            self.ready.notify_all();
            self.read.notify_all();
            self.commit.notify_one();
            if started.is_err() {
                self.run_committer();
            }
        }
    }

    pub(crate) fn wait_for_end(&self) -> Result<(), Failure> {
        let mut state = self.state.lock();
        loop {
            if let Some(result) = &state.finished {
                return result.clone();
            }
            self.ended.wait(&mut state);
        }
    }
}

/// Joins a thread unless it is the one that asks.
fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread
        && thread.thread().id() != current_thread().id()
    {
        let _ = thread.join();
    }
}

fn runs_here(thread: Option<&JoinHandle<()>>) -> bool {
    thread.is_some_and(|thread| thread.thread().id() == current_thread().id())
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.finish(None);
        let on_own_thread = |state: &MutexGuard<'_, State>| {
            runs_here(state.threads.committer.as_ref())
                || runs_here(state.threads.reader.as_ref())
                || state.leader == Some(current_thread().id())
        };
        // Dropped inside a callback: that thread has a part in the end and cannot wait for it.
        if on_own_thread(&self.shared.state.lock()) {
            return;
        }
        let _ = self.shared.wait_for_end();
        let (committer, reader) = {
            let mut state = self.shared.state.lock();
            (state.threads.committer.take(), state.threads.reader.take())
        };
        join(committer);
        join(reader);
    }
}
