use std::time::Duration;

use loom::thread;
use millpond::{Durability, Queue};

use crate::store::Disk;
use crate::{check, end, open};

#[test]
fn close_wakes_whoever_waits_for_an_entry() {
    check("close_wakes_whoever_waits_for_an_entry", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 0);
        let clone = queue.clone();
        let consumer = thread::spawn(move || clone.reserve_timeout(Duration::MAX).unwrap().is_none());
        queue.close();
        assert!(consumer.join().unwrap());
        end(queue, &disk);
    });
}

#[test]
fn close_wakes_a_push_that_waits_for_room() {
    check("close_wakes_a_push_that_waits_for_room", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 1, 1);
        let clone = queue.clone();
        let push = thread::spawn(move || clone.push(b"b").is_err());
        queue.close();
        assert!(push.join().unwrap());
        end(queue, &disk);
    });
}

#[test]
fn finish_waits_for_a_push_on_its_callers_thread() {
    check("finish_waits_for_a_push_on_its_callers_thread", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::None, 8, 1);
        disk.inline.store(true, std::sync::atomic::Ordering::SeqCst);
        finish_waits_for_a_push(&queue, &disk);
    });
}

pub(crate) fn finish_waits_for_a_push(queue: &Queue, disk: &Disk) {
    let clone = queue.clone();
    let push = thread::spawn(move || clone.push(b"b").is_ok());
    queue.finish().unwrap();
    let stored = push.join().unwrap();
    assert_eq!(disk.entries(), 1 + u64::from(stored));
}

#[test]
fn two_ends_at_once_are_one_end() {
    check("two_ends_at_once_are_one_end", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        let clone = queue.clone();
        let other = thread::spawn(move || clone.finish().is_ok());
        queue.finish().unwrap();
        assert!(other.join().unwrap());
    });
}
