use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use millpond::store::MemStore;
use millpond::{Builder, Durability, ErrorCode, Queue, ReserveError};

use crate::order::{FirstRelease, Order, order, pieces};

/// A queue in memory whose second entry is no order.
fn open() -> Queue<Order, FirstRelease> {
    let queue: Queue<Order, FirstRelease> =
        Builder::new(MemStore::new()).durability(Durability::None).open_typed_with().unwrap();
    queue.push(&order(1)).unwrap();
    queue.bytes().push(b"no order").unwrap();
    queue
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn ready<F: Future + Unpin>(mut future: F) -> F::Output {
    loop {
        match poll(&mut future) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[test]
fn values_are_pushed_and_reserved_by_futures() {
    let queue = open();
    assert_eq!(ready(queue.push_async(&order(3))).unwrap(), 3);
    assert_eq!(ready(queue.push_with_async(&order(4), Some(Durability::Group))).unwrap(), 4);
    assert_eq!(ready(queue.push_async(&order(2_000_000))).unwrap_err().code(), ErrorCode::Encode);
    assert_eq!(pieces(&queue), [1, 0, 3, 4]);

    let first = ready(queue.reserve_async()).unwrap().unwrap();
    assert_eq!((first.seq(), first.pieces), (1, 1));
    let Err(ReserveError::Decode(second)) = ready(queue.reserve_async()) else { panic!("no order") };
    assert_eq!(second.id(), 2);
    assert!(second.nack().unwrap());
    let ids: Vec<Result<u64, u64>> = ready(queue.reserve_many_async(9))
        .unwrap()
        .into_iter()
        .map(|item| item.map(|item| item.detach().id).map_err(|entry| entry.id()))
        .collect();
    assert_eq!(ids, [Err(2), Ok(3), Ok(4)]);

    let mut waiting = queue.reserve_async();
    assert!(poll(&mut waiting).is_pending());
    queue.push(&order(5)).unwrap();
    drop(waiting);
    assert_eq!(ready(queue.reserve_async()).unwrap().unwrap().pieces, 5, "a dropped wait swallows nothing");
    assert_eq!(ready(queue.ack_many_async(&[1, 2, 3, 4])).unwrap(), 4);
    drop(first);
    queue.ack(5).unwrap();
    queue.close();
    assert!(ready(queue.reserve_async()).unwrap().is_none());
}

#[cfg(feature = "tokio")]
mod with_tokio {
    use std::time::Duration;

    use futures_core::Stream;

    use super::*;

    #[tokio::test]
    async fn a_stream_has_the_error_in_its_place_and_goes_on() {
        let queue = open();
        queue.push(&order(3)).unwrap();
        queue.close();
        let mut stream = queue.stream();
        let mut seen = Vec::new();
        while let Some(item) = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await {
            match item {
                Ok(item) => {
                    seen.push(item.pieces);
                    item.ack().unwrap();
                }
                Err(ReserveError::Decode(entry)) => {
                    seen.push(0);
                    entry.ack().unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(seen, [1, 0, 3]);
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn a_wait_ends_in_time() {
        let queue = open();
        let wait = Duration::from_millis(1);
        assert_eq!(queue.push_timeout_async(&order(3), None, wait).await.unwrap(), 3);
        let error = queue.push_timeout_async(&order(2_000_000), None, wait).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Encode);
        assert!(queue.ack(3).unwrap());
        assert_eq!(queue.reserve_timeout_async(wait).await.unwrap().unwrap().detach().id, 1);
        assert_eq!(queue.reserve_timeout_async(wait).await.unwrap_err().code(), ErrorCode::Decode);
        assert!(queue.reserve_timeout_async(wait).await.unwrap().is_none());
    }
}
