//! Queues of values: what a codec may and may not do to a queue, and the codecs of this crate.
#![expect(clippy::unwrap_used, reason = "a failed test is a panic")]

mod codecs;
mod futures;
mod order;
mod pushing;
mod undecodable;
