//! Crashes of the log on the simulated disk. Every test prints what it tried and its seed; `MILLPOND_SEED` repeats it.
//!
//! `MILLPOND_CRASH` says how much: nothing is a taste within seconds, `slice` what every change must pass, `full` the
//! whole.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test is a panic; the figures are shown"
)]

mod again;
mod budget;
mod images;
mod io_errors;
mod long;
mod rot;
mod salvage;
mod short;
