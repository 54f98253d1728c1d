//! The codec of the feature `rkyv`.

use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

use super::{Codec, CodecError};

/// How an archive must lie in memory to be read where it is, in bytes.
const ALIGNMENT: usize = 16;

/// Encodes archives, which can be read without decoding them
/// ([`Queue::reserve_archived`](crate::Queue::reserve_archived)). Every archive is validated before it is read.
///
/// Types that must lie at multiples of more than 16 bytes are not supported.
#[derive(Clone, Copy, Debug)]
pub enum Rkyv {}

impl<T> Codec<T> for Rkyv
where
    T: Archive + for<'a> Serialize<HighSerializer<Vec<u8>, ArenaHandle<'a>, rancor::Error>>,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>>
        + Deserialize<T, HighDeserializer<rancor::Error>>,
{
    const NAME: &'static str = "rkyv";

    fn encode(value: &T, into: &mut Vec<u8>) -> Result<(), CodecError> {
        const { assert!(align_of::<T::Archived>() <= ALIGNMENT, "an alignment above 16 is not supported") };
        // The archive pads itself from the start of the buffer it is written into, so that must be its own start.
        let buffer = if into.is_empty() { std::mem::take(into) } else { Vec::new() };
        let archive =
            rkyv::api::high::to_bytes_in::<_, rancor::Error>(value, buffer).map_err(CodecError::new)?;
        if into.is_empty() {
            *into = archive;
        } else {
            into.extend_from_slice(&archive);
        }
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<T, CodecError> {
        if is_aligned(bytes) {
            return rkyv::from_bytes::<T, rancor::Error>(bytes).map_err(CodecError::new);
        }
        rkyv::from_bytes::<T, rancor::Error>(&aligned(bytes)).map_err(CodecError::new)
    }
}

/// Whether any archive at these bytes can be read where it is.
pub(super) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(ALIGNMENT)
}

/// The bytes in a buffer that is aligned.
pub(super) fn aligned(bytes: &[u8]) -> AlignedVec<ALIGNMENT> {
    let mut copy = AlignedVec::with_capacity(bytes.len());
    copy.extend_from_slice(bytes);
    copy
}
