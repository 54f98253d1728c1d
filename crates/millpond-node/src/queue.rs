//! The queue as the facade sees it.
//!
//! Where a number answers an operation, 0 or more is the token of what is under way; a negative one says that it is
//! settled: minus the (first) id for pushes, minus one minus the value otherwise.

use std::sync::Arc;

use millpond::{Failure, Handle, Port, Submitted};
use napi::bindgen_prelude::{Either, Null};
use napi_derive::napi;

use crate::event::{EventSink, Listener};
use crate::failure::NativeFailure;
use crate::marshal::PackedDeliveries;
use crate::number::{from_js, to_js};
use crate::options::durability;
use crate::report::{NativeInFlight, NativeRecovery, NativeStats};

/// One event loop's access to a queue.
#[napi]
pub struct NativeQueue {
    port: Port,
}

/// The answer to `ack` where not everything was accepted and is under way.
#[napi(object)]
pub struct NativeAckAnswer {
    /// The token of the first that was accepted.
    pub token: f64,
    /// Places in the input that were refused.
    pub refused: Vec<u32>,
    /// All accepted ones are settled.
    pub settled: bool,
    /// Why they failed, if they did.
    pub failure: Option<NativeFailure>,
}

impl NativeQueue {
    pub(crate) fn new(queue: &millpond::Queue, listener: &Arc<Listener>) -> Self {
        let sink = EventSink { listener: Arc::clone(listener) };
        Self { port: queue.port(Box::new(sink)) }
    }
}

fn push_answer(submitted: Submitted) -> Either<f64, NativeFailure> {
    answer(submitted, |first_id| -to_js(first_id))
}

fn answer(submitted: Submitted, settled: impl FnOnce(u64) -> f64) -> Either<f64, NativeFailure> {
    match submitted.settled {
        None => Either::A(to_js(submitted.token)),
        Some(Ok(value)) => Either::A(settled(value)),
        Some(Err(failure)) => Either::B(failure.into()),
    }
}

/// The used part of what the facade stages; `None` is a broken call.
fn staged<'a>(bytes: &'a [u8], used: u32, lengths: &'a [u32], count: u32) -> Option<(&'a [u8], &'a [u32])> {
    let bytes = bytes.get(..used as usize)?;
    let lengths = lengths.get(..count as usize)?;
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    (total == u64::from(used)).then_some((bytes, lengths))
}

fn broken() -> Either<f64, NativeFailure> {
    Either::B(NativeFailure::internal("lengths and bytes do not agree".to_owned()))
}

#[napi]
impl NativeQueue {
    /// Independent pushes.
    #[napi(catch_unwind)]
    pub fn push_each(
        &self,
        bytes: &[u8],
        used: u32,
        lengths: &[u32],
        count: u32,
        policy: u32,
    ) -> Either<f64, NativeFailure> {
        match staged(bytes, used, lengths, count) {
            Some((bytes, lengths)) => push_answer(self.port.push_each(bytes, lengths, durability(policy))),
            None => broken(),
        }
    }

    /// Pushes in one commit.
    #[napi(catch_unwind)]
    pub fn push_whole(
        &self,
        bytes: &[u8],
        used: u32,
        lengths: &[u32],
        count: u32,
        policy: u32,
    ) -> Either<f64, NativeFailure> {
        match staged(bytes, used, lengths, count) {
            Some((bytes, lengths)) => push_answer(self.port.push_whole(bytes, lengths, durability(policy))),
            None => broken(),
        }
    }

    /// `null` when the queue is full.
    #[napi(catch_unwind)]
    pub fn try_push(&self, bytes: &[u8], policy: u32) -> Either<Either<f64, NativeFailure>, Null> {
        match self.port.try_push(bytes, durability(policy)) {
            Some(submitted) => Either::A(push_answer(submitted)),
            None => Either::B(Null),
        }
    }

    /// Blocks until the entry is durable; the id.
    #[napi(catch_unwind)]
    pub fn push_blocking(&self, bytes: &[u8]) -> Either<f64, NativeFailure> {
        match self.port.push_blocking(bytes) {
            Ok(id) => Either::A(to_js(id)),
            Err(error) => Either::B(Failure::from(error).into()),
        }
    }

    /// Blocks until everything accepted is durable.
    #[napi(catch_unwind)]
    pub fn flush_blocking(&self) -> Option<NativeFailure> {
        self.port.flush_blocking().err().map(NativeFailure::from)
    }

    /// Takes a waiting push back.
    #[napi(catch_unwind)]
    pub fn withdraw(&self, token: f64) -> bool {
        self.port.withdraw(from_js(token))
    }

    /// Acks by handle: pairs of id and generation.
    #[napi(catch_unwind)]
    pub fn ack(&self, pairs: &[f64], count: u32) -> Either<f64, NativeAckAnswer> {
        let handles: Vec<Handle> = pairs
            .chunks_exact(2)
            .take(count as usize)
            .filter_map(|pair| match pair {
                [id, generation] => Some(Handle { id: from_js(*id), generation: from_js(*generation) }),
                _ => None,
            })
            .collect();
        let (accepted, submitted) = self.port.ack(&handles);
        if submitted.settled.is_none() && accepted.iter().all(|accepted| *accepted) {
            return Either::A(to_js(submitted.token));
        }
        let refused =
            (0..).zip(&accepted).filter(|(_, accepted)| !**accepted).map(|(place, _)| place).collect();
        Either::B(NativeAckAnswer {
            token: to_js(submitted.token),
            refused,
            settled: submitted.settled.is_some(),
            failure: submitted.settled.and_then(Result::err).map(NativeFailure::from),
        })
    }

    /// Acks by id.
    #[napi(catch_unwind)]
    pub fn ack_ids(&self, ids: &[f64]) -> Either<f64, NativeFailure> {
        let ids: Vec<u64> = ids.iter().copied().map(from_js).collect();
        answer(self.port.ack_ids(&ids), |removed| -1.0 - to_js(removed))
    }

    /// Returns an item.
    #[napi(catch_unwind)]
    pub fn nack(&self, id: f64, generation: f64) -> bool {
        self.port.nack(Handle { id: from_js(id), generation: from_js(generation) })
    }

    /// Returns an item that nobody has seen.
    #[napi(catch_unwind)]
    pub fn give_back(&self, id: f64, generation: f64) -> bool {
        self.port.give_back(Handle { id: from_js(id), generation: from_js(generation) })
    }

    /// Returns an item by its id.
    #[napi(catch_unwind)]
    pub fn nack_id(&self, id: f64) -> bool {
        self.port.nack_id(from_js(id))
    }

    /// Asks for deliveries.
    #[napi(catch_unwind)]
    pub fn demand(&self, more: u32) {
        self.port.demand(more);
    }

    /// Asks for fewer.
    #[napi(catch_unwind)]
    pub fn undemand(&self, less: u32) {
        self.port.undemand(less);
    }

    /// Takes what is ready; reads on this thread.
    #[napi(catch_unwind)]
    pub fn try_take(&self, max: u32) -> Either<PackedDeliveries, NativeFailure> {
        match self.port.try_take(max as usize) {
            Ok(items) => Either::A(PackedDeliveries(items)),
            Err(failure) => Either::B(failure.into()),
        }
    }

    /// Asks for entries; the token of the answer.
    #[napi(catch_unwind)]
    pub fn scan(&self, from: f64, max: u32) -> f64 {
        to_js(self.port.scan(from_js(from), max as usize))
    }

    /// Stops intake; what is there is still delivered.
    #[napi(catch_unwind)]
    pub fn close_intake(&self) {
        self.port.queue().close();
    }

    /// Ends the queue; an event says when.
    #[napi(catch_unwind)]
    pub fn finish(&self) {
        self.port.finish();
    }

    /// Unacked entries.
    #[napi(catch_unwind)]
    pub fn length(&self) -> f64 {
        to_js(self.port.queue().len())
    }

    /// Entries ready to be delivered.
    #[napi(catch_unwind)]
    pub fn ready_length(&self) -> f64 {
        to_js(self.port.queue().ready_len())
    }

    /// Entries in flight.
    #[napi(catch_unwind)]
    pub fn in_flight(&self) -> Vec<NativeInFlight> {
        self.port.queue().in_flight().into_iter().map(NativeInFlight::from).collect()
    }

    /// Counters.
    #[napi(catch_unwind)]
    pub fn stats(&self) -> NativeStats {
        self.port.queue().stats().into()
    }

    /// What opening found.
    #[napi(catch_unwind)]
    pub fn recovery(&self) -> NativeRecovery {
        self.port.queue().recovery().into()
    }
}
