//! Millpond: a durable, at-least-once FIFO queue inside your process.
//!
//! What [`Queue::push`] acknowledged is delivered until an acknowledged [`Reserved::ack`], whatever crashes.
//!
//! ```
//! use millpond::{Builder, Durability, store::MemStore};
//!
//! let queue = Builder::new(MemStore::new()).capacity(1024).durability(Durability::Group).open()?;
//! queue.push(b"index block")?;
//! if let Some(item) = queue.reserve()? {
//!     assert_eq!(&*item, b"index block");
//!     item.ack()?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - Ids ([`Reserved::seq`]) start at 1, ascend in push order and never repeat, also after a crash.
//! - Dropping a [`Reserved`] is a nack: the item is delivered again, in its own place.
//! - [`Durability`] says when a push or an ack is answered.
//! - [`typed`] queues hold values: `Queue<Job>` behind the feature `serde`, `borsh` or `rkyv`.
//! - The core is bytes in, bytes out, and depends on no runtime: threads, futures ([`Queue::push_async`],
//!   [`Queue::reserve_async`]) and event loops ([`Queue::port`]) share one commit pipeline. Feature `tokio` adds waits
//!   that end in time and a stream of items.

#![forbid(unsafe_code)]

mod ack;
mod batch;
mod builder;
mod code;
mod completion;
mod delivery;
mod durability;
mod envelope;
mod error;
mod futures;
mod group_commit;
mod in_place;
pub mod key;
pub mod limits;
mod meta;
mod port;
mod push;
mod queue;
mod reader;
mod reserve_future;
mod reserved;
mod room;
mod state;
pub mod store;
#[cfg(feature = "tokio")]
mod stream;
mod sync;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(feature = "tokio")]
mod tokio;
pub mod typed;

pub use builder::Builder;
pub use code::{ErrorCode, Outcome};
pub use completion::{Entry, Settled, Sink};
pub use delivery::InFlight;
pub use durability::Durability;
pub use error::{AckError, CloseError, Failure, OpenError, PushError, ReadError, ReserveError, TryPushError};
pub use futures::{AckFuture, AckManyFuture, PushFuture};
pub use port::{Port, Submitted};
pub use queue::{Iter, Queue, Stats};
pub use reserve_future::{ReserveFuture, ReserveManyFuture};
pub use reserved::{Handle, Reserved};
#[cfg(feature = "tokio")]
pub use stream::ItemStream;
#[cfg(feature = "tokio")]
pub use tokio::PushTimeoutFuture;
