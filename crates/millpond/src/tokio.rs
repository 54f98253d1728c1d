//! What needs a runtime: waits that end in time, measured by tokio's clock. Nothing here blocks or spawns; one list entry
//! and one timer is what a wait costs.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::tokio::time::{self, Sleep};

use crate::durability::Durability;
use crate::error::{PushError, ReserveError};
use crate::futures::PushFuture;
use crate::queue::Queue;
use crate::reserved::Reserved;

impl<C> Queue<[u8], C> {
    /// [`Queue::push_async`] with a limit to the wait for room, counted from the first poll. The payload is copied and
    /// the push is in line when this returns. Needs feature `tokio`.
    ///
    /// The limit is about waiting only: once the push has an id it settles by its commit, and this waits for that.
    ///
    /// # Durability
    /// As `durability` says, else as the queue's policy.
    ///
    /// # Errors
    /// As [`Queue::push`]; [`PushError::Timeout`] when there was no room in time: nothing was stored.
    ///
    /// # Panics
    /// When polled outside a tokio runtime with time enabled.
    pub fn push_timeout_async(
        &self,
        payload: impl AsRef<[u8]>,
        durability: Option<Durability>,
        timeout: Duration,
    ) -> PushTimeoutFuture {
        PushTimeoutFuture::new(self.push_with_async(payload, durability), timeout)
    }

    /// [`Queue::reserve_async`] with a limit, counted from the first poll: `None` when the time is over, or when the
    /// queue is closed and nothing more can come. Needs feature `tokio`.
    ///
    /// # Errors
    /// [`ReserveError`]; the entry stays ready.
    ///
    /// # Panics
    /// When polled outside a tokio runtime with time enabled.
    pub fn reserve_timeout_async(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Reserved>, ReserveError>> + Send + use<C> {
        let reserve = self.reserve_async();
        // An item is taken only by the poll that resolves, so the future that is dropped here holds none.
        async move { time::timeout(timeout, reserve).await.unwrap_or(Ok(None)) }
    }
}

/// A push whose wait for room has a limit; see [`Queue::push_timeout_async`]. Dropping it does what dropping a
/// [`PushFuture`] does.
#[must_use = "a push that waits for room is taken back when its future is dropped"]
pub struct PushTimeoutFuture {
    push: PushFuture,
    limit: Limit,
}

impl PushTimeoutFuture {
    pub(crate) fn new(push: PushFuture, timeout: Duration) -> Self {
        Self { push, limit: Limit::Unset(timeout) }
    }
}

enum Limit {
    /// Not polled yet: the timer needs the runtime.
    Unset(Duration),
    Running(Pin<Box<Sleep>>),
    /// Over, and the push had its id: it settles by its commit.
    Over,
}

impl Future for PushTimeoutFuture {
    type Output = Result<u64, PushError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(outcome) = Pin::new(&mut this.push).poll(cx) {
            return Poll::Ready(outcome);
        }
        if let Limit::Unset(timeout) = this.limit {
            this.limit = Limit::Running(Box::pin(time::sleep(timeout)));
        }
        if let Limit::Running(sleep) = &mut this.limit {
            ready!(sleep.as_mut().poll(cx));
            // The timer goes before the push is asked, which may run the wakers of others.
            drop(mem::replace(&mut this.limit, Limit::Over));
            if this.push.withdraw() {
                return Poll::Ready(Err(PushError::Timeout));
            }
        }
        Poll::Pending
    }
}
