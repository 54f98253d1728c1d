//! Queues of values instead of bytes.
//!
//! A [`Codec`] turns values into the bytes that the core stores, and back. Its name is kept with the queue, and a queue
//! that was written with another codec is refused by name
//! ([`OpenError::CodecMismatch`](crate::OpenError::CodecMismatch)).
//!
//! | open with | feature | codec | values must be |
//! |---|---|---|---|
//! | `Builder::open_typed` | `serde` | [`Postcard`] | `serde::Serialize`, `serde::de::DeserializeOwned` |
//! | `Builder::open_borsh` | `borsh` | `Borsh` | `borsh::BorshSerialize`, `borsh::BorshDeserialize` |
//! | `Builder::open_rkyv` | `rkyv` | `Rkyv` | `rkyv::Archive`, `rkyv::Serialize`, and validated when read |
//! | [`Builder::open_typed_with`](crate::Builder::open_typed_with) | none | your own | whatever it asks for |
//!
//! An entry whose bytes the codec rejects is delivered as an error that can be settled ([`Undecodable`]). It is neither
//! lost nor in the way of the entries behind it.

#[cfg(feature = "rkyv")]
mod archive;
#[cfg(feature = "borsh")]
mod borsh;
mod codec;
mod entries;
mod futures;
mod open;
mod payload;
mod postcard;
mod queue;
#[cfg(feature = "rkyv")]
mod rkyv;
#[cfg(feature = "tokio")]
mod tokio;
mod undecodable;

#[cfg(feature = "rkyv")]
pub use self::archive::Archive;
#[cfg(feature = "borsh")]
pub use self::borsh::Borsh;
pub use self::codec::{Codec, CodecError};
pub use self::entries::Entries;
pub use self::futures::{ReserveValueFuture, ReserveValuesFuture};
pub use self::payload::Payload;
pub use self::postcard::Postcard;
#[cfg(feature = "rkyv")]
pub use self::rkyv::Rkyv;
#[cfg(feature = "tokio")]
pub use self::tokio::ValueStream;
pub use self::undecodable::Undecodable;
