use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use arch_event_queues::EventQueue;
use proptest::prelude::*;

/// Has no trait at all.
struct Bare(u32);

#[test]
fn events_come_in_order_and_front_events_first() {
    let queue = EventQueue::new();
    assert!(queue.is_empty().unwrap());
    queue.push(Bare(2)).unwrap();
    queue.push(Bare(3)).unwrap();
    queue.push_front(Bare(1)).unwrap();
    queue.push_front(Bare(0)).unwrap();
    assert_eq!((queue.len().unwrap(), queue.is_empty().unwrap()), (4, false));
    let seen: Vec<u32> = std::iter::from_fn(|| queue.pop().unwrap()).map(|event| event.0).collect();
    assert_eq!(seen, [0, 1, 2, 3]);
    assert!(queue.pop().unwrap().is_none());
}

#[test]
fn a_poll_of_an_empty_queue_waits_its_time() {
    let queue = EventQueue::<Bare>::default();
    let started = Instant::now();
    assert!(queue.poll().unwrap().is_none());
    assert!(started.elapsed() >= Duration::from_millis(100));
    queue.push(Bare(1)).unwrap();
    let started = Instant::now();
    assert!(queue.poll().unwrap().is_some());
    assert!(started.elapsed() < Duration::from_millis(100), "an event that is there is not waited for");
}

#[test]
fn every_push_ends_one_wait() {
    let queue = EventQueue::new();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (queue, sender) = (queue.clone(), sender.clone());
            scope.spawn(move || {
                let event = loop {
                    if let Some(event) = queue.poll().unwrap() {
                        break event;
                    }
                };
                sender.send(event).unwrap();
            });
        }
        for event in 0..4 {
            if event % 2 == 0 { queue.push(event) } else { queue.push_front(event) }.unwrap();
        }
    });
    let mut seen: Vec<u32> = receiver.try_iter().collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3]);
}

#[test]
fn nothing_is_lost_or_doubled_between_threads() {
    const EACH: u64 = 2_000;
    let queue = EventQueue::new();
    let total: u64 = thread::scope(|scope| {
        for producer in 0..4 {
            let queue = &queue;
            scope.spawn(move || (0..EACH).for_each(|n| queue.push(producer * EACH + n).unwrap()));
        }
        let consumers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| std::iter::from_fn(|| queue.poll().unwrap()).sum::<u64>()))
            .collect();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
    });
    // A consumer stops at a pause of 100 ms, so something may be left.
    let left: u64 = std::iter::from_fn(|| queue.pop().unwrap()).sum();
    assert_eq!(total + left, (0..4 * EACH).sum::<u64>());
}

proptest! {
    #[test]
    fn it_is_a_deque(steps in prop::collection::vec((0u8..3, any::<u16>()), 0..100)) {
        let queue = EventQueue::new();
        let mut model = std::collections::VecDeque::new();
        for (step, event) in steps {
            match step {
                0 => {
                    queue.push(event).unwrap();
                    model.push_back(event);
                }
                1 => {
                    queue.push_front(event).unwrap();
                    model.push_front(event);
                }
                _ => prop_assert_eq!(queue.pop().unwrap(), model.pop_front()),
            }
            prop_assert_eq!(queue.len().unwrap(), model.len());
        }
    }
}
