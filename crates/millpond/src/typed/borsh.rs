//! The codec of the feature `borsh`.

use borsh::{BorshDeserialize, BorshSerialize};

use super::{Codec, CodecError};

/// Encodes whatever implements borsh's traits: one canonical encoding for each value, also read by other languages.
#[derive(Clone, Copy, Debug)]
pub enum Borsh {}

impl<T: BorshSerialize + BorshDeserialize> Codec<T> for Borsh {
    const NAME: &'static str = "borsh";

    fn encode(value: &T, into: &mut Vec<u8>) -> Result<(), CodecError> {
        borsh::to_writer(into, value).map_err(CodecError::new)
    }

    fn decode(bytes: &[u8]) -> Result<T, CodecError> {
        borsh::from_slice(bytes).map_err(CodecError::new)
    }
}
