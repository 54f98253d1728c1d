//! What tests outside of this crate need of the log: its work step by step, so that one seed is one run, and its
//! decoders. No public API: everything here may change in any version.

use std::sync::Arc;

use super::disk::Disk;
use super::error::LogError;
use super::{LogOptions, LogStore, frame, spare};

/// Opens a log that starts no thread: a commit that needs a file makes it, and everything else the thread would do
/// waits for [`work`]. No clock has a say in what happens.
///
/// # Errors
/// As [`LogStore::open_on`].
pub fn open_by_hand(disk: Arc<dyn Disk>, options: LogOptions) -> Result<LogStore, LogError> {
    LogStore::open_as(disk, options, true, &mut |_| ())
}

/// Does one job of the thread (making a spare, unlinking, letting drained segments go); false when there is none.
pub fn work(store: &LogStore) -> bool {
    spare::work(store.core())
}

/// Puts the next segment into use, whatever room the current one has.
///
/// # Errors
/// As a commit.
pub fn rotate(store: &LogStore) -> Result<(), LogError> {
    let core = store.core();
    let mut turn = core.turn.lock();
    core.check_writable()?;
    core.rotate(&mut turn, 0, false)
}

/// Kind, id and length of the payload of the frame at `offset` of a file, if a header of this life lies there.
pub fn frame_at(bytes: &[u8], seed: u32, offset: u64) -> Option<(u8, u64, u32)> {
    frame::parse(bytes, seed, offset).map(|head| (head.kind, head.id, head.len))
}
