//! What tests outside of this crate need of the log: its work step by step, so that one seed is one run, and its
//! decoders. No public API: everything here may change in any version.

use std::sync::Arc;

use super::disk::Disk;
use super::error::LogError;
use super::segment::Header;
use super::{LogOptions, LogStore, frame, open_record, spare};

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

/// What a file life begins with.
#[derive(Clone, Copy, Debug)]
pub struct FileLife {
    /// The queue's identity.
    pub identity: [u8; 16],
    /// The generation of this life.
    pub generation: u64,
    /// The number of the segment.
    pub number: u64,
    /// The size of the file in bytes.
    pub size: u64,
}

impl FileLife {
    fn header(&self) -> Header {
        let Self { identity, generation, number, size } = *self;
        Header { identity, generation, number, size, recycled: false }
    }

    /// The bytes of one copy of its header.
    pub fn encode(&self) -> Vec<u8> {
        self.header().encode().to_vec()
    }

    /// What its checksums begin with.
    pub fn seed(&self) -> u32 {
        self.header().seed()
    }
}

/// What the checksums of a file begin with, if its header is valid.
pub fn seed_of(file: &[u8]) -> Option<u32> {
    Header::decode(file).ok().flatten().map(|header| header.seed())
}

/// Kind, id and length of the payload of the frame at `offset` of a file, if a header of this life lies there.
pub fn frame_at(bytes: &[u8], seed: u32, offset: u64) -> Option<(u8, u64, u32)> {
    frame::parse(bytes, seed, offset).map(|head| (head.kind, head.id, head.len))
}

/// Whether exactly this entry lies whole at `offset`.
pub fn is_entry(bytes: &[u8], seed: u32, offset: u64, id: u64, value: &[u8]) -> bool {
    frame::parse(bytes, seed, offset).is_some_and(|head| {
        let found = bytes.get(frame::HEAD..frame::HEAD + value.len());
        (head.kind, head.id, head.len as usize) == (frame::ENTRY, id, value.len())
            && found == Some(value)
            && head.crc == frame::payload_crc(value)
    })
}

/// A frame with right checksums for this place in this life, whatever it says.
pub fn forge_frame(kind: u8, flags: u8, id: u64, payload: &[u8], seed: u32, offset: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = frame::begin(&mut bytes, kind, flags, id);
    bytes.extend_from_slice(payload);
    frame::finish(&mut bytes, start);
    frame::seal(&mut bytes, id, seed, offset);
    bytes
}

/// Gives an open record its magic and right checksum, whatever it says.
pub fn seal_record(record: &mut [u8], number: u64, seed: u32, offset: u64) {
    record[..8].copy_from_slice(b"MPONDOPN");
    open_record::seal(record, number, seed, offset);
}
