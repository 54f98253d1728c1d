use std::thread;
use std::time::{Duration, Instant};

use millpond::store::MemStore;
use millpond::{Builder, Durability, ErrorCode, OpenError, PushError, Queue, TryPushError};

fn queue(capacity: u64) -> Queue {
    Builder::new(MemStore::new()).capacity(capacity).durability(Durability::Group).open().unwrap()
}

#[test]
fn capacity_0_is_refused() {
    let error = Builder::new(MemStore::new()).capacity(0).open().unwrap_err();
    assert!(matches!(error, OpenError::ZeroCapacity));
    assert_eq!(error.code(), ErrorCode::Invalid);
}

#[test]
fn a_full_queue_says_so_and_an_ack_opens_exactly_one_slot() {
    let queue = queue(2);
    queue.push(b"a").unwrap();
    queue.push(b"b").unwrap();
    assert!(matches!(queue.try_push(b"c"), Err(TryPushError::Full)));
    let item = queue.reserve().unwrap().unwrap();
    assert!(matches!(queue.try_push(b"c"), Err(TryPushError::Full)), "a delivered item still counts");
    item.ack().unwrap();
    queue.try_push(b"c").unwrap();
    assert!(matches!(queue.try_push(b"d"), Err(TryPushError::Full)));
}

#[test]
fn waiting_pushes_are_served_in_order() {
    let queue = queue(1);
    queue.push(b"first").unwrap();
    let threads: Vec<_> = (0..8u8)
        .map(|n| {
            let clone = queue.clone();
            let thread = thread::spawn(move || clone.push([n]).unwrap());
            while queue.stats().waiting_pushes < u64::from(n) + 1 {
                thread::yield_now();
            }
            thread
        })
        .collect();
    queue.reserve().unwrap().unwrap().ack().unwrap();
    for n in 0..8u8 {
        let item = queue.reserve_timeout(Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!(&*item, [n]);
        item.ack().unwrap();
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_push_gives_up_after_its_time_and_leaves_no_trace() {
    let queue = queue(1);
    queue.push(b"a").unwrap();
    let started = Instant::now();
    let error = queue.push_with(b"b", None, Some(Duration::from_millis(50))).unwrap_err();
    assert!(matches!(error, PushError::Timeout));
    assert!(started.elapsed() >= Duration::from_millis(50));
    assert_eq!((queue.len(), queue.stats().waiting_pushes), (1, 0));
    queue.reserve().unwrap().unwrap().ack().unwrap();
    assert!(queue.reserve().unwrap().is_none());
}

#[test]
fn a_large_push_at_the_head_that_gives_up_lets_smaller_ones_pass() {
    let queue = queue(4);
    queue.push_many(&[b"a", b"b", b"c"]).unwrap();
    let port_like = queue.clone();
    let large = thread::spawn(move || port_like.push_many(&[b"x"; 3]));
    while queue.stats().waiting_pushes == 0 {
        thread::yield_now();
    }
    // Room for one, but the three are first in line.
    let behind = queue.push_with(b"y", None, Some(Duration::from_millis(30)));
    assert!(matches!(behind, Err(PushError::Timeout)));
    queue.close();
    assert!(matches!(large.join().unwrap(), Err(PushError::Closed)));
}

#[test]
fn try_push_on_a_fresh_queue_is_not_taken_for_full() {
    // The first pushes of a queue wait for the first lease of ids; that is not the same as being full.
    let queue = queue(64);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| queue.try_push(b"x").unwrap());
        }
    });
    assert!(matches!(queue.try_push(b"x"), Err(TryPushError::Full)));
    assert_eq!(queue.len(), 64);
}
