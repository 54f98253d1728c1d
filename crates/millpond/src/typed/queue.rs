//! The queue of values.

use std::time::{Duration, Instant};

use super::{Codec, Entries, Undecodable};
use crate::durability::Durability;
use crate::error::{PushError, ReadError, ReserveError, TryPushError};
use crate::queue::{Queue, Row};
use crate::reserved::Reserved;
use crate::sync::Arc;

/// A queue of values.
impl<T, C: Codec<T>> Queue<T, C> {
    /// Appends a value and returns its id. Waits while the queue is full.
    ///
    /// # Durability
    /// As the queue's policy says; see [`Durability`].
    ///
    /// # Errors
    /// [`PushError::Encode`] when the codec cannot store the value; nothing happened then. Else as for bytes: when the
    /// outcome is [`Outcome::Unknown`](crate::Outcome::Unknown) the entry may be stored all the same.
    pub fn push(&self, value: &T) -> Result<u64, PushError> {
        self.push_with(value, None, None)
    }

    /// [`Queue::push`] with a policy of its own and a limit to the wait for room.
    ///
    /// # Errors
    /// As [`Queue::push`]; [`PushError::Timeout`] when there was no room in time.
    pub fn push_with(
        &self,
        value: &T,
        durability: Option<Durability>,
        timeout: Option<Duration>,
    ) -> Result<u64, PushError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.push_until(&encoded::<T, C>(value)?, durability, deadline)
    }

    /// Appends a value if there is room now.
    ///
    /// # Durability
    /// As [`Queue::push`].
    ///
    /// # Errors
    /// [`TryPushError::Full`] when there is no room; else as [`Queue::push`].
    pub fn try_push(&self, value: &T) -> Result<u64, TryPushError> {
        self.push_now(&encoded::<T, C>(value)?)
    }

    /// Appends values in one commit and returns their ids, which are consecutive. Waits until all fit.
    ///
    /// # Errors
    /// As [`Queue::push`], and nothing is stored when one value cannot be encoded; [`PushError::TooMany`] when there
    /// are more than the capacity.
    pub fn push_many(&self, values: &[T]) -> Result<Vec<u64>, PushError> {
        let mut row = Row::default();
        for value in values {
            row.add(|bytes| encode::<T, C>(value, bytes))?;
        }
        self.push_row(&row)
    }

    /// The lowest ready entry, or `None` when nothing is ready. Never waits.
    ///
    /// # Errors
    /// [`ReserveError::Decode`] when the codec rejects the entry's bytes: it was delivered, and the error settles it;
    /// the next call goes on behind it. [`ReserveError::Store`] when reading failed: the entry stays ready.
    pub fn reserve(&self) -> Result<Option<Reserved<T>>, ReserveError> {
        let item = self.take_one().map_err(ReserveError::Store)?;
        Ok(item.map(Reserved::decode::<T, C>).transpose()?)
    }

    /// [`Queue::reserve`] that waits for an entry up to `timeout`. `None` when the time is over, or when the queue is
    /// closed and nothing is ready.
    ///
    /// # Errors
    /// As [`Queue::reserve`].
    pub fn reserve_timeout(&self, timeout: Duration) -> Result<Option<Reserved<T>>, ReserveError> {
        let item = self.take_timeout(timeout)?;
        Ok(item.map(Reserved::decode::<T, C>).transpose()?)
    }

    /// Up to `max` ready entries, lowest first. Never waits. Those that the codec rejects stand in their places.
    ///
    /// # Errors
    /// [`ReserveError::Store`]; nothing was handed out.
    pub fn reserve_many(&self, max: usize) -> Result<Vec<Result<Reserved<T>, Undecodable>>, ReserveError> {
        let items = self.shared().take(max).map_err(ReserveError::Store)?;
        Ok(items.into_iter().map(Reserved::decode::<T, C>).collect())
    }

    /// The value of an unacked entry, without delivering it.
    ///
    /// # Errors
    /// [`ReadError::Decode`] when the codec rejects its bytes; else [`ReadError::Store`].
    pub fn get(&self, id: u64) -> Result<Option<T>, ReadError> {
        let Some((value, offset)) = self.shared().read_value(id).map_err(ReadError::Store)? else {
            return Ok(None);
        };
        match C::decode(value.get(offset..).unwrap_or(&[])) {
            Ok(decoded) => Ok(Some(decoded)),
            Err(reason) => {
                let shared = Arc::clone(self.shared());
                Err(Undecodable::read(shared, id, (value, offset), C::NAME, reason).into())
            }
        }
    }

    /// All unacked entries in id order, without delivering them. Entries that come or go meanwhile may be there or
    /// not. One that the codec rejects is an error in its place, and the next ones follow.
    pub fn iter(&self) -> Entries<T, C> {
        Entries::new(&self.bytes())
    }

    /// The same queue by its bytes, for moving entries whatever they hold. What is pushed there is not checked.
    pub fn bytes(&self) -> Queue {
        self.cast()
    }
}

impl<T, C: Codec<T>> IntoIterator for &Queue<T, C> {
    type Item = <Entries<T, C> as Iterator>::Item;
    type IntoIter = Entries<T, C>;

    fn into_iter(self) -> Entries<T, C> {
        self.iter()
    }
}

fn encode<T, C: Codec<T>>(value: &T, into: &mut Vec<u8>) -> Result<(), PushError> {
    C::encode(value, into).map_err(|reason| PushError::Encode { codec: C::NAME, reason })
}

pub(super) fn encoded<T, C: Codec<T>>(value: &T) -> Result<Vec<u8>, PushError> {
    let mut payload = Vec::new();
    encode::<T, C>(value, &mut payload)?;
    Ok(payload)
}

impl Reserved {
    /// The item with its payload decoded, as a queue of `T` in the codec `C` would have handed it out.
    ///
    /// # Errors
    /// [`Undecodable`], which settles the item in its stead.
    pub fn decode<T, C: Codec<T>>(self) -> Result<Reserved<T>, Undecodable> {
        match C::decode(&self) {
            Ok(value) => Ok(Reserved::join(self.split().0, value)),
            Err(reason) => {
                let (delivery, held) = self.split();
                Err(Undecodable::delivered(delivery, held, C::NAME, reason))
            }
        }
    }
}
