//! The only place that names a lock implementation.

pub(crate) use std::sync::Arc;

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

pub(crate) use std::thread::{Builder as ThreadBuilder, JoinHandle, ThreadId, current as current_thread};
