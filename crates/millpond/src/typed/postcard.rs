//! The codec of the feature `serde`.

/// Encodes whatever implements serde's traits, in postcard's documented format (feature `serde`).
///
/// The format does not describe itself: what it reads depends on the type alone. Fields are told apart by their place,
/// so add variants at the end of an enum and give a changed struct a new variant or a new queue.
#[derive(Clone, Copy, Debug)]
pub enum Postcard {}

#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> super::Codec<T> for Postcard {
    const NAME: &'static str = "postcard";

    fn encode(value: &T, into: &mut Vec<u8>) -> Result<(), super::CodecError> {
        *into = postcard::to_extend(value, std::mem::take(into)).map_err(super::CodecError::new)?;
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<T, super::CodecError> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(super::CodecError::new(format_args!("{} bytes too many", rest.len()))),
            Err(error) => Err(super::CodecError::new(error)),
        }
    }
}
