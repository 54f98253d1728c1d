//! A queue behaves the same on every store.
#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::path::Path;
use std::thread;
use std::time::Duration;

use millpond::{Builder, Durability, ErrorCode, Queue, TryPushError};
use millpond_testkit::payload::{nonce, payload};
use millpond_testkit::subjects::Subject;
use millpond_testkit::{tests_on_all_stores, tests_on_disk_stores};

const POLICIES: [Durability; 3] = [Durability::Sync, Durability::Group, Durability::None];

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn open<T: Subject>(directory: &Path, durability: Durability) -> Queue {
    let store = T::open(directory).unwrap();
    Builder::new(store).capacity(16).durability(durability).open().unwrap()
}

fn ids(queue: &Queue) -> Vec<u64> {
    queue.iter().map(|entry| entry.unwrap().id).collect()
}

fn entries_come_in_order_and_are_gone_when_acked<T: Subject>() {
    for durability in POLICIES {
        let directory = scratch();
        let queue = open::<T>(directory.path(), durability);
        let payloads: Vec<Vec<u8>> = (0..10).map(payload).collect();
        assert_eq!(queue.push_many(&payloads).unwrap(), (1..=10).collect::<Vec<_>>());
        for expected in 0..5 {
            let item = queue.reserve().unwrap().unwrap();
            assert_eq!(nonce(&item), Some(expected));
            assert!(item.ack().unwrap());
        }
        assert_eq!(queue.ack_many(&[6, 8, 8, 99]).unwrap(), 2);
        assert_eq!(ids(&queue), [7, 9, 10]);
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.get(9).unwrap().as_deref(), Some(&payload(8)[..]));
        assert_eq!(queue.get(8).unwrap(), None);
    }
}

fn what_is_not_acked_is_there_after_a_close<T: Subject>() {
    for durability in POLICIES {
        let directory = scratch();
        let mut expected = Vec::new();
        for life in 0..4u64 {
            let queue = open::<T>(directory.path(), durability);
            assert_eq!(ids(&queue), expected, "{durability:?} life {life}");
            expected.push(queue.push(payload(life)).unwrap());
            expected.push(queue.push(vec![3; 300_000]).unwrap());
            let item = queue.reserve().unwrap().unwrap();
            assert_eq!(item.seq(), expected.remove(0));
            item.ack().unwrap();
            // One is in flight when the queue ends: it comes back.
            let held = queue.reserve().unwrap().unwrap();
            if life % 2 == 0 {
                queue.finish().unwrap();
            }
            drop(held);
        }
    }
}

fn a_full_queue_lets_a_push_in_when_something_is_acked<T: Subject>() {
    let directory = scratch();
    let queue = open::<T>(directory.path(), Durability::Group);
    let many: Vec<Vec<u8>> = (0..16).map(payload).collect();
    queue.push_many(&many).unwrap();
    assert!(matches!(queue.try_push(b"x"), Err(TryPushError::Full)));
    thread::scope(|scope| {
        let push = scope.spawn(|| queue.push(payload(99)).unwrap());
        while queue.stats().waiting_pushes == 0 {
            thread::yield_now();
        }
        queue.reserve().unwrap().unwrap().ack().unwrap();
        assert_eq!(push.join().unwrap(), 17);
    });
    assert_eq!(queue.len(), 16);
    if T::IS_ON_DISK {
        drop(queue);
        let store = T::open(directory.path()).unwrap();
        let queue = Builder::new(store).capacity(2).open().unwrap();
        assert_eq!(queue.len(), 16, "a store that holds more opens all the same");
        assert!(matches!(queue.try_push(b"x"), Err(TryPushError::Full)));
    }
}

fn many_producers_and_consumers_see_every_entry_once<T: Subject>() {
    const EACH: u64 = 100;
    let directory = scratch();
    let queue = open::<T>(directory.path(), Durability::Group);
    let (mut seen, most) = thread::scope(|scope| {
        let producers: Vec<_> = (0..4)
            .map(|producer| {
                let queue = &queue;
                scope.spawn(move || {
                    (0..EACH).map(|at| queue.push(payload(producer * 1000 + at)).unwrap()).max().unwrap()
                })
            })
            .collect();
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while let Some(item) = queue.reserve_timeout(Duration::from_mins(1)).unwrap() {
                        seen.push(nonce(&item).unwrap());
                        item.ack().unwrap();
                    }
                    seen
                })
            })
            .collect();
        let most = producers.into_iter().map(|producer| producer.join().unwrap()).max().unwrap();
        queue.close();
        (consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>(), most)
    });
    seen.sort_unstable();
    let expected: Vec<u64> =
        (0..4).flat_map(|producer| (0..EACH).map(move |at| producer * 1000 + at)).collect();
    assert_eq!(seen, expected);
    assert_eq!(most, 4 * EACH, "no id is skipped and none repeats");
    assert!(queue.is_empty());
}

fn another_store_does_not_take_the_directory<T: Subject>() {
    let directory = scratch();
    assert_eq!(open::<T>(directory.path(), Durability::Sync).push(b"x").unwrap(), 1);
    let refused = |name: &str, opened: Result<(), millpond::Failure>| {
        if name != T::NAME {
            assert_eq!(opened.unwrap_err().code(), ErrorCode::Invalid, "{name} on {}", T::NAME);
        }
    };
    for name in ["log", "redb", "sled", "rocksdb"] {
        if let Some(opened) = millpond_testkit::on_store!(name, opens(directory.path())) {
            refused(name, opened);
        }
    }
    assert_eq!(open::<T>(directory.path(), Durability::Sync).len(), 1);
}

fn opens<T: Subject>(directory: &Path) -> Result<(), millpond::Failure> {
    T::open(directory).map(drop)
}

mod on_all {
    use super::{
        a_full_queue_lets_a_push_in_when_something_is_acked, entries_come_in_order_and_are_gone_when_acked,
        many_producers_and_consumers_see_every_entry_once, tests_on_all_stores,
    };
    tests_on_all_stores! {
        entries_come_in_order_and_are_gone_when_acked,
        a_full_queue_lets_a_push_in_when_something_is_acked,
        many_producers_and_consumers_see_every_entry_once,
    }
}

mod on_disk {
    use super::{
        another_store_does_not_take_the_directory, tests_on_disk_stores,
        what_is_not_acked_is_there_after_a_close,
    };
    tests_on_disk_stores! {
        what_is_not_acked_is_there_after_a_close,
        another_store_does_not_take_the_directory,
    }
}
