//! What the queue has to say, on its way to the event loop: one call per commit, sweep or answer.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use millpond::{Entry, Failure, Reserved, Settled, Sink};
use napi::bindgen_prelude::{Float64ArraySlice, Function, JsValuesTupleIntoVec};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode, UnknownReturnValue};
use napi::{Env, Status, sys};

use crate::failure::NativeFailure;
use crate::marshal::{PackedDeliveries, js, pack_entries};
use crate::number;
use crate::queue::NativeQueue;

/// A function of JavaScript that listens.
pub(crate) type ListenerFunction<'env> = Function<'env, Event, UnknownReturnValue>;

/// Weak: it does not hold the event loop; the facade does while something is unsettled.
type Call = ThreadsafeFunction<(), UnknownReturnValue, Event, Status, false, true>;

/// Events on their way, oldest first.
#[derive(Default)]
struct Mailbox(Mutex<VecDeque<Event>>);

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The listener, for any thread.
///
/// A call carries no event, it only says that one lies in the mailbox: what a call carries is never freed when its
/// environment ends first, and a queue or an item in it would be held for ever. The mailbox goes with the environment.
pub(crate) struct Listener {
    call: Call,
    /// The callback holds it, so it goes when Node drops the callback, with all that was not heard.
    events: Weak<Mailbox>,
}

impl Listener {
    #[expect(clippy::needless_pass_by_value, reason = "the arguments of a call are given by value")]
    pub(crate) fn new(function: ListenerFunction<'_>) -> napi::Result<Self> {
        let mailbox = Arc::new(Mailbox::default());
        let events = Arc::downgrade(&mailbox);
        let call = function
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .callee_handled::<false>()
            .build_callback(move |_| {
                mailbox.lock().pop_front().ok_or_else(|| napi::Error::from_reason("a call without an event"))
            })?;
        Ok(Self { call, events })
    }

    /// Has the listener called with `event`, or drops it when the environment is gone, which returns what it holds.
    pub(crate) fn emit(&self, event: Event) {
        let Some(events) = self.events.upgrade() else { return };
        events.lock().push_back(event);
        self.call.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

/// The kinds of events; `EVENT` in src-ts/internal/native.ts.
mod kind {
    pub(super) const OPENED: u32 = 0;
    pub(super) const SETTLED_ONE: u32 = 1;
    pub(super) const SETTLED_MANY: u32 = 2;
    pub(super) const DELIVERED: u32 = 3;
    pub(super) const DELIVER_FAILED: u32 = 4;
    pub(super) const SCANNED: u32 = 5;
    pub(super) const SCAN_FAILED: u32 = 6;
    pub(super) const FINISHED: u32 = 7;
}

/// One call of the listener.
pub(crate) enum Event {
    Opened(Result<NativeQueue, Box<NativeFailure>>),
    Settled(Vec<Settled>),
    Delivered(Vec<Reserved>),
    DeliverFailed(NativeFailure),
    Scanned(u64, Vec<Entry>),
    ScanFailed(u64, NativeFailure),
    Finished(Option<NativeFailure>),
}

impl JsValuesTupleIntoVec for Event {
    fn into_vec(self, env: sys::napi_env) -> napi::Result<Vec<sys::napi_value>> {
        // Runs inside of a C function of Node: a panic must not leave.
        panic::catch_unwind(AssertUnwindSafe(|| self.arguments(env)))
            .unwrap_or_else(|_| Err(napi::Error::from_reason("a completion panicked")))
    }
}

impl Event {
    fn arguments(self, env: sys::napi_env) -> napi::Result<Vec<sys::napi_value>> {
        Ok(match self {
            Event::Opened(Ok(queue)) => vec![js(env, kind::OPENED)?, js(env, queue)?],
            Event::Opened(Err(failure)) => vec![js(env, kind::OPENED)?, js(env, *failure)?],
            Event::Settled(settled) => settled_arguments(env, &settled)?,
            Event::Delivered(items) => match PackedDeliveries(items).pack(env) {
                Ok(packed) => vec![js(env, kind::DELIVERED)?, packed],
                // The items went back when they were dropped.
                Err(error) => {
                    vec![
                        js(env, kind::DELIVER_FAILED)?,
                        js(env, NativeFailure::internal(error.reason.clone()))?,
                    ]
                }
            },
            Event::DeliverFailed(failure) => vec![js(env, kind::DELIVER_FAILED)?, js(env, failure)?],
            Event::Scanned(token, entries) => match pack_entries(env, &entries) {
                Ok(packed) => vec![js(env, kind::SCANNED)?, js(env, number::to_js(token))?, packed],
                Err(error) => scan_failed(env, token, NativeFailure::internal(error.reason.clone()))?,
            },
            Event::ScanFailed(token, failure) => scan_failed(env, token, failure)?,
            Event::Finished(failure) => vec![js(env, kind::FINISHED)?, js(env, failure)?],
        })
    }
}

fn scan_failed(env: sys::napi_env, token: u64, failure: NativeFailure) -> napi::Result<Vec<sys::napi_value>> {
    Ok(vec![js(env, kind::SCAN_FAILED)?, js(env, number::to_js(token))?, js(env, failure)?])
}

fn settled_arguments(env: sys::napi_env, settled: &[Settled]) -> napi::Result<Vec<sys::napi_value>> {
    if let [Settled { token, count, outcome: Ok(value) }] = settled {
        return Ok(vec![
            js(env, kind::SETTLED_ONE)?,
            js(env, number::to_js(*token))?,
            js(env, *count)?,
            js(env, number::to_js(*value))?,
        ]);
    }
    let mut failures = Vec::new();
    let mut triples = Vec::with_capacity(settled.len() * 3);
    for run in settled {
        let value = match &run.outcome {
            Ok(value) => number::to_js(*value),
            Err(failure) => {
                failures.push(NativeFailure::from(failure));
                -number::len_to_js(failures.len())
            }
        };
        triples.extend([number::to_js(run.token), f64::from(run.count), value]);
    }
    let triples = Float64ArraySlice::copy_from(&Env::from_raw(env), &triples)?;
    Ok(vec![js(env, kind::SETTLED_MANY)?, js(env, triples)?, js(env, failures)?])
}

/// The queue's sink: hands everything to the listener. When the environment is closing the event is dropped, and with
/// it the items it holds, which returns them.
pub(crate) struct EventSink {
    pub(crate) listener: Arc<Listener>,
}

impl EventSink {
    fn emit(&self, event: Event) {
        self.listener.emit(event);
    }
}

impl Sink for EventSink {
    fn settled(&self, settled: Vec<Settled>) {
        self.emit(Event::Settled(settled));
    }

    fn delivered(&self, items: Result<Vec<Reserved>, Failure>) {
        self.emit(match items {
            Ok(items) => Event::Delivered(items),
            Err(failure) => Event::DeliverFailed(failure.into()),
        });
    }

    fn scanned(&self, token: u64, entries: Result<Vec<Entry>, Failure>) {
        self.emit(match entries {
            Ok(entries) => Event::Scanned(token, entries),
            Err(failure) => Event::ScanFailed(token, failure.into()),
        });
    }

    fn finished(&self, result: Result<(), Failure>) {
        self.emit(Event::Finished(result.err().map(NativeFailure::from)));
    }
}
