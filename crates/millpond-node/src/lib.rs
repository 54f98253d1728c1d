//! The Node-API addon: argument conversion, completions to the event loop, error objects. No queue logic, no policy.
//!
//! Nothing waits in libuv's thread pool: opening runs on a thread of its own, everything else is answered by the
//! queue's threads through one weak thread-safe function per queue, with one call per commit or sweep.

#![deny(unsafe_code)]

mod binding;
mod event;
mod failure;
mod marshal;
mod number;
mod options;
mod queue;
mod report;
