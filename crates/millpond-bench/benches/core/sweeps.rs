//! Sweeps over stores, policies, sizes of a batch and producers. Payloads of 256 bytes.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use millpond::{Durability, Queue};
use millpond_bench::{PAYLOAD, timed};

use crate::backend::Backend;
use crate::place::Place;

/// The name of the raw loop in every group.
const RAW: &str = "raw write + fdatasync";
const PRODUCERS: [u64; 4] = [1, 4, 16, 64];
const BATCHES: [u64; 5] = [1, 16, 64, 256, 1024];

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> Group<'a> {
    let mut group = criterion.benchmark_group(name);
    // Samples of one length: what happens once a sample, as a full segment, weighs the same in each.
    group.sampling_mode(SamplingMode::Flat);
    group
}

fn push(queue: &Queue) {
    black_box(queue.push(PAYLOAD).expect("a push"));
}

/// Pushes of many threads.
fn pushes(group: &mut Group<'_>, name: &str, point: u64, queue: &Queue, producers: u64) {
    group.throughput(Throughput::Elements(1));
    group.bench_function(BenchmarkId::new(name, point), |bencher| {
        bencher.iter_custom(|pushes| timed(producers, pushes, || push(queue)));
    });
}

/// The raw loop, with `records` of the payload's size per sync.
fn raw(group: &mut Group<'_>, place: &mut Place, records: u64) {
    let record = PAYLOAD.repeat(usize::try_from(records).expect("64 bits"));
    let file = place.raw();
    group.throughput(Throughput::Elements(records));
    group.bench_function(BenchmarkId::new(RAW, records), |bencher| {
        bencher.iter(|| file.append(&record).expect("the raw loop"));
    });
}

/// Every store: without an fsync from one thread, a push and a whole life of an entry; durable pushes of 16 threads.
pub(crate) fn stores(criterion: &mut Criterion, place: &mut Place) {
    let mut pushing = group(criterion, "store push");
    for backend in Backend::ALL {
        let home = place.fresh();
        let queue = backend.open(home.path(), Durability::None);
        pushes(&mut pushing, backend.name(), 1, &queue, 1);
    }
    pushing.finish();

    let mut lives = group(criterion, "store push reserve ack");
    lives.throughput(Throughput::Elements(1));
    for backend in Backend::ALL {
        let home = place.fresh();
        let queue = backend.open(home.path(), Durability::None);
        lives.bench_function(BenchmarkId::new(backend.name(), 1), |bencher| {
            bencher.iter(|| {
                push(&queue);
                queue.reserve().expect("a reserve").expect("an entry").ack().expect("an ack")
            });
        });
    }
    lives.finish();

    let mut durable = group(criterion, "store durable");
    for backend in Backend::ALL {
        let home = place.fresh();
        let queue = backend.open(home.path(), Durability::Group);
        pushes(&mut durable, backend.name(), 16, &queue, 16);
    }
    raw(&mut durable, place, 16);
    durable.finish();
}

/// The log under each policy.
pub(crate) fn durability(criterion: &mut Criterion, place: &mut Place) {
    let mut group = group(criterion, "durability");
    for producers in [1, 16] {
        for durability in [Durability::None, Durability::Group, Durability::Sync] {
            let home = place.fresh();
            let queue = Backend::Log.open(home.path(), durability);
            pushes(&mut group, durability.as_str(), producers, &queue, producers);
        }
        raw(&mut group, place, producers);
    }
    group.finish();
}

/// Durable commits of many entries, from one thread.
pub(crate) fn batches(criterion: &mut Criterion, place: &mut Place) {
    let mut group = group(criterion, "batch");
    for size in BATCHES {
        let row = vec![PAYLOAD; usize::try_from(size).expect("64 bits")];
        for backend in Backend::ALL.iter().filter(|backend| **backend != Backend::Mem) {
            let home = place.fresh();
            let queue = backend.open(home.path(), Durability::Group);
            group.throughput(Throughput::Elements(size));
            group.bench_function(BenchmarkId::new(backend.name(), size), |bencher| {
                bencher.iter(|| queue.push_many(&row).expect("a push of many"));
            });
        }
        raw(&mut group, place, size);
    }
    group.finish();
}

/// Durable pushes of more and more threads.
pub(crate) fn producers(criterion: &mut Criterion, place: &mut Place) {
    let mut group = group(criterion, "producers");
    for producers in PRODUCERS {
        for backend in Backend::ALL {
            let home = place.fresh();
            let queue = backend.open(home.path(), Durability::Group);
            pushes(&mut group, backend.name(), producers, &queue, producers);
        }
        raw(&mut group, place, producers);
    }
    group.finish();
}
