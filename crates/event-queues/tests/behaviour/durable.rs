use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use arch_event_queues::millpond::store::MemStore;
use arch_event_queues::millpond::{Durability, ErrorCode};
use arch_event_queues::{DurableEvent, DurableEventQueue, DurableEventQueueOptions};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::counting_store::Counted;

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Job {
    pub(crate) payload: String,
}

pub(crate) fn job(payload: &str) -> Job {
    Job { payload: payload.to_owned() }
}

pub(crate) const MODES: [fn() -> DurableEventQueueOptions; 2] =
    [DurableEventQueueOptions::eager, DurableEventQueueOptions::lazy];

/// Ids and payloads of what can be popped until nothing is ready.
pub(crate) fn pop_all(queue: &DurableEventQueue<Job>) -> Vec<(u64, String)> {
    std::iter::from_fn(|| queue.pop().unwrap()).map(|event| (event.id, event.event.payload)).collect()
}

fn three(options: DurableEventQueueOptions) -> DurableEventQueue<Job> {
    let queue = DurableEventQueue::with_store(MemStore::new(), options).unwrap();
    for payload in ["a", "b", "c"] {
        queue.push(job(payload)).unwrap();
    }
    queue
}

fn figures(queue: &DurableEventQueue<Job>) -> (usize, usize) {
    (queue.len().unwrap(), queue.ready_len().unwrap())
}

#[test]
fn what_is_not_acked_is_replayed_after_a_reopen() {
    for mode in MODES {
        let dir = tempfile::tempdir().unwrap();
        let open = || DurableEventQueue::<Job>::open_with_options(dir.path(), mode()).unwrap();
        let queue = open();
        let pushed = queue.push(job("a")).unwrap();
        assert_eq!(pushed, DurableEvent { id: 1, event: job("a") });
        queue.push(job("b")).unwrap();
        queue.push(job("c")).unwrap();
        assert_eq!(queue.pop().unwrap().unwrap().id, 1);
        assert_eq!(queue.pop().unwrap().unwrap().id, 2);
        queue.ack(2).unwrap();
        drop(queue);

        let queue = open();
        assert_eq!(figures(&queue), (2, 2));
        assert_eq!(pop_all(&queue), [(1, "a".to_owned()), (3, "c".to_owned())]);
        assert_eq!(figures(&queue), (2, 0), "popped and still stored");
        queue.ack_many([1, 3]).unwrap();
        assert!(queue.is_empty().unwrap());
        drop(queue);
        assert!(open().pop().unwrap().is_none());
    }
}

/// A fault of the published crate: ids began again after the queue ran empty and was opened again.
#[test]
fn ids_ascend_for_life() {
    let dir = tempfile::tempdir().unwrap();
    let mut last = 0;
    for mode in MODES.iter().cycle().take(6) {
        let queue = DurableEventQueue::<Job>::open_with_options(dir.path(), mode()).unwrap();
        assert!(queue.is_empty().unwrap());
        for _ in 0..3 {
            let id = queue.push(job("x")).unwrap().id;
            assert!(id > last, "{id} after {last}");
            last = id;
        }
        for (id, _) in pop_all(&queue) {
            queue.ack(id).unwrap();
        }
    }
}

#[test]
fn acks_are_idempotent_and_many_are_one_commit() {
    for mode in MODES {
        let store = Counted::default();
        let queue = DurableEventQueue::with_store(store.clone(), mode()).unwrap();
        for payload in ["a", "b", "c", "d"] {
            queue.push(job(payload)).unwrap();
        }
        queue.pop().unwrap().unwrap();
        queue.ack(99).unwrap();
        store.commits();
        queue.ack_many([1, 3, 3, 77, 4]).unwrap();
        assert_eq!(store.commits(), 1);
        queue.ack_many([1, 3]).unwrap();
        queue.ack_many([]).unwrap();
        queue.ack(1).unwrap();
        assert_eq!(figures(&queue), (1, 1));
        assert_eq!(pop_all(&queue), [(2, "b".to_owned())]);
    }
}

#[test]
fn a_nacked_event_has_its_old_place() {
    for mode in MODES {
        let queue = three(mode());
        assert_eq!(queue.pop().unwrap().unwrap().id, 1);
        assert_eq!(queue.pop().unwrap().unwrap().id, 2);
        queue.nack(1).unwrap();
        assert_eq!(figures(&queue), (3, 2));
        queue.nack(1).unwrap();
        assert_eq!(figures(&queue), (3, 2), "once");
        assert_eq!(pop_all(&queue), [(1, "a".to_owned()), (3, "c".to_owned())]);
    }
}

/// A fault of the published crate: what was acked without having been popped was delivered all the same.
#[test]
fn an_ack_of_what_was_never_popped_takes_it_out() {
    for mode in MODES {
        let queue = three(mode());
        queue.ack(1).unwrap();
        queue.ack_many([2]).unwrap();
        assert_eq!(figures(&queue), (1, 1));
        assert_eq!(queue.get(1).unwrap(), None);
        assert_eq!(pop_all(&queue), [(3, "c".to_owned())]);
    }
}

/// A fault of the published crate: what was nacked without having been popped was there twice.
#[test]
fn a_nack_of_what_was_never_popped_changes_nothing() {
    for mode in MODES {
        let queue = three(mode());
        for id in [2, 2, 99, 0, u64::MAX] {
            queue.nack(id).unwrap();
        }
        assert_eq!(figures(&queue), (3, 3));
        assert_eq!(pop_all(&queue).len(), 3);
        queue.ack(1).unwrap();
        queue.nack(1).unwrap();
        assert_eq!(figures(&queue), (2, 0), "what was acked stays gone");
    }
}

#[test]
fn reading_pops_nothing() {
    for mode in MODES {
        let queue = three(mode());
        queue.pop().unwrap().unwrap();
        assert_eq!(queue.get(1).unwrap(), Some(DurableEvent { id: 1, event: job("a") }));
        assert_eq!(queue.get(2).unwrap().unwrap().event, job("b"));
        assert_eq!(queue.get(9).unwrap(), None);
        let all: Vec<u64> = queue.iterator().map(|event| event.unwrap().id).collect();
        assert_eq!(all, [1, 2, 3], "in id order, popped or not");
        assert_eq!(figures(&queue), (3, 2));
    }
}

#[test]
fn a_poll_waits_for_an_event() {
    let queue = DurableEventQueue::with_store(MemStore::new(), DurableEventQueueOptions::lazy()).unwrap();
    let started = Instant::now();
    assert!(queue.poll().unwrap().is_none());
    assert!(started.elapsed() >= Duration::from_millis(100));
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            queue.push(job("a")).unwrap();
        });
        barrier.wait();
        let event = loop {
            if let Some(event) = queue.poll().unwrap() {
                break event;
            }
        };
        assert_eq!(event.event, job("a"));
        // A nack ends a wait as a push does.
        queue.nack(event.id).unwrap();
        assert_eq!(queue.poll().unwrap().unwrap().id, event.id);
    });
}

#[test]
fn producers_share_their_commits() {
    const PRODUCERS: usize = 16;
    const EACH: usize = 50;
    for mode in MODES {
        let queue = DurableEventQueue::with_store(MemStore::new(), mode()).unwrap();
        thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let queue = queue.clone();
                scope.spawn(move || {
                    for n in 0..EACH {
                        queue.push(job(&format!("{producer}-{n}"))).unwrap();
                    }
                });
            }
        });
        let events = pop_all(&queue);
        assert_eq!(events.len(), PRODUCERS * EACH);
        for producer in 0..PRODUCERS {
            let prefix = format!("{producer}-");
            let own = events.iter().filter_map(|(_, payload)| payload.strip_prefix(&prefix));
            assert!(own.eq((0..EACH).map(|n| n.to_string())), "a producer's events keep their order");
        }
    }
}

#[test]
fn a_limited_queue_makes_pushes_wait() {
    let options = DurableEventQueueOptions::lazy().capacity(1).durability(Durability::None);
    let queue = DurableEventQueue::with_store(MemStore::new(), options).unwrap();
    queue.push(job("a")).unwrap();
    thread::scope(|scope| {
        let push = scope.spawn(|| queue.push(job("b")).unwrap().id);
        while queue.stats().waiting_pushes == 0 {
            thread::yield_now();
        }
        queue.ack(1).unwrap();
        assert_eq!(push.join().unwrap(), 2);
    });
    let none = DurableEventQueueOptions::lazy().capacity(0);
    let error = DurableEventQueue::<Job>::with_store(MemStore::new(), none).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
}

#[test]
fn a_queue_has_one_owner_and_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let queue = DurableEventQueue::<Job>::open(dir.path()).unwrap();
    queue.push(job("a")).unwrap();
    queue.flush().unwrap();
    let second = DurableEventQueue::<Job>::open(dir.path()).unwrap_err();
    assert_eq!(second.code(), ErrorCode::Locked);
    queue.finish().unwrap();
    assert_eq!(queue.push(job("b")).unwrap_err().code(), ErrorCode::Closed);
    let queue = DurableEventQueue::<Job>::open(dir.path()).unwrap();
    assert_eq!(pop_all(&queue), [(1, "a".to_owned())]);
}

#[test]
fn a_queue_of_another_encoding_is_refused() {
    use arch_event_queues::millpond::Builder;
    let store = Counted::default();
    Builder::new(store.clone()).open().unwrap().push(b"bytes").unwrap();
    let error = DurableEventQueue::<Job>::with_store(store, DurableEventQueueOptions::lazy()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CodecMismatch);
}
