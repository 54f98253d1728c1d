//! Operations in memory, which are one step on their callers' threads, beside those in the line.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loom::thread;
use millpond::{Durability, Queue};

use crate::store::Disk;
use crate::{check, end, open};

fn in_memory(disk: &Arc<Disk>, entries: u64) -> Queue {
    disk.memory.store(true, Ordering::SeqCst);
    open(disk, Durability::None, 8, entries)
}

#[test]
fn two_pushes_in_memory_and_a_walk() {
    check("two_pushes_in_memory_and_a_walk", || {
        let disk = Disk::new();
        let queue = in_memory(&disk, 1);
        let clone = queue.clone();
        let other = thread::spawn(move || clone.push(b"b").unwrap());
        let item = queue.reserve().unwrap().unwrap();
        assert_eq!(item.seq(), 1);
        assert!(item.ack().unwrap());
        let own = queue.push(b"c").unwrap();
        assert_eq!(own + other.join().unwrap(), 5);
        end(queue, &disk);
    });
}

#[test]
fn acks_by_handle_and_by_id_in_memory_remove_once() {
    check("acks_by_handle_and_by_id_in_memory_remove_once", || {
        let disk = Disk::new();
        let queue = in_memory(&disk, 1);
        let item = queue.reserve().unwrap().unwrap();
        let clone = queue.clone();
        let other = thread::spawn(move || clone.ack(1).unwrap());
        let own = item.ack().unwrap();
        assert!(own != other.join().unwrap());
        end(queue, &disk);
    });
}

#[test]
fn a_push_in_memory_wakes_whoever_waits_for_it() {
    check("a_push_in_memory_wakes_whoever_waits_for_it", || {
        let disk = Disk::new();
        let queue = in_memory(&disk, 1);
        assert!(queue.ack(1).unwrap());
        let clone = queue.clone();
        let consumer =
            thread::spawn(move || clone.reserve_timeout(Duration::MAX).unwrap().map(|item| item.seq()));
        queue.push(b"b").unwrap();
        assert_eq!(consumer.join().unwrap(), Some(2));
        end(queue, &disk);
    });
}

#[test]
fn an_ack_in_memory_makes_room_for_a_push_that_waits() {
    check("an_ack_in_memory_makes_room_for_a_push_that_waits", || {
        let disk = Disk::new();
        disk.memory.store(true, Ordering::SeqCst);
        let queue = open(&disk, Durability::None, 1, 1);
        let clone = queue.clone();
        let push = thread::spawn(move || clone.push(b"b").unwrap());
        assert!(queue.reserve().unwrap().unwrap().ack().unwrap());
        assert_eq!(push.join().unwrap(), 2);
        end(queue, &disk);
    });
}

#[test]
fn an_end_and_a_push_in_memory() {
    check("an_end_and_a_push_in_memory", || {
        let disk = Disk::new();
        let queue = in_memory(&disk, 1);
        let clone = queue.clone();
        let push = thread::spawn(move || clone.push(b"b").is_ok());
        queue.finish().unwrap();
        let stored = push.join().unwrap();
        assert_eq!(disk.entries(), 1 + u64::from(stored));
    });
}

#[test]
fn pushes_in_memory_and_in_the_line_are_walked_in_order() {
    check("pushes_in_memory_and_in_the_line_are_walked_in_order", || {
        let disk = Disk::new();
        let queue = in_memory(&disk, 1);
        assert!(queue.ack(1).unwrap());
        let clone = queue.clone();
        let durable = thread::spawn(move || clone.push_with(b"b", Some(Durability::Group), None).unwrap());
        queue.push(b"c").unwrap();
        // Nothing behind a push that is under way is handed out.
        if let Some(item) = queue.reserve().unwrap() {
            assert_eq!(item.seq(), 2);
        }
        durable.join().unwrap();
        assert_eq!(queue.reserve().unwrap().unwrap().seq(), 2);
        end(queue, &disk);
    });
}
