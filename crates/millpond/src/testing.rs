//! Doors for Millpond's own tests and fuzz targets. No public API: everything here may change in any version.

pub use crate::store::log_testing::{frame_at, open_by_hand, rotate, work};
use crate::{envelope, meta};

/// Where the payload begins in a stored value.
///
/// # Errors
/// What is wrong with the envelope.
pub fn payload_offset(value: &[u8]) -> Result<usize, &'static str> {
    envelope::payload_offset(value)
}

/// The id ceiling and the codec of a meta record, if it is one this version reads.
pub fn decode_meta(bytes: &[u8]) -> Option<(u64, String)> {
    meta::Meta::decode(bytes).ok().map(|meta| (meta.ceiling, meta.codec))
}
