//! Typed queues and futures: the same waits, with the codec at their end.

use std::future::Future;

use super::queue::encoded;
use super::{Codec, Undecodable};
use crate::durability::Durability;
use crate::error::ReserveError;
use crate::futures::PushFuture;
use crate::queue::Queue;
use crate::reserved::Reserved;
use crate::sync::Arc;

impl<T, C: Codec<T>> Queue<T, C> {
    /// [`Queue::push_with`] as a future, without a limit of time. The value is encoded now, and the push is in line when
    /// this returns.
    ///
    /// # Durability
    /// As `durability` says, else as the queue's policy.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub fn push_with_async(&self, value: &T, durability: Option<Durability>) -> PushFuture {
        match encoded::<T, C>(value) {
            Ok(payload) => self.push_later(&payload, durability),
            Err(error) => PushFuture::ready(Arc::clone(self.shared()), Err(error)),
        }
    }

    /// [`Queue::reserve`] as a future that waits for an entry. `None` when the queue is closed and nothing more can come.
    ///
    /// The entry is read and decoded on the thread that polls. Nothing is taken before the poll that resolves, so a
    /// future that is dropped swallows nothing. The future does not keep the queue open.
    ///
    /// # Errors
    /// As [`Queue::reserve`].
    pub fn reserve_async(
        &self,
    ) -> impl Future<Output = Result<Option<Reserved<T>>, ReserveError>> + Send + use<T, C> {
        let wait = self.bytes().reserve_async();
        async move { Ok(wait.await?.map(Reserved::decode::<T, C>).transpose()?) }
    }

    /// [`Queue::reserve_many`] as a future that waits for at least one entry. Empty when the queue is closed and nothing
    /// more can come, or `max` is 0.
    ///
    /// # Errors
    /// As [`Queue::reserve_many`].
    pub fn reserve_many_async(
        &self,
        max: usize,
    ) -> impl Future<Output = Result<Vec<Result<Reserved<T>, Undecodable>>, ReserveError>> + Send + use<T, C>
    {
        let wait = self.bytes().reserve_many_async(max);
        async move { Ok(wait.await?.into_iter().map(Reserved::decode::<T, C>).collect()) }
    }
}
