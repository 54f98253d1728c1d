//! Codecs: what a value costs on its way in and on its way out, on the store in memory and without an fsync.

use std::hint::black_box;
use std::time::{Duration, Instant};

use borsh::{BorshDeserialize, BorshSerialize};
use criterion::{BenchmarkId, Criterion, Throughput};
use millpond::store::MemStore;
use millpond::typed::{Borsh, Codec, CodecError, Postcard, Rkyv};
use millpond::{Builder, Durability, Queue};
use millpond_bench::CAPACITY;
use rkyv::Archive;
use serde::{Deserialize, Serialize};

/// A value that takes about 256 bytes in a binary encoding: numbers, a text, and a list that has to be allocated.
#[derive(
    Archive, BorshDeserialize, BorshSerialize, Deserialize, Serialize, rkyv::Deserialize, rkyv::Serialize,
)]
struct Transfer {
    height: u64,
    from: [u8; 20],
    to: [u8; 20],
    memo: String,
    amounts: Vec<u64>,
}

impl Transfer {
    /// The same each time, with numbers of every length.
    fn sample() -> Self {
        let amount = |index: u32| 0x9E37_79B9_7F4A_7C15_u64.rotate_left(index * 7) >> (index * 3 % 50);
        Self {
            height: 871_234,
            from: [7; 20],
            to: [0xA5; 20],
            memo: "invoice 2026-11-30 for water delivered".to_owned(),
            amounts: (0..20).map(amount).collect(),
        }
    }
}

/// JSON, as a user's own codec.
enum Json {}

impl<T: Serialize + serde::de::DeserializeOwned> Codec<T> for Json {
    const NAME: &'static str = "json";

    fn encode(value: &T, into: &mut Vec<u8>) -> Result<(), CodecError> {
        serde_json::to_writer(into, value).map_err(CodecError::new)
    }

    fn decode(bytes: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(bytes).map_err(CodecError::new)
    }
}

fn open<C: Codec<Transfer>>() -> Queue<Transfer, C> {
    let builder = Builder::new(MemStore::new()).capacity(CAPACITY).durability(Durability::None);
    builder.open_typed_with().expect("the queue opens")
}

/// The bytes of a value in this encoding, which are its point in the group.
fn size<C: Codec<Transfer>>() -> usize {
    let mut bytes = Vec::new();
    C::encode(&Transfer::sample(), &mut bytes).expect("encodes");
    bytes.len()
}

/// Time of `calls` deliveries from a queue that was filled before: reserve, read a number of the value, ack.
fn deliveries<C: Codec<Transfer>>(calls: u64, deliver: impl Fn(&Queue<Transfer, C>) -> u64) -> Duration {
    let queue = open::<C>();
    let value = Transfer::sample();
    for _ in 0..calls {
        queue.push(&value).expect("a push");
    }
    let started = Instant::now();
    for _ in 0..calls {
        black_box(deliver(&queue));
    }
    started.elapsed()
}

fn decoded<C: Codec<Transfer>>(queue: &Queue<Transfer, C>) -> u64 {
    let item = queue.reserve().expect("a reserve").expect("an entry");
    let sum = item.amounts.iter().fold(item.height, |sum, amount| sum.wrapping_add(*amount));
    item.ack().expect("an ack");
    sum
}

fn archived(queue: &Queue<Transfer, Rkyv>) -> u64 {
    let item = queue.reserve_archived().expect("a reserve").expect("an entry");
    let height = item.height.to_native();
    let sum = item.amounts.iter().fold(height, |sum, amount| sum.wrapping_add(amount.to_native()));
    item.ack().expect("an ack");
    sum
}

pub(crate) fn codecs(criterion: &mut Criterion) {
    push(criterion);
    deliver(criterion);
}

fn push(criterion: &mut Criterion) {
    fn one<C: Codec<Transfer>>(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>) {
        group.bench_function(BenchmarkId::new(C::NAME, size::<C>()), |bencher| {
            let value = Transfer::sample();
            bencher.iter_custom(|calls| {
                let queue = open::<C>();
                let started = Instant::now();
                for _ in 0..calls {
                    black_box(queue.push(&value).expect("a push"));
                }
                started.elapsed()
            });
        });
    }
    let mut group = criterion.benchmark_group("codec push");
    group.throughput(Throughput::Elements(1));
    one::<Postcard>(&mut group);
    one::<Borsh>(&mut group);
    one::<Rkyv>(&mut group);
    one::<Json>(&mut group);
    group.finish();
}

fn deliver(criterion: &mut Criterion) {
    fn one<C: Codec<Transfer>>(
        group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
        name: &str,
        deliver: impl Fn(&Queue<Transfer, C>) -> u64,
    ) {
        group.bench_function(BenchmarkId::new(name, size::<C>()), |bencher| {
            bencher.iter_custom(|calls| deliveries::<C>(calls, &deliver));
        });
    }
    let mut group = criterion.benchmark_group("codec deliver");
    group.throughput(Throughput::Elements(1));
    one::<Postcard>(&mut group, "postcard", decoded);
    one::<Borsh>(&mut group, "borsh", decoded);
    one::<Rkyv>(&mut group, "rkyv", decoded);
    one::<Rkyv>(&mut group, "rkyv zero-copy", archived);
    one::<Json>(&mut group, "json", decoded);
    group.finish();
}
