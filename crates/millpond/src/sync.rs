//! The only place that names a lock implementation.

pub(crate) use std::sync::Arc;

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
