//! A disk in memory that keeps apart what is durable from what is only written, and says what a power cut may leave.
//!
//! It is what [`Disk`](millpond::store::Disk) asks for, with the assumptions of `docs/format.md`: a sector of 512 bytes
//! is old or new, a rename is never seen half done, and after a failed sync the cache shows what the disk does not
//! hold. Everything else that a crash can do to unsynced bytes, sizes and names it does.

mod content;
mod disk;
mod fault;
mod image;
mod medium;

pub use disk::{Call, SimDisk};
pub use fault::{Fault, Kind};
pub use image::{COMBINATIONS, Images};
pub use medium::Medium;
