//! The entries of a queue as a stream.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::error::ReserveError;
use crate::queue::Queue;
use crate::reserve_future::ReserveFuture;
use crate::reserved::Reserved;

/// Ready entries one after another, as they come; see [`Queue::stream`].
#[must_use = "a stream that is not polled takes nothing"]
pub struct ItemStream {
    queue: Queue,
    next: ReserveFuture,
}

impl Queue {
    /// Ready entries in id order, as they come; ends when the queue is closed and nothing more can come. Needs feature
    /// `tokio`, but no runtime.
    ///
    /// An entry is taken by the poll that yields it and none ahead, so dropping the stream between two entries swallows
    /// nothing. An error is one failed read and does not end the stream. The stream keeps the queue open.
    ///
    /// # Errors
    /// Items are [`ReserveError`] when a read fails; the entry stays ready.
    pub fn stream(&self) -> ItemStream {
        ItemStream { queue: self.clone(), next: self.reserve_async() }
    }
}

impl Stream for ItemStream {
    type Item = Result<Reserved, ReserveError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.next).poll(cx).map(Result::transpose);
        if polled.is_ready() {
            this.next = this.queue.reserve_async();
        }
        polled
    }
}
