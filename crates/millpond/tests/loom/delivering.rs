use std::time::Duration;

use loom::future::block_on;
use loom::thread;
use millpond::store::FailureKind;
use millpond::{Durability, Queue};

use crate::store::Disk;
use crate::{check, check_with, end, open};

#[test]
fn an_ack_by_id_and_a_reserve_agree_on_one_owner() {
    check("an_ack_by_id_and_a_reserve_agree_on_one_owner", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        let clone = queue.clone();
        let ack = thread::spawn(move || clone.ack(1).unwrap());
        let item = queue.reserve().unwrap();
        assert!(ack.join().unwrap());
        if let Some(item) = item {
            assert!(!item.ack().unwrap());
        }
        assert!(queue.reserve().unwrap().is_none());
        assert_eq!((queue.len(), queue.stats().in_flight), (0, 0));
        end(queue, &disk);
    });
}

#[test]
fn two_acks_of_many_remove_each_entry_once() {
    check("two_acks_of_many_remove_each_entry_once", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 2);
        let clone = queue.clone();
        let other = thread::spawn(move || clone.ack_many(&[1, 2]).unwrap());
        let own = queue.ack_many(&[2, 1]).unwrap();
        assert_eq!(own + other.join().unwrap(), 2);
        end(queue, &disk);
    });
}

#[test]
fn a_walk_does_not_pass_over_a_push_behind_a_hole() {
    check("a_walk_does_not_pass_over_a_push_behind_a_hole", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        assert!(queue.ack(1).unwrap());
        let clone = queue.clone();
        let push = thread::spawn(move || clone.push(b"b").unwrap());
        let early = queue.reserve().unwrap();
        push.join().unwrap();
        let item = early.or_else(|| queue.reserve().unwrap()).unwrap();
        assert_eq!(item.seq(), 2);
        drop(item);
        end(queue, &disk);
    });
}

#[test]
fn a_thread_that_waits_for_an_entry_is_woken() {
    check("a_thread_that_waits_for_an_entry_is_woken", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        a_push_wakes_who_waits_for_it(queue, &disk);
    });
}

pub(crate) fn a_push_wakes_who_waits_for_it(queue: Queue, disk: &Disk) {
    assert!(queue.ack(1).unwrap());
    let clone = queue.clone();
    let consumer =
        thread::spawn(move || clone.reserve_timeout(Duration::MAX).unwrap().map(|item| item.seq()));
    queue.push(b"b").unwrap();
    assert_eq!(consumer.join().unwrap(), Some(2));
    end(queue, disk);
}

#[test]
fn a_dropped_reserve_future_passes_its_entry_on() {
    check_with("a_dropped_reserve_future_passes_its_entry_on", 3, || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        let item = queue.reserve().unwrap().unwrap();
        let given_up = queue.reserve_async();
        let wait = queue.reserve_async();
        let consumer = thread::spawn(move || block_on(wait).unwrap().unwrap().seq());
        let nack = thread::spawn(move || drop(item));
        // Polled once: it has a place in the list, before or behind the other, and then leaves.
        let _ = poll_once(given_up);
        nack.join().unwrap();
        assert_eq!(consumer.join().unwrap(), 1);
        end(queue, &disk);
    });
}

/// Polls once; an item it gets goes back by being dropped.
fn poll_once(mut future: millpond::ReserveFuture) -> bool {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Waker};
    let ready = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())).is_ready();
    drop(future);
    ready
}

#[test]
fn an_ack_of_a_delivered_item_while_another_thread_reserves_and_nacks() {
    check("an_ack_of_a_delivered_item_while_another_thread_reserves_and_nacks", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 2);
        let item = queue.reserve().unwrap().unwrap();
        let clone = queue.clone();
        let other = thread::spawn(move || {
            let items = clone.reserve_many(2).unwrap();
            assert!(items.iter().all(|item| item.seq() == 2));
            drop(items);
        });
        assert!(item.ack().unwrap());
        other.join().unwrap();
        assert_eq!((queue.len(), queue.ready_len()), (1, 1));
        end(queue, &disk);
    });
}

#[test]
fn acks_by_handle_and_by_id_on_two_threads_remove_once() {
    check("acks_by_handle_and_by_id_on_two_threads_remove_once", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::None, 8, 1);
        let item = queue.reserve().unwrap().unwrap();
        disk.inline.store(true, std::sync::atomic::Ordering::SeqCst);
        let clone = queue.clone();
        let by_id = thread::spawn(move || clone.ack(1).unwrap());
        let by_handle = item.ack().unwrap();
        assert!(by_handle != by_id.join().unwrap());
        end(queue, &disk);
    });
}

#[test]
fn an_ack_that_follows_in_a_batch_is_let_through_or_told_of_the_failure() {
    for fails in [false, true] {
        check_with("an_ack_that_follows_in_a_batch_is_let_through_or_told_of_the_failure", 3, move || {
            let disk = Disk::new();
            let queue = open(&disk, Durability::Group, 8, 3);
            let mut items = [(); 3].map(|()| queue.reserve().unwrap().unwrap()).into_iter();
            if fails {
                disk.fail(FailureKind::Unknown);
            }
            let own = items.next().unwrap();
            let acks: Vec<_> = items.map(|item| thread::spawn(move || item.ack())).collect();
            let mut outcomes = vec![own.ack()];
            outcomes.extend(acks.into_iter().map(|ack| ack.join().unwrap()));
            if fails {
                assert!(outcomes.iter().all(Result::is_err));
            } else {
                assert!(outcomes.into_iter().all(|outcome| outcome.unwrap()));
            }
            assert_eq!(disk.entries(), if fails { 3 } else { 0 });
            end(queue, &disk);
        });
    }
}
