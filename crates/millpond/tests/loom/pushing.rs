use loom::thread;
use millpond::store::FailureKind;
use millpond::{Durability, ErrorCode, PushError};

use crate::store::Disk;
use crate::{check, check_with, end, open};

#[test]
fn two_pushes_hand_the_lead_over() {
    check("two_pushes_hand_the_lead_over", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        let clone = queue.clone();
        let other = thread::spawn(move || clone.push(b"b").unwrap());
        let own = queue.push(b"c").unwrap();
        let other = other.join().unwrap();
        assert_eq!((own.min(other), own.max(other)), (2, 3));
        end(queue, &disk);
    });
}

#[test]
fn a_full_queue_wakes_the_push_that_waits_when_an_ack_makes_room() {
    check("a_full_queue_wakes_the_push_that_waits_when_an_ack_makes_room", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 1, 1);
        let clone = queue.clone();
        let push = thread::spawn(move || clone.push(b"b").unwrap());
        assert!(queue.reserve().unwrap().unwrap().ack().unwrap());
        assert_eq!(push.join().unwrap(), 2);
        end(queue, &disk);
    });
}

#[test]
fn a_failed_commit_is_everybodys_in_it_and_nobody_elses() {
    check("a_failed_commit_is_everybodys_in_it_and_nobody_elses", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        disk.fail(FailureKind::NoSpace);
        let clone = queue.clone();
        let other = thread::spawn(move || clone.push(b"b"));
        let outcomes = [queue.push(b"c"), other.join().unwrap()];
        let stored = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        assert!(stored < 2);
        assert_eq!(disk.entries(), 1 + stored);
        end(queue, &disk);
    });
}

#[test]
fn poison_reaches_leader_and_follower_and_the_queue_ends() {
    check("poison_reaches_leader_and_follower_and_the_queue_ends", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        disk.fail(FailureKind::Unknown);
        let clone = queue.clone();
        let other = thread::spawn(move || clone.push(b"b"));
        let outcomes = [queue.push(b"c"), other.join().unwrap()];
        let codes = outcomes.map(|outcome| outcome.unwrap_err().code());
        assert!(codes.contains(&ErrorCode::Io));
        assert_eq!(queue.push(b"d").unwrap_err().code(), ErrorCode::Poisoned);
        end(queue, &disk);
    });
}

#[test]
fn a_failure_on_the_callers_thread_lets_a_designated_leader_hand_over() {
    check("a_failure_on_the_callers_thread_lets_a_designated_leader_hand_over", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::None, 8, 1);
        disk.inline_fails.store(true, std::sync::atomic::Ordering::SeqCst);
        let clone = queue.clone();
        let durable = thread::spawn(move || clone.push_with(b"b", Some(Durability::Group), None).is_ok());
        assert!(queue.push(b"c").is_err());
        let stored = durable.join().unwrap();
        assert_eq!(disk.entries(), 1 + u64::from(stored));
        end(queue, &disk);
    });
}

#[test]
fn close_refuses_or_takes_in_and_never_forgets() {
    check("close_refuses_or_takes_in_and_never_forgets", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        let clone = queue.clone();
        let push = thread::spawn(move || clone.push(b"b"));
        queue.close();
        let stored = match push.join().unwrap() {
            Ok(id) => id == 2,
            Err(error) => !matches!(error, PushError::Closed),
        };
        assert_eq!(disk.entries(), 1 + u64::from(stored));
        end(queue, &disk);
    });
}

#[test]
fn a_dropped_push_future_is_withdrawn_or_stored() {
    check("a_dropped_push_future_is_withdrawn_or_stored", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 1, 1);
        let mut waits = queue.push_async(b"b");
        let clone = queue.clone();
        let ack = thread::spawn(move || assert!(clone.ack(1).unwrap()));
        let withdrawn = waits.withdraw();
        drop(waits);
        ack.join().unwrap();
        if withdrawn {
            queue.push(b"c").unwrap();
        }
        queue.finish().unwrap();
        assert_eq!((disk.entries(), queue.len()), (1, 1));
    });
}

#[test]
fn commits_on_callers_threads_and_in_the_line_count_alike() {
    check("commits_on_callers_threads_and_in_the_line_count_alike", || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::None, 8, 1);
        assert!(queue.ack(1).unwrap());
        disk.inline.store(true, std::sync::atomic::Ordering::SeqCst);
        let clone = queue.clone();
        let push = thread::spawn(move || clone.push(b"b").unwrap());
        // Guessed while its push may be on its way.
        let removed = queue.ack(2).unwrap();
        push.join().unwrap();
        assert_eq!(queue.len(), 1 - u64::from(removed));
        end(queue, &disk);
    });
}

#[test]
fn two_pushes_and_an_ack_share_commits_in_a_tight_queue() {
    check_with("two_pushes_and_an_ack_share_commits_in_a_tight_queue", 2, || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 2, 1);
        let pushes =
            [queue.clone(), queue.clone()].map(|queue| thread::spawn(move || queue.push(b"b").unwrap()));
        assert!(queue.ack(1).unwrap());
        let ids = pushes.map(|push| push.join().unwrap());
        assert_eq!(ids[0] + ids[1], 5);
        end(queue, &disk);
    });
}

#[test]
fn a_thread_that_follows_in_a_batch_is_let_through() {
    check_with("a_thread_that_follows_in_a_batch_is_let_through", 3, || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        let pushes =
            [queue.clone(), queue.clone()].map(|queue| thread::spawn(move || queue.push(b"b").unwrap()));
        let own = queue.push(b"c").unwrap();
        let ids = pushes.map(|push| push.join().unwrap());
        assert_eq!(own + ids[0] + ids[1], 9);
        end(queue, &disk);
    });
}

#[test]
fn a_failure_reaches_a_thread_that_follows_in_a_batch() {
    check_with("a_failure_reaches_a_thread_that_follows_in_a_batch", 3, || {
        let disk = Disk::new();
        let queue = open(&disk, Durability::Group, 8, 1);
        disk.fail(FailureKind::Unknown);
        let pushes = [queue.clone(), queue.clone()].map(|queue| thread::spawn(move || queue.push(b"b")));
        let own = queue.push(b"c");
        let outcomes = pushes.map(|push| push.join().unwrap());
        assert!(own.is_err() && outcomes.iter().all(Result::is_err));
        assert_eq!(disk.entries(), 1);
        end(queue, &disk);
    });
}
