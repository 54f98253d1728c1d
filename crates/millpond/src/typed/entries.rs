//! The walk over the values of a queue.

use std::fmt;
use std::marker::PhantomData;

use super::{Codec, Undecodable};
use crate::completion::Entry;
use crate::error::ReadError;
use crate::queue::{Iter, Queue};
use crate::sync::Arc;

/// Unacked entries of a typed queue in id order; see [`Queue::iter`].
pub struct Entries<T, C> {
    entries: Iter,
    of: PhantomData<fn() -> (T, C)>,
}

impl<T, C> Entries<T, C> {
    pub(super) fn new(bytes: &Queue) -> Self {
        Self { entries: bytes.iter(), of: PhantomData }
    }
}

impl<T, C: Codec<T>> Iterator for Entries<T, C> {
    type Item = Result<Entry<T>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Entry { id, payload } = match self.entries.next()? {
            Ok(entry) => entry,
            Err(error) => return Some(Err(error)),
        };
        Some(match C::decode(&payload) {
            Ok(value) => Ok(Entry { id, payload: value }),
            Err(reason) => {
                let shared = Arc::clone(self.entries.shared());
                Err(Undecodable::read(shared, id, (payload, 0), C::NAME, reason).into())
            }
        })
    }
}

impl<T, C> fmt::Debug for Entries<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entries").field(&self.entries).finish()
    }
}
