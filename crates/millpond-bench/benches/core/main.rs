//! `cargo bench -p millpond-bench`: the core by criterion. Quick by default; `MILLPOND_BENCH_FULL=1` takes more samples
//! for longer. Files go below `MILLPOND_BENCH_DIR`, or `target/bench` of the checkout. `just bench-core` runs it with
//! every store, and writes and draws what it found.
//!
//! Every group on a disk measures the raw loop of write + fdatasync too, with as many records per sync as the point has
//! in flight: figures of one run are compared, and with the disk they were taken on.
#![expect(clippy::expect_used, reason = "a bench that cannot go on says so and ends")]

mod backend;
mod codecs;
mod place;
mod sweeps;

use std::time::Duration;

use criterion::Criterion;

use place::Place;

fn main() {
    let is_full = std::env::var_os("MILLPOND_BENCH_FULL").is_some();
    let (samples, warm_up, measured) = if is_full { (40, 1000, 5000) } else { (10, 200, 800) };
    let mut criterion = Criterion::default()
        .sample_size(samples)
        .warm_up_time(Duration::from_millis(warm_up))
        .measurement_time(Duration::from_millis(measured))
        .without_plots()
        .configure_from_args();
    let mut place = Place::new();
    sweeps::stores(&mut criterion, &mut place);
    sweeps::durability(&mut criterion, &mut place);
    sweeps::batches(&mut criterion, &mut place);
    sweeps::producers(&mut criterion, &mut place);
    codecs::codecs(&mut criterion);
    criterion.final_summary();
}
