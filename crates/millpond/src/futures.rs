//! Futures on the commit pipeline: a waiting push is a list entry, not a thread. They depend on no runtime.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::completion::Ticket;
use crate::error::{AckError, Failure, PushError};
use crate::state::Shared;
use crate::sync::Arc;

/// A push under way; resolves to the id when the entry is as durable as the policy says.
///
/// Dropping it takes the push back while it waits for room. Once the push has an id, it settles by its commit and the
/// entry is stored whether the future lives or not.
#[must_use = "a push that waits for room is taken back when its future is dropped"]
pub struct PushFuture {
    shared: Arc<Shared>,
    token: u64,
    stage: Stage<Result<u64, PushError>>,
}

/// An ack under way; resolves to whether this call removed the entry.
#[must_use = "the outcome of an ack tells whether the entry may be delivered again"]
pub struct AckFuture {
    stage: Stage<Result<bool, AckError>>,
}

enum Stage<T> {
    Ready(T),
    Pending(Arc<Ticket>),
    Taken,
}

impl<T> Stage<T> {
    fn poll(&mut self, cx: &Context<'_>, convert: impl FnOnce(Result<u64, Failure>) -> T) -> Poll<T> {
        if let Stage::Pending(ticket) = self {
            match ticket.poll(cx.waker()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(outcome) => *self = Stage::Ready(convert(outcome)),
            }
        }
        match std::mem::replace(self, Stage::Taken) {
            Stage::Ready(outcome) => Poll::Ready(outcome),
            // A future that is polled after its end: the contract lets it do anything but break memory.
            Stage::Pending(_) | Stage::Taken => Poll::Pending,
        }
    }
}

impl PushFuture {
    pub(crate) fn ready(shared: Arc<Shared>, outcome: Result<u64, PushError>) -> Self {
        Self { shared, token: 0, stage: Stage::Ready(outcome) }
    }

    pub(crate) fn pending(shared: Arc<Shared>, token: u64, ticket: Arc<Ticket>) -> Self {
        Self { shared, token, stage: Stage::Pending(ticket) }
    }
}

impl Future for PushFuture {
    type Output = Result<u64, PushError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().stage.poll(cx, |outcome| outcome.map_err(PushError::from))
    }
}

impl Drop for PushFuture {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Pending(_)) {
            self.shared.withdraw(self.token);
        }
    }
}

impl AckFuture {
    pub(crate) fn ready(outcome: Result<bool, AckError>) -> Self {
        Self { stage: Stage::Ready(outcome) }
    }

    pub(crate) fn pending(ticket: Arc<Ticket>) -> Self {
        Self { stage: Stage::Pending(ticket) }
    }
}

impl Future for AckFuture {
    type Output = Result<bool, AckError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().stage.poll(cx, |outcome| outcome.map(|_| true).map_err(AckError::from))
    }
}
