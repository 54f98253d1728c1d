//! Futures on the commit pipeline: a waiting push is a list entry, not a thread. They depend on no runtime.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::completion::{Completion, Ticket};
use crate::durability::Durability;
use crate::error::{AckError, Failure, PushError};
use crate::queue::Queue;
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

/// An ack under way; resolves to whether this call removed the entry. Dropping it does not undo the ack.
#[must_use = "the outcome of an ack tells whether the entry may be delivered again"]
pub struct AckFuture {
    stage: Stage<Result<bool, AckError>>,
}

/// Acks by id under way; resolves to how many entries this call removed. Dropping it does not undo them.
#[must_use = "the outcome of an ack tells whether the entries may be delivered again"]
pub struct AckManyFuture {
    stage: Stage<Result<u64, AckError>>,
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

impl PushFuture {
    /// Takes the push back while it waits for room, as dropping the future does, and says whether it did. False once
    /// the push has an id: await the future to learn how it ends.
    pub fn withdraw(&mut self) -> bool {
        let withdrawn = matches!(self.stage, Stage::Pending(_)) && self.shared.withdraw(self.token);
        if withdrawn {
            self.stage = Stage::Taken;
        }
        withdrawn
    }
}

impl Drop for PushFuture {
    fn drop(&mut self) {
        self.withdraw();
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

impl Future for AckManyFuture {
    type Output = Result<u64, AckError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().stage.poll(cx, |outcome| outcome.map_err(AckError::from))
    }
}

impl<C> Queue<[u8], C> {
    /// [`Queue::push_with`] as a future, without a limit of time. The payload is copied now, and the push is in line
    /// when this returns, whether the future is polled or not.
    ///
    /// # Durability
    /// As `durability` says, else as the queue's policy.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub fn push_with_async(&self, payload: impl AsRef<[u8]>, durability: Option<Durability>) -> PushFuture {
        self.push_later(payload.as_ref(), durability)
    }
}

impl<T: ?Sized, C> Queue<T, C> {
    /// [`Queue::ack_many`] as a future: removes entries by id in one commit and resolves to how many there were. The
    /// acks are on their way when this returns.
    ///
    /// # Durability
    /// As [`Reserved::ack`](crate::Reserved::ack).
    ///
    /// # Errors
    /// [`AckError`]; the entries are where they were.
    pub fn ack_many_async(&self, ids: &[u64]) -> AckManyFuture {
        let ticket = Ticket::for_future();
        let taken = self.shared().ack_ids(ids, |_| Completion::Ticket(Arc::clone(&ticket)));
        let stage = match taken {
            Err(error) => Stage::Ready(Err(error)),
            Ok(taken) => match taken.settled {
                Some(outcome) => Stage::Ready(outcome.map_err(AckError::from)),
                None => Stage::Pending(ticket),
            },
        };
        AckManyFuture { stage }
    }
}
