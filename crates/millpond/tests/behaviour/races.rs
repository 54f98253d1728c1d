//! Interleavings that are rare on real threads, forced by a store that runs the other side at the right moment.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use millpond::store::FailureKind;
use millpond::{Builder, Durability, ErrorCode, Queue};
use parking_lot::Mutex;

use crate::fault_store::{Disk, FaultStore};

fn open(disk: &Arc<Disk>, durability: Durability) -> Queue {
    Builder::new(FaultStore(Arc::clone(disk))).durability(durability).open().unwrap()
}

/// Fails a test that hangs, instead of hanging.
fn within<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("hangs: {what}"))
}

/// Polls once with this waker.
fn poll_once(future: &mut (impl Future + Unpin), waker: &Waker) -> bool {
    pin!(future).poll(&mut Context::from_waker(waker)).is_ready()
}

#[test]
fn an_ack_on_another_thread_between_seek_and_mark_hands_nothing_out_again() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push_many(&[b"a", b"b"]).unwrap();
    let clone = queue.clone();
    disk.before_get.set(move || assert!(thread::spawn(move || clone.ack(1).unwrap()).join().unwrap()));
    let item = queue.reserve().unwrap().unwrap();
    assert_eq!(item.seq(), 2, "the acked item is not handed out");
    assert_eq!((queue.len(), queue.ready_len(), queue.in_flight().len()), (1, 0, 1));
    item.ack().unwrap();
    assert_eq!((queue.len(), queue.ready_len()), (0, 0), "the count does not underflow");
}

#[test]
fn an_ack_that_is_applied_and_not_settled_while_its_item_is_read_counts() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push(b"a").unwrap();
    let (walked, walk_ended) = channel::<()>();
    let ack = Arc::new(Mutex::new(None));
    let (clone, handle, gate) = (queue.clone(), Arc::clone(&ack), Arc::clone(&disk));
    disk.before_get.set(move || {
        let (applied, delete_applied) = channel::<()>();
        gate.after_commit.set(move || {
            applied.send(()).unwrap();
            walk_ended.recv().unwrap();
        });
        *handle.lock() = Some(thread::spawn(move || clone.ack(1).unwrap()));
        delete_applied.recv().unwrap();
    });
    assert!(queue.reserve().unwrap().is_none());
    walked.send(()).unwrap();
    assert!(ack.lock().take().unwrap().join().unwrap(), "this call removed it");
    assert_eq!((queue.len(), queue.ready_len(), queue.in_flight().len()), (0, 0, 0));
}

#[test]
fn an_ack_of_an_entry_whose_push_is_applied_and_not_settled_counts() {
    let disk = Disk::new();
    disk.inline.store(true, Ordering::SeqCst);
    let queue = open(&disk, Durability::None);
    queue.push(b"takes the lease").unwrap();
    assert!(queue.ack(1).unwrap());
    let clone = queue.clone();
    disk.after_inline.set(move || assert!(thread::spawn(move || clone.ack(2).unwrap()).join().unwrap()));
    assert_eq!(queue.push(b"b").unwrap(), 2);
    assert_eq!((queue.len(), queue.ready_len()), (0, 0));
    assert!(queue.reserve().unwrap().is_none());
}

#[test]
fn a_push_that_settles_while_the_walk_looks_for_the_next_entry_is_not_passed_over() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push(b"a").unwrap();
    assert!(queue.ack(1).unwrap());
    let clone = queue.clone();
    // Nothing was stored when the walk looked; then entry 2 arrives.
    disk.after_seek.set(move || assert_eq!(clone.push(b"b").unwrap(), 2));
    let first = queue.reserve().unwrap();
    let item = first.or_else(|| queue.reserve().unwrap()).expect("entry 2 is ready");
    assert_eq!(item.seq(), 2);
}

#[test]
fn a_delivery_that_nobody_saw_is_not_counted() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push(b"a").unwrap();
    let ack = Arc::new(Mutex::new(None));
    let (clone, handle, gate) = (queue.clone(), Arc::clone(&ack), Arc::clone(&disk));
    disk.before_get.set(move || {
        let attempts = gate.count(&gate.attempts);
        gate.hold();
        gate.fail(FailureKind::NoSpace, true);
        *handle.lock() = Some(thread::spawn(move || clone.ack(1).unwrap_err()));
        while gate.count(&gate.attempts) == attempts {
            thread::yield_now();
        }
    });
    assert!(queue.reserve().unwrap().is_none(), "an ack of it is under way");
    disk.release();
    assert_eq!(ack.lock().take().unwrap().join().unwrap().code(), ErrorCode::NoSpace);
    assert_eq!(queue.reserve().unwrap().unwrap().deliveries(), 1);
}

#[test]
fn a_consumer_that_waits_in_a_closed_queue_learns_that_the_last_push_failed() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push(b"takes the lease").unwrap();
    queue.ack(1).unwrap();
    disk.hold();
    disk.fail(FailureKind::NoSpace, true);
    let push = queue.push_async(b"fails");
    queue.close();
    let clone = queue.clone();
    let consumer = thread::spawn(move || clone.reserve_timeout(Duration::MAX).unwrap());
    thread::sleep(Duration::from_millis(50));
    disk.release();
    assert!(within("reserve after the last push failed", || consumer.join().unwrap()).is_none());
    drop(push);
}

/// A waker that holds a queue and lets go of it when it is woken, as the last reference to a task does.
struct LastOwner(Mutex<Option<Queue>>);

impl Wake for LastOwner {
    fn wake(self: Arc<Self>) {
        let queue = self.0.lock().take();
        drop(queue);
    }
}

#[test]
fn the_last_owner_may_go_on_the_thread_that_leads() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push(b"a").unwrap();
    let item = queue.reserve().unwrap().unwrap();
    disk.hold();
    let first = queue.push_async(b"the commit thread is held with this one");
    let attempts = disk.count(&disk.attempts);
    while disk.count(&disk.attempts) < attempts.max(3) {
        thread::yield_now();
    }
    let line = queue.stats().claimed;
    let mut second = queue.push_async(b"shares its commit with the ack");
    assert_eq!(queue.stats().claimed, line + 1);
    let waker = Waker::from(Arc::new(LastOwner(Mutex::new(Some(queue)))));
    assert!(!poll_once(&mut second, &waker));
    drop(waker);
    let gate = Arc::clone(&disk);
    let ack = thread::spawn(move || item.ack());
    thread::sleep(Duration::from_millis(50));
    gate.release();
    let acked = within("the ack that led the last commit", || ack.join().unwrap());
    assert!(acked.unwrap());
    drop((first, second));
    let reopened = within("open after the end", move || {
        loop {
            thread::sleep(Duration::from_millis(5));
            if disk.is_closed() {
                return open(&disk, Durability::Group).len();
            }
        }
    });
    assert_eq!(reopened, 2);
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker that panics"));
    }
}

#[test]
fn a_waker_that_panics_stops_nobody() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push(b"takes the lease").unwrap();
    disk.hold();
    let mut push = queue.push_async(b"b");
    assert!(!poll_once(&mut push, &Waker::from(Arc::new(Panics))));
    disk.release();
    let clone = queue.clone();
    assert_eq!(within("the next push", move || clone.push(b"c").unwrap()), 3);
    within("the end", move || drop(queue));
}

#[test]
fn a_read_that_panics_swallows_nothing_and_stops_nobody() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    queue.push_many(&[b"a", b"b"]).unwrap();
    let panics = || std::panic::resume_unwind(Box::new("a store that panics"));
    disk.before_get.set(panics);
    assert_eq!(queue.reserve().unwrap_err().code(), ErrorCode::Internal);
    assert_eq!((queue.ready_len(), queue.in_flight().len()), (2, 0));
    assert_eq!(queue.reserve().unwrap().unwrap().deliveries(), 1);
    disk.after_seek.set(panics);
    let clone = queue.clone();
    assert!(within("an ack whose look-up panics", move || clone.ack(2).unwrap()));
    assert_eq!(queue.push(b"c").unwrap(), 3);
    within("the end", move || drop(queue));
}

#[test]
fn a_consumer_that_waits_in_a_closed_queue_learns_that_the_last_push_was_taken_back() {
    let disk = Disk::new();
    let queue = open(&disk, Durability::Group);
    disk.hold();
    let push = queue.push_async(b"waits for the first ids");
    queue.close();
    let clone = queue.clone();
    let consumer = thread::spawn(move || clone.reserve_timeout(Duration::MAX).unwrap());
    thread::sleep(Duration::from_millis(50));
    drop(push);
    disk.release();
    assert!(within("reserve after the last push was taken back", || consumer.join().unwrap()).is_none());
}
