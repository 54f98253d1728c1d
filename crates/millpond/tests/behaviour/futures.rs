use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use millpond::store::MemStore;
use millpond::{Builder, Durability, PushError, Queue};

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

/// Counts how often it was woken.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future with a waker of its own, polled by hand.
struct Hand<F> {
    future: F,
    woken: Arc<Count>,
}

impl<F: Future + Unpin> Hand<F> {
    fn new(future: F) -> Self {
        Self { future, woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.woken));
        pin!(&mut self.future).poll(&mut Context::from_waker(&waker))
    }

    fn woken(&self) -> u64 {
        self.woken.0.load(Ordering::SeqCst)
    }
}

fn group(capacity: u64) -> Queue {
    Builder::new(MemStore::new()).capacity(capacity).durability(Durability::Group).open().unwrap()
}

#[test]
fn one_entry_wakes_one_future_first_come_first_served() {
    let queue = group(16);
    let mut waits = [(); 3].map(|()| Hand::new(queue.reserve_async()));
    for wait in &mut waits {
        assert!(wait.poll().is_pending());
    }
    queue.push(b"a").unwrap();
    assert_eq!(waits.each_ref().map(Hand::woken), [1, 0, 0]);
    let Poll::Ready(Ok(Some(item))) = waits[0].poll() else { panic!("the first one has it") };
    assert!(waits[1].poll().is_pending());
    item.nack().unwrap();
    assert_eq!(waits.each_ref().map(Hand::woken), [1, 1, 0]);
    queue.push_many(&[b"b", b"c"]).unwrap();
    assert_eq!(waits.each_ref().map(Hand::woken), [1, 1, 1]);
    assert!(waits[1].poll().is_ready() && waits[2].poll().is_ready());
}

#[test]
fn a_dropped_reserve_passes_its_entry_on() {
    let queue = group(16);
    let mut first = Hand::new(queue.reserve_async());
    let mut second = Hand::new(queue.reserve_async());
    assert!(first.poll().is_pending() && second.poll().is_pending());
    queue.push(b"a").unwrap();
    assert_eq!((first.woken(), second.woken()), (1, 0));
    drop(first);
    assert_eq!(second.woken(), 1);
    let Poll::Ready(Ok(Some(item))) = second.poll() else { panic!("the second one has it") };
    assert_eq!((item.seq(), item.deliveries()), (1, 1));
    // One that was not woken leaves without a word.
    let mut third = Hand::new(queue.reserve_async());
    assert!(third.poll().is_pending());
    drop(third);
    assert_eq!(queue.stats().in_flight, 1);
}

#[test]
fn a_reserve_of_many_waits_for_one_and_takes_what_is_there() {
    let queue = group(16);
    let mut many = Hand::new(queue.reserve_many_async(3));
    assert!(many.poll().is_pending());
    queue.push_many(&[b"a", b"b", b"c", b"d"]).unwrap();
    let Poll::Ready(Ok(items)) = many.poll() else { panic!("there are entries") };
    assert_eq!(items.iter().map(millpond::Reserved::seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(block_on(queue.reserve_many_async(0)).unwrap().is_empty());
    assert_eq!(block_on(queue.ack_many_async(&[1, 2, 2, 99])).unwrap(), 2);
    assert_eq!(block_on(queue.ack_many_async(&[])).unwrap(), 0);
    assert_eq!(queue.len(), 2);
}

#[test]
fn waits_end_with_the_queue() {
    let queue = group(16);
    let waits = [(); 2].map(|()| {
        let wait = queue.reserve_async();
        thread::spawn(move || block_on(wait).unwrap())
    });
    let item = {
        queue.push(b"a").unwrap();
        // Whoever of the two gets it first gives it back by dropping it; both end when nothing more can come.
        queue.close();
        waits.map(|wait| wait.join().unwrap())
    };
    assert!(item.iter().flatten().count() <= 2);
    drop(item);
    let last = block_on(queue.reserve_async()).unwrap().unwrap();
    last.ack().unwrap();
    assert!(block_on(queue.reserve_async()).unwrap().is_none());
    queue.finish().unwrap();
    assert!(block_on(queue.reserve_async()).unwrap().is_none());
    assert!(block_on(queue.reserve_many_async(4)).unwrap().is_empty());
}

#[test]
fn a_push_future_can_be_taken_back_by_hand() {
    let queue = group(1);
    queue.push(b"a").unwrap();
    let mut waits = queue.push_async(b"b");
    assert!(waits.withdraw() && !waits.withdraw());
    assert_eq!(queue.stats().waiting_pushes, 0);
    let mut stored = queue.push_with_async(b"c", Some(Durability::Sync));
    queue.reserve().unwrap().unwrap().ack().unwrap();
    assert!(!stored.withdraw(), "it has an id");
    assert_eq!(block_on(stored).unwrap(), 2);
}
