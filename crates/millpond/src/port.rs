//! The side of a queue that an event loop uses: nothing waits, everything is answered through one [`Sink`].

use crate::completion::{Completion, PortSink, Sink};
use crate::delivery::Items;
use crate::durability::Durability;
use crate::error::{Failure, PushError, TryPushError};
use crate::push::{Admission, Payloads};
use crate::queue::Queue;
use crate::reserved::{Handle, Reserved};
use crate::sync::Arc;

/// One event loop's access to a queue. Operations carry tokens; the sink is told what became of each.
pub struct Port {
    queue: Queue,
    sink: Arc<PortSink>,
}

/// Operations that were taken in: `count` of them, with consecutive tokens.
#[derive(Clone, Debug)]
#[must_use = "the outcome arrives under these tokens, or is here already"]
pub struct Submitted {
    /// The token of the first operation.
    pub token: u64,
    /// How many operations.
    pub count: u32,
    /// Set when all of them are settled on this thread; the sink is not told again. Pushes: the first id.
    pub settled: Option<Result<u64, Failure>>,
}

impl Port {
    pub(crate) fn new(queue: Queue, sink: Box<dyn Sink>) -> Self {
        Self { queue, sink: Arc::new(PortSink { sink }) }
    }

    /// The queue behind this port.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Independent pushes whose payloads lie one after another in `bytes`. What finds no room waits, in order. With
    /// `durability` another policy than the queue's is asked for.
    pub fn push_each(&self, bytes: &[u8], lengths: &[u32], durability: Option<Durability>) -> Submitted {
        self.submit(Payloads { bytes, lengths }, Admission::Each, durability)
    }

    /// Pushes in one commit, which wait until all fit.
    pub fn push_whole(&self, bytes: &[u8], lengths: &[u32], durability: Option<Durability>) -> Submitted {
        self.submit(Payloads { bytes, lengths }, Admission::Whole, durability)
    }

    fn submit(
        &self,
        payloads: Payloads<'_>,
        admission: Admission,
        durability: Option<Durability>,
    ) -> Submitted {
        let count = u32::try_from(payloads.lengths.len()).unwrap_or(u32::MAX);
        let completion = |token| Completion::Port(Arc::clone(&self.sink), token);
        match self.queue.shared().submit(payloads, admission, durability, false, completion) {
            Ok(Some(taken)) => Submitted { token: taken.token, count, settled: taken.settled },
            Ok(None) => Submitted { token: 0, count, settled: Some(Err(TryPushError::Full.into())) },
            Err(error) => Submitted { token: 0, count, settled: Some(Err(error.into())) },
        }
    }

    /// A push that is not taken in when the queue is full: `None`.
    pub fn try_push(&self, payload: &[u8], durability: Option<Durability>) -> Option<Submitted> {
        let Ok(length) = u32::try_from(payload.len()) else {
            let error = PushError::TooLarge { bytes: payload.len(), limit: crate::limits::PAYLOAD_BYTES_MAX };
            return Some(Submitted { token: 0, count: 1, settled: Some(Err(error.into())) });
        };
        let payloads = Payloads { bytes: payload, lengths: &[length] };
        let completion = |token| Completion::Port(Arc::clone(&self.sink), token);
        match self.queue.shared().submit(payloads, Admission::Now, durability, false, completion) {
            Ok(Some(taken)) => Some(Submitted { token: taken.token, count: 1, settled: taken.settled }),
            Ok(None) => None,
            Err(error) => Some(Submitted { token: 0, count: 1, settled: Some(Err(error.into())) }),
        }
    }

    /// Pushes and blocks this thread until the entry is durable, for exit paths.
    ///
    /// # Errors
    /// [`TryPushError`], `Full` when there is no room.
    pub fn push_blocking(&self, payload: &[u8]) -> Result<u64, TryPushError> {
        self.queue.try_push(payload)
    }

    /// Blocks this thread until everything accepted so far is durable, for exit paths.
    ///
    /// # Errors
    /// The failure of the commit.
    pub fn flush_blocking(&self) -> Result<(), Failure> {
        self.queue.flush()
    }

    /// Takes a waiting push back; the sink is then not told of it. False once it has an id.
    pub fn withdraw(&self, token: u64) -> bool {
        self.queue.shared().withdraw(token)
    }

    /// Acks by handle. The list says which handles still held their item; only those have tokens, in their order.
    pub fn ack(&self, handles: &[Handle]) -> (Vec<bool>, Submitted) {
        let completion = |token| Completion::Port(Arc::clone(&self.sink), token);
        match self.queue.shared().ack_handles(handles, false, completion) {
            Ok((accepted, taken)) => {
                let count = accepted.iter().filter(|accepted| **accepted).count();
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                (accepted.into_vec(), Submitted { token: taken.token, count, settled: taken.settled })
            }
            Err(error) => {
                let count = u32::try_from(handles.len()).unwrap_or(u32::MAX);
                let settled = Some(Err(error.into()));
                (vec![true; handles.len()], Submitted { token: 0, count, settled })
            }
        }
    }

    /// Acks by id; ids that are not stored are fine. One token; its outcome is the number removed.
    pub fn ack_ids(&self, ids: &[u64]) -> Submitted {
        let completion = |token| Completion::Port(Arc::clone(&self.sink), token);
        match self.queue.shared().ack_ids(ids, completion) {
            Ok(taken) => Submitted { token: taken.token, count: 1, settled: taken.settled },
            Err(error) => Submitted { token: 0, count: 1, settled: Some(Err(error.into())) },
        }
    }

    /// Puts an item back in its place. False when it was settled, or an ack of it is under way.
    pub fn nack(&self, handle: Handle) -> bool {
        self.queue.shared().nack(handle, true)
    }

    /// Puts a delivered item back that nobody wanted any more: the delivery is not counted, and the demand it used up
    /// is there again (to be withdrawn with [`Port::demand`] if it was withdrawn before).
    pub fn give_back(&self, handle: Handle) -> bool {
        let held = self.queue.shared().nack(handle, false);
        self.queue.shared().demand(&self.sink, 1);
        held
    }

    /// Puts whichever delivery of `id` there is back in its place.
    pub fn nack_id(&self, id: u64) -> bool {
        self.queue.shared().nack_id(id)
    }

    /// Asks for `more` items.
    pub fn demand(&self, more: u32) {
        self.queue.shared().demand(&self.sink, i64::from(more));
    }

    /// Withdraws a demand. Items that were delivered before the withdrawal took effect come all the same; each must
    /// be given back with [`Port::give_back`].
    pub fn undemand(&self, less: u32) {
        self.queue.shared().demand(&self.sink, -i64::from(less));
    }

    /// Takes up to `max` ready items now. Never waits, but reads on this thread.
    ///
    /// # Errors
    /// The failure of the read.
    pub fn try_take(&self, max: usize) -> Result<Vec<Reserved>, Failure> {
        self.queue.shared().take(max).map(Items::into_vec)
    }

    /// Asks for up to `max` unacked entries (about 1 MiB) from id `from` on, in id order. Returns the token of the
    /// answer.
    pub fn scan(&self, from: u64, max: usize) -> u64 {
        self.queue.shared().scan(&self.sink, from, max)
    }

    /// Ends the queue: waiting pushes are refused, what has an id commits, reservations go back, the store closes.
    /// Then the sink's `finished` is called, once for each port that asked.
    pub fn finish(&self) {
        self.queue.shared().finish(Some(&self.sink));
    }
}
