//! The only place that names a lock or thread implementation: `parking_lot` and the standard library's, or with
//! `--cfg loom` the ones of the model checker, which tries every interleaving.

#[cfg(not(loom))]
mod latch;
#[cfg(loom)]
mod modelled;

pub(crate) use std::sync::Arc;

#[cfg(not(loom))]
pub(crate) use latch::Latch;
#[cfg(not(loom))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::thread::{
    Builder as ThreadBuilder, JoinHandle, ThreadId, current as current_thread, yield_now,
};

#[cfg(loom)]
pub(crate) use loom::thread::{
    Builder as ThreadBuilder, JoinHandle, ThreadId, current as current_thread, yield_now,
};
#[cfg(loom)]
pub(crate) use modelled::{Condvar, Latch, Mutex, MutexGuard};
