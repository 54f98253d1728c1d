//! Archives that are read where they lie.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use rkyv::api::high::HighValidator;
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor;
use rkyv::util::AlignedVec;
use yoke::Yoke;

use super::rkyv::{aligned, is_aligned};
use super::{Codec, CodecError, Rkyv, Undecodable};
use crate::error::{ReadError, ReserveError};
use crate::queue::Queue;
use crate::reserved::Reserved;

/// A value in its archived form, validated once and read where it lies. Derefs to `T::Archived`.
///
/// The bytes are copied only when the store gave them at an address that does not suit the archive.
pub struct Archive<T: rkyv::Archive<Archived: 'static>> {
    archived: Yoke<&'static T::Archived, Arc<Aligned>>,
}

/// Bytes of an archive at an address that suits it.
enum Aligned {
    /// As the store gave them, moved up to the start of their buffer.
    InPlace(Vec<u8>),
    Copied(AlignedVec),
}

impl Aligned {
    /// What is left of `value` without its first `offset` bytes.
    fn new((mut value, offset): (Vec<u8>, usize)) -> Self {
        value.drain(..offset.min(value.len()));
        if is_aligned(&value) { Self::InPlace(value) } else { Self::Copied(aligned(&value)) }
    }
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InPlace(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

impl<T> Archive<T>
where
    T: rkyv::Archive<Archived: 'static>,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>>,
{
    /// Validates an entry's value from `offset` on; gives the bytes back when it is no archive of `T`.
    fn new(held: (Vec<u8>, usize)) -> Result<Self, (Arc<Aligned>, CodecError)> {
        let bytes = Arc::new(Aligned::new(held));
        Yoke::try_attach_to_cart(Arc::clone(&bytes), |bytes| {
            rkyv::access::<T::Archived, rancor::Error>(bytes)
        })
        .map(|archived| Self { archived })
        .map_err(|error| (bytes, CodecError::new(error)))
    }
}

impl<T: rkyv::Archive<Archived: 'static>> Deref for Archive<T> {
    type Target = T::Archived;

    fn deref(&self) -> &T::Archived {
        self.archived.get()
    }
}

impl<T: rkyv::Archive<Archived: fmt::Debug + 'static>> fmt::Debug for Archive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Archive").field(&**self).finish()
    }
}

/// Reading without decoding.
impl<T> Queue<T, Rkyv>
where
    Rkyv: Codec<T>,
    T: rkyv::Archive<Archived: 'static>,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>>,
{
    /// [`Queue::reserve`] that gives the archived form, validated and not decoded.
    ///
    /// # Errors
    /// As [`Queue::reserve`].
    pub fn reserve_archived(&self) -> Result<Option<Reserved<Archive<T>>>, ReserveError> {
        let item = self.take_one().map_err(ReserveError::Store)?;
        Ok(item.map(Reserved::archived).transpose()?)
    }

    /// [`Queue::reserve_timeout`] that gives the archived form, validated and not decoded.
    ///
    /// # Errors
    /// As [`Queue::reserve`].
    pub fn reserve_archived_timeout(
        &self,
        timeout: Duration,
    ) -> Result<Option<Reserved<Archive<T>>>, ReserveError> {
        let item = self.take_timeout(timeout)?;
        Ok(item.map(Reserved::archived).transpose()?)
    }

    /// [`Queue::get`] that gives the archived form, validated and not decoded.
    ///
    /// # Errors
    /// As [`Queue::get`].
    pub fn get_archived(&self, id: u64) -> Result<Option<Archive<T>>, ReadError> {
        let Some(held) = self.shared().read_value(id).map_err(ReadError::Store)? else {
            return Ok(None);
        };
        Archive::new(held).map(Some).map_err(|(bytes, reason)| {
            let shared = crate::sync::Arc::clone(self.shared());
            Undecodable::read(shared, id, (bytes.to_vec(), 0), <Rkyv as Codec<T>>::NAME, reason).into()
        })
    }
}

impl Reserved {
    /// The item with its payload as an archive, validated and not decoded.
    ///
    /// # Errors
    /// [`Undecodable`], which settles the item in its stead.
    pub fn archived<T>(self) -> Result<Reserved<Archive<T>>, Undecodable>
    where
        Rkyv: Codec<T>,
        T: rkyv::Archive<Archived: 'static>,
        T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>>,
    {
        let (delivery, held) = self.split();
        match Archive::new(held) {
            Ok(archive) => Ok(Reserved::join(delivery, archive)),
            Err((bytes, reason)) => {
                let name = <Rkyv as Codec<T>>::NAME;
                Err(Undecodable::delivered(delivery, (bytes.to_vec(), 0), name, reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_wherever_they_begin() {
        for offset in 0..40 {
            let value: Vec<u8> = (0..100).collect();
            let held = Aligned::new((value.clone(), offset));
            assert!(is_aligned(&held), "offset {offset}");
            assert_eq!(&*held, &value[offset..]);
        }
        assert_eq!(&*Aligned::new((vec![1], 5)), &[]);
    }
}
