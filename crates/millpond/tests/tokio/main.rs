//! The queue under tokio: waits that end in time, futures that are dropped, a pool too small for blocking calls.
#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_core::Stream;
use millpond::store::{LogStore, MemStore};
use millpond::{Builder, Durability, ErrorCode, PushError, Queue};
use tokio::runtime::{Builder as RuntimeBuilder, Runtime};
use tokio::{select, task, time};

fn runtime() -> Runtime {
    RuntimeBuilder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .max_blocking_threads(2)
        .build()
        .unwrap()
}

fn queue(capacity: u64) -> Queue {
    Builder::new(MemStore::new()).capacity(capacity).durability(Durability::Group).open().unwrap()
}

/// Threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn o_29_blocked_producers_do_not_choke_the_consumer() {
    runtime().block_on(async {
        let queue = queue(1);
        queue.push_async(b"first").await.unwrap();
        let before = threads();
        // Both threads of the pool are taken, so nothing that needs one would go on.
        let blocked: Vec<_> =
            (0..2).map(|_| task::spawn_blocking(|| std::thread::sleep(Duration::from_secs(2)))).collect();
        let mut pushes = Vec::new();
        for n in 0..64u8 {
            let push = queue.push_async([n]);
            pushes.push(task::spawn(push));
        }
        while queue.stats().waiting_pushes < 64 {
            task::yield_now().await;
        }
        assert!(threads() <= before + 4, "a waiting push is a list entry, not a thread");
        let started = Instant::now();
        for n in 0..=64u8 {
            let item = queue.reserve_async().await.unwrap().unwrap();
            let expected: &[u8] = if n == 0 { b"first" } else { &[n - 1] };
            assert_eq!(&*item, expected, "in order of call");
            assert!(item.ack_async().await.unwrap());
        }
        for push in pushes {
            push.await.unwrap().unwrap();
        }
        assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
        drop(blocked);
    });
}

#[test]
fn o_20_close_ends_every_wait() {
    runtime().block_on(async {
        let (empty, full) = (queue(2), queue(2));
        full.push_async(b"a").await.unwrap();
        full.push_async(b"b").await.unwrap();
        let reserves: Vec<_> = (0..3).map(|_| task::spawn(empty.reserve_async())).collect();
        let pushes: Vec<_> = (0..50).map(|_| task::spawn(full.push_async(b"x"))).collect();
        time::sleep(Duration::from_millis(20)).await;
        let started = Instant::now();
        empty.close();
        full.close();
        for reserve in reserves {
            assert!(reserve.await.unwrap().unwrap().is_none());
        }
        for push in pushes {
            assert!(matches!(push.await.unwrap(), Err(PushError::Closed)));
        }
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(full.len(), 2);
        assert!(empty.reserve_async().await.unwrap().is_none());
        assert_eq!(empty.push_async(b"late").await.unwrap_err().code(), ErrorCode::Closed);
    });
}

/// Small reproducible randomness.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn o_21_a_receive_that_is_given_up_swallows_nothing() {
    let seed = std::env::var("MILLPOND_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_0021);
    println!("seed {seed}");
    runtime().block_on(async {
        // The rounds of the case are mostly waiting, so they are shared by queues side by side.
        let queues: Vec<_> =
            (0..20).map(|n| task::spawn(give_up_rounds(Random(seed ^ (n << 32)), 1_000))).collect();
        for queue in queues {
            queue.await.unwrap();
        }
    });
}

/// Pushes at a random moment and gives up the wait for it at another, both within 2 ms: by dropping the future, or by
/// the limit of the call.
async fn give_up_rounds(mut random: Random, rounds: u64) {
    let queue = queue(1 << 20);
    let (mut pushed, mut taken) = (0u64, BTreeSet::new());
    for _ in 0..rounds {
        let (moment, limit) = (random.below(2000), random.below(2000));
        let push = async {
            time::sleep(Duration::from_micros(moment)).await;
            queue.push_async(b"x").await.unwrap();
        };
        let receive = async {
            if limit % 2 == 0 {
                return queue.reserve_timeout_async(Duration::from_micros(limit)).await.unwrap();
            }
            select! {
                biased;
                () = time::sleep(Duration::from_micros(limit)) => None,
                item = queue.reserve_async() => item.unwrap(),
            }
        };
        let ((), item) = tokio::join!(push, receive);
        pushed += 1;
        if let Some(item) = item {
            assert!(taken.insert(item.seq()));
            assert!(item.ack_async().await.unwrap());
        }
        let stats = queue.stats();
        assert_eq!((stats.in_flight, stats.length - stats.in_flight), (0, stats.ready));
    }
    while let Some(item) = queue.reserve_timeout_async(Duration::from_millis(1)).await.unwrap() {
        assert!(taken.insert(item.seq()), "delivered twice");
        assert_eq!(item.deliveries(), 1, "nobody saw a delivery before");
        item.ack_async().await.unwrap();
    }
    assert_eq!((taken.len() as u64, queue.len()), (pushed, 0));
}

#[test]
fn timeouts_end_waits_and_leave_no_trace() {
    runtime().block_on(async {
        let queue = queue(1);
        let started = Instant::now();
        let none = queue.reserve_timeout_async(Duration::from_millis(300)).await.unwrap();
        assert!(none.is_none());
        let elapsed = started.elapsed();
        assert!((Duration::from_millis(280)..Duration::from_secs(3)).contains(&elapsed), "{elapsed:?}");
        queue.push_timeout_async(b"a", None, Duration::from_secs(20)).await.unwrap();
        let push = queue.push_timeout_async(b"b", None, Duration::from_millis(20));
        assert!(matches!(push.await, Err(PushError::Timeout)));
        assert_eq!((queue.len(), queue.stats().waiting_pushes), (1, 0));
        let (push, item) = tokio::join!(
            queue.push_timeout_async(b"c", Some(Durability::Sync), Duration::from_secs(20)),
            async {
                let item = queue.reserve_async().await.unwrap().unwrap();
                item.ack_async().await.unwrap();
                item
            }
        );
        assert_eq!((&*item, push.unwrap() > item.seq()), (&b"a"[..], true));
    });
}

#[test]
fn a_stream_yields_what_comes_and_ends_with_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let store = LogStore::open(folder.path()).unwrap();
    let queue = Builder::new(store).durability(Durability::Group).open().unwrap();
    runtime().block_on(async {
        let producer = queue.clone();
        let pushes = task::spawn(async move {
            for n in 0..200u8 {
                producer.push_async([n]).await.unwrap();
            }
            producer.close();
        });
        let mut stream = pin!(queue.stream());
        let mut next = 0;
        while let Some(item) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
            let item = item.unwrap();
            assert_eq!(&*item, [next]);
            next += 1;
            item.ack_async().await.unwrap();
        }
        assert_eq!(next, 200);
        pushes.await.unwrap();
    });
    assert!(queue.is_empty());
}

#[test]
fn futures_can_move_between_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let queue = queue(2);
    let stream = is_send(queue.stream());
    let boxed: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(queue.reserve_async());
    drop(boxed);
    drop(is_send(queue.reserve_many_async(2)));
    drop(is_send(queue.reserve_timeout_async(Duration::ZERO)));
    drop(is_send(queue.push_timeout_async(b"", None, Duration::ZERO)));
    drop(stream);
}
