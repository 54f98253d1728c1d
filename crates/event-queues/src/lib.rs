//! Event queues: one in memory, and one whose events survive the process.
//!
//! # In memory
//!
//! [`EventQueue`] holds any type and forgets it at exit.
//!
//! ```
//! use arch_event_queues::EventQueue;
//!
//! let queue = EventQueue::new();
//! queue.push("created").unwrap();
//! queue.push_front("urgent").unwrap();
//!
//! assert_eq!(queue.pop().unwrap(), Some("urgent"));
//! assert_eq!(queue.pop().unwrap(), Some("created"));
//! assert_eq!(queue.pop().unwrap(), None);
//! ```
//!
//! # Durable
//!
//! [`DurableEventQueue`] stores each event before it hands it out, and keeps it until it is acked. What was popped and
//! not acked is there again after a reopen.
//!
//! ```
//! use arch_event_queues::{DurableEventQueue, DurableEventQueueOptions};
//! use borsh::{BorshDeserialize, BorshSerialize};
//!
//! #[derive(Clone, Debug, PartialEq, BorshSerialize, BorshDeserialize)]
//! struct Transfer {
//!     amount: u64,
//! }
//!
//! let dir = tempfile::tempdir().unwrap();
//! let queue = DurableEventQueue::open(dir.path()).unwrap();
//! let queued = queue.push(Transfer { amount: 12 }).unwrap();
//!
//! let event = queue.pop().unwrap().expect("it was just queued");
//! assert_eq!((event.id, event.event.amount), (queued.id, 12));
//! drop(queue); // the process ends before the ack
//!
//! let options = DurableEventQueueOptions::lazy();
//! let queue = DurableEventQueue::<Transfer>::open_with_options(dir.path(), options).unwrap();
//! let again = queue.pop().unwrap().expect("it is replayed");
//! assert_eq!(again.id, event.id);
//! queue.ack(again.id).unwrap();
//! queue.ack(again.id).unwrap(); // once is enough, twice is fine
//! assert!(queue.is_empty().unwrap());
//! ```
//!
//! Delivery is at least once, so make the handler idempotent, or let it remember [`DurableEvent::id`]: an id is never
//! given to another event, not even after the queue ran empty and was opened again.
//!
//! The queue is [`millpond`]'s, with its durability, its group commit and its recovery. Which store `open` uses is said
//! at [`DefaultStore`].

#![forbid(unsafe_code)]

mod decoded;
mod default_store;
mod durable;
mod error;
mod events;
mod memory;
mod options;

pub use millpond;

pub use default_store::DefaultStore;
pub use durable::{DurableEvent, DurableEventQueue};
pub use error::{DurableEventQueueError, EventQueueError};
pub use events::Events;
pub use memory::EventQueue;
pub use options::DurableEventQueueOptions;
