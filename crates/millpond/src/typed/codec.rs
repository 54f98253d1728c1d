//! What turns values into bytes and back.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Turns values of `T` into bytes and back. A codec is a type without values: it is named, not made.
///
/// ```
/// use millpond::store::MemStore;
/// use millpond::typed::{Codec, CodecError};
/// use millpond::{Builder, Queue};
///
/// /// A number as 4 bytes.
/// struct Fixed;
///
/// impl Codec<u32> for Fixed {
///     const NAME: &'static str = "fixed";
///
///     fn encode(value: &u32, into: &mut Vec<u8>) -> Result<(), CodecError> {
///         into.extend_from_slice(&value.to_le_bytes());
///         Ok(())
///     }
///
///     fn decode(bytes: &[u8]) -> Result<u32, CodecError> {
///         let bytes = bytes.try_into().map_err(CodecError::new)?;
///         Ok(u32::from_le_bytes(bytes))
///     }
/// }
///
/// let queue: Queue<u32, Fixed> = Builder::new(MemStore::new()).open_typed_with()?;
/// queue.push(&7)?;
/// assert_eq!(queue.reserve()?.as_deref(), Some(&7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not encode `{T}`",
    note = "each codec of this crate is behind a feature of its own: `serde`, `borsh`, `rkyv`"
)]
pub trait Codec<T> {
    /// The name that is kept with the queue, 1 to 64 bytes. Never use one name for two encodings.
    const NAME: &'static str;

    /// Appends the encoding of `value` to `into`. What an error leaves there is thrown away.
    ///
    /// # Errors
    /// [`CodecError`] for a value that [`Codec::decode`] would not give back; nothing is stored then.
    fn encode(value: &T, into: &mut Vec<u8>) -> Result<(), CodecError>;

    /// The value whose encoding is exactly `bytes`.
    ///
    /// # Errors
    /// [`CodecError`] for all other bytes. It must not panic on any.
    fn decode(bytes: &[u8]) -> Result<T, CodecError>;
}

/// Why a value could not be encoded, or bytes could not be decoded.
#[derive(Clone, Debug)]
pub struct CodecError(Arc<str>);

impl CodecError {
    /// A sentence for people. It goes into messages and logs, so leave the payload out of it.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string().into())
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for CodecError {}
