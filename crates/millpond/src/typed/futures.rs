//! Queues of values as futures: those of bytes, with what they give decoded.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Codec, Undecodable};
use crate::durability::Durability;
use crate::error::ReserveError;
use crate::futures::PushFuture;
use crate::queue::Queue;
use crate::reserve_future::{ReserveFuture, ReserveManyFuture};
use crate::reserved::Reserved;
use crate::sync::Arc;

/// A [`ReserveFuture`] that gives a value.
#[must_use = "a future that is not polled takes nothing"]
pub struct ReserveValueFuture<T, C> {
    reserve: ReserveFuture,
    of: PhantomData<fn() -> (T, C)>,
}

/// A [`ReserveManyFuture`] that gives values.
#[must_use = "a future that is not polled takes nothing"]
pub struct ReserveValuesFuture<T, C> {
    reserve: ReserveManyFuture,
    of: PhantomData<fn() -> (T, C)>,
}

impl<T, C: Codec<T>> Future for ReserveValueFuture<T, C> {
    type Output = Result<Option<Reserved<T>>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.get_mut().reserve).poll(cx);
        polled.map(|item| Ok(item?.map(Reserved::decode::<T, C>).transpose()?))
    }
}

impl<T, C: Codec<T>> Future for ReserveValuesFuture<T, C> {
    type Output = Result<Vec<Result<Reserved<T>, Undecodable>>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.get_mut().reserve).poll(cx);
        polled.map_ok(|items| items.into_iter().map(Reserved::decode::<T, C>).collect())
    }
}

impl<T, C: Codec<T>> Queue<T, C> {
    /// [`Queue::push`] as a future. The value is encoded now, and the push is in line when this returns.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub fn push_async(&self, value: &T) -> PushFuture {
        self.push_with_async(value, None)
    }

    /// [`Queue::push_with`] as a future, without a limit of time; see [`Queue::push_async`].
    ///
    /// # Durability
    /// As `durability` says, else as the queue's policy.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub fn push_with_async(&self, value: &T, durability: Option<Durability>) -> PushFuture {
        match super::queue::encoded::<T, C>(value) {
            Ok(payload) => self.push_later(&payload, durability),
            Err(error) => PushFuture::ready(Arc::clone(self.shared()), Err(error)),
        }
    }

    /// The lowest ready entry, as a future that waits for one. `None` when the queue is closed and nothing more can
    /// come. It is read and decoded by the poll that resolves: a future that is dropped swallows nothing.
    ///
    /// # Errors
    /// As [`Queue::reserve`].
    pub fn reserve_async(&self) -> ReserveValueFuture<T, C> {
        ReserveValueFuture { reserve: self.bytes().reserve_async(), of: PhantomData }
    }

    /// Up to `max` ready entries, lowest first, as a future that waits for at least one. Those that the codec rejects
    /// stand in their places. Empty when the queue is closed and nothing more can come, or `max` is 0.
    ///
    /// # Errors
    /// [`ReserveError::Store`]; nothing was handed out.
    pub fn reserve_many_async(&self, max: usize) -> ReserveValuesFuture<T, C> {
        ReserveValuesFuture { reserve: self.bytes().reserve_many_async(max), of: PhantomData }
    }
}
