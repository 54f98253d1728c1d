//! What the event queues do, in memory and on disk, eager and lazy.
#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

mod counting_store;
mod durable;
mod memory;
mod modes;
mod undecodable;
