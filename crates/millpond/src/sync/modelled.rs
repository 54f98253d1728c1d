//! The model checker's locks with the interface of `parking_lot`. Models have no clock: a wait with a deadline never times
//! out, so what a model shows does not lean on one.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Instant;

use super::checker;

pub(crate) struct Mutex<T>(checker::sync::Mutex<T>);

/// Empty only while a condition variable holds the guard.
pub(crate) struct MutexGuard<'a, T>(Option<checker::sync::MutexGuard<'a, T>>);

pub(crate) struct Condvar(checker::sync::Condvar);

/// A door that is opened once.
#[derive(Default)]
pub(crate) struct Latch {
    open: Mutex<bool>,
    opened: Condvar,
}

/// How a wait with a deadline ended.
pub(crate) struct WaitTimeoutResult(bool);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(checker::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Latch {
    pub(crate) fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }

    pub(crate) fn wait(&self) {
        let mut open = self.open.lock();
        while !*open {
            self.opened.wait(&mut open);
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(guard) => guard,
            None => unreachable!("a condition variable holds the guard"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(guard) => guard,
            None => unreachable!("a condition variable holds the guard"),
        }
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(checker::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.0.take() {
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(crate) fn wait_until<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        _deadline: Instant,
    ) -> WaitTimeoutResult {
        self.wait(guard);
        WaitTimeoutResult(false)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitTimeoutResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}
