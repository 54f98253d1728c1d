//! The only place that names a lock or thread implementation: `parking_lot` and the standard library's, or with
//! `--cfg loom` the ones of a model checker: loom, which tries every interleaving, or with `--cfg shuttle` besides,
//! shuttle, which tries interleavings at random and so can take more threads.

#[cfg(not(loom))]
mod latch;
#[cfg(loom)]
mod modelled;

#[cfg(all(loom, not(shuttle)))]
use loom as checker;
#[cfg(shuttle)]
use shuttle as checker;
pub(crate) use std::sync::Arc;

#[cfg(not(loom))]
pub(crate) use latch::Latch;
#[cfg(not(loom))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::thread::{Builder as ThreadBuilder, JoinHandle, ThreadId, current as current_thread};

#[cfg(loom)]
pub(crate) use checker::thread::{Builder as ThreadBuilder, JoinHandle, ThreadId, current as current_thread};
#[cfg(loom)]
pub(crate) use modelled::{Condvar, Latch, Mutex, MutexGuard};
