//! What a queue does, on the store in memory, on one that fails on demand, and on a damaged log.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is a panic")]

mod acking;
mod capacity;
mod cases;
mod closing;
mod damage;
mod failures;
mod fault_store;
mod futures;
mod ids;
mod options;
mod order;
mod ports;
mod pushing;
mod races;
