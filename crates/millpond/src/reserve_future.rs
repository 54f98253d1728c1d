//! Waiting for an entry as a future: a place in a list, no thread. It depends on no runtime.
//!
//! WHERE ITEMS ARE READ: on the thread that polls, inside the poll that resolves, with no lock held. What wakes a future
//! only wakes it. So an item is marked as delivered only in the moment in which somebody is there to take it, and a
//! future that is dropped, at whatever point, has nothing that could be lost. The price is a read on the executor's
//! thread; on the log that is one `pread` of bytes that are mostly in the page cache.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::completion::Settlements;
use crate::delivery::Items;
use crate::error::ReserveError;
use crate::queue::Queue;
use crate::reserved::Reserved;
use crate::state::{Shared, State};
use crate::sync::Arc;

/// A wait for an entry; resolves to `None` when the queue is closed and nothing more can come.
///
/// Dropping it loses no item: one that arrived for it goes to the next who waits, with its delivery not counted.
#[must_use = "a future that is not polled takes nothing"]
pub struct ReserveFuture(Wait);

/// A wait for at least one entry; resolves to up to as many as were asked for, and to none when the queue is closed and
/// nothing more can come. Dropping it loses no item.
#[must_use = "a future that is not polled takes nothing"]
pub struct ReserveManyFuture {
    wait: Wait,
    max: usize,
}

/// A place in the list of those who wait for an entry.
struct Wait {
    shared: Arc<Shared>,
    /// Set from the first time it waited to its end.
    place: Option<u64>,
}

impl Wait {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, place: None }
    }

    fn poll(&mut self, max: usize, cx: &Context<'_>) -> Poll<Result<Vec<Reserved>, ReserveError>> {
        loop {
            match self.shared.take(max).map(Items::into_vec) {
                Ok(items) if items.is_empty() => {}
                Ok(items) => {
                    self.leave(false);
                    return Poll::Ready(Ok(items));
                }
                Err(failure) => {
                    self.leave(true);
                    let ended = self.shared.state.lock().finishing;
                    return Poll::Ready(if ended { Ok(Vec::new()) } else { Err(failure.into()) });
                }
            }
            // Cloned before and dropped after the lock is held: both are code of the runtime's.
            let waker = cx.waker().clone();
            let mut state = self.shared.state.lock();
            if state.may_be_ready() {
                continue;
            }
            if state.finishing || state.has_run_dry() {
                drop(state);
                self.leave(false);
                return Poll::Ready(Ok(Vec::new()));
            }
            let place = *self.place.get_or_insert(state.next_token);
            state.next_token = state.next_token.max(place + 1);
            let before = state.ready_wakers.insert(place, waker);
            drop(state);
            drop(before);
            return Poll::Pending;
        }
    }

    /// Gives the place up. `unused`: if it was woken for an entry it did not take, the next one is woken in its stead.
    fn leave(&mut self, unused: bool) {
        let Some(place) = self.place.take() else { return };
        let mut settlements = Settlements::default();
        let mut state = self.shared.state.lock();
        let waker = state.ready_wakers.remove(&place);
        if waker.is_none() && unused {
            self.shared.wake_ready(&mut state, &mut settlements);
        }
        drop(state);
        drop(waker);
        settlements.tell();
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.leave(true);
    }
}

impl Future for ReserveFuture {
    type Output = Result<Option<Reserved>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll(1, cx).map_ok(|mut items| items.pop())
    }
}

impl Future for ReserveManyFuture {
    type Output = Result<Vec<Reserved>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.max == 0 {
            return Poll::Ready(Ok(Vec::new()));
        }
        this.wait.poll(this.max, cx)
    }
}

impl<C> Queue<[u8], C> {
    /// The lowest ready entry, as a future that waits for one. `None` when the queue is closed and nothing more can come.
    ///
    /// The entry is read on the thread that polls. Nothing is taken before the poll that resolves, so a future that is
    /// dropped, in a `select` or by a timeout, swallows nothing. The future does not keep the queue open.
    ///
    /// # Errors
    /// [`ReserveError`]; the entry stays ready.
    pub fn reserve_async(&self) -> ReserveFuture {
        ReserveFuture(Wait::new(Arc::clone(self.shared())))
    }

    /// Up to `max` ready entries, lowest first, as a future that waits for at least one. Empty when the queue is closed
    /// and nothing more can come, or `max` is 0. See [`Queue::reserve_async`].
    ///
    /// # Errors
    /// [`ReserveError`]; nothing was handed out.
    pub fn reserve_many_async(&self, max: usize) -> ReserveManyFuture {
        ReserveManyFuture { wait: Wait::new(Arc::clone(self.shared())), max }
    }
}

impl State {
    /// Wakes as many futures as there may be ready entries, first come first woken; all of them when the queue is
    /// closed, since each has to learn of its end.
    pub(crate) fn wake_futures(&mut self, settlements: &mut Settlements) {
        if self.ready_wakers.is_empty() {
            return;
        }
        let fresh = self.visible().saturating_sub(self.cursor);
        let mut ready = if self.closed { u64::MAX } else { fresh + self.returned.len() as u64 };
        while ready > 0
            && let Some((_, waker)) = self.ready_wakers.pop_first()
        {
            settlements.wake(waker);
            ready -= 1;
        }
    }
}
