//! Queues of values with tokio: waits that end in time, and a stream.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

use super::Codec;
use crate::durability::Durability;
use crate::error::ReserveError;
use crate::queue::Queue;
use crate::reserved::Reserved;
use crate::stream::ItemStream;
use crate::tokio::PushTimeoutFuture;

/// Values one after another, as they come; see [`Queue::stream`].
#[must_use = "a stream that is not polled takes nothing"]
pub struct ValueStream<T, C> {
    items: ItemStream,
    of: PhantomData<fn() -> (T, C)>,
}

impl<T, C: Codec<T>> Queue<T, C> {
    /// [`Queue::push_async`] with a limit to the wait for room, counted from the first poll. Needs feature `tokio`.
    ///
    /// The limit is about waiting only: once the push has an id it settles by its commit, and this waits for that.
    ///
    /// # Durability
    /// As `durability` says, else as the queue's policy.
    ///
    /// # Errors
    /// As [`Queue::push`]; [`PushError::Timeout`](crate::PushError::Timeout) when there was no room in time: nothing
    /// was stored.
    ///
    /// # Panics
    /// When polled outside a tokio runtime with time enabled.
    pub fn push_timeout_async(
        &self,
        value: &T,
        durability: Option<Durability>,
        timeout: Duration,
    ) -> PushTimeoutFuture {
        PushTimeoutFuture::new(self.push_with_async(value, durability), timeout)
    }

    /// [`Queue::reserve_async`] with a limit, counted from the first poll: `None` when the time is over, or when the
    /// queue is closed and nothing more can come. Needs feature `tokio`.
    ///
    /// # Errors
    /// As [`Queue::reserve`].
    ///
    /// # Panics
    /// When polled outside a tokio runtime with time enabled.
    pub fn reserve_timeout_async(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Reserved<T>>, ReserveError>> + Send + use<T, C> {
        let reserve = self.bytes().reserve_timeout_async(timeout);
        async move { Ok(reserve.await?.map(Reserved::decode::<T, C>).transpose()?) }
    }

    /// Ready entries in id order, as they come; ends when the queue is closed and nothing more can come. One that the
    /// codec rejects is an error in its place and does not end the stream. Needs feature `tokio`, but no runtime.
    ///
    /// # Errors
    /// Items are errors as of [`Queue::reserve`].
    pub fn stream(&self) -> ValueStream<T, C> {
        ValueStream { items: self.bytes().stream(), of: PhantomData }
    }
}

impl<T, C: Codec<T>> Stream for ValueStream<T, C> {
    type Item = Result<Reserved<T>, ReserveError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = Pin::new(&mut self.get_mut().items).poll_next(cx);
        polled.map(|item| item.map(|item| Ok(item?.decode::<T, C>()?)))
    }
}
