use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use millpond::store::MemStore;
use millpond::{Builder, Durability, PushError};

/// Unparks the thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn futures_settle_on_the_same_pipeline_as_threads() {
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let queue = Builder::new(MemStore::new()).durability(durability).open().unwrap();
        let pushes: Vec<_> = (0..10u8).map(|n| queue.push_async([n])).collect();
        let from_thread = queue.push(b"thread").unwrap();
        let ids: Vec<u64> = pushes.into_iter().map(|push| block_on(push).unwrap()).collect();
        assert_eq!(ids, (1..=10).collect::<Vec<_>>());
        assert_eq!(from_thread, 11);
        let item = queue.reserve().unwrap().unwrap();
        assert!(block_on(item.ack_async()).unwrap());
        assert!(!block_on(item.ack_async()).unwrap());
    }
}

#[test]
fn a_dropped_future_takes_a_waiting_push_back() {
    let queue = Builder::new(MemStore::new()).capacity(1).durability(Durability::Group).open().unwrap();
    queue.push(b"a").unwrap();
    let waits = queue.push_async(b"b");
    let after = queue.push_async(b"c");
    assert_eq!(queue.stats().waiting_pushes, 2);
    drop(waits);
    queue.reserve().unwrap().unwrap().ack().unwrap();
    block_on(after).unwrap();
    let item = queue.reserve().unwrap().unwrap();
    assert_eq!(&*item, b"c");
    let waits = queue.push_async(b"d");
    queue.close();
    assert!(matches!(block_on(waits), Err(PushError::Closed)));
}
