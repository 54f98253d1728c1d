//! Every limit of the core, in one place.

/// The largest payload of one entry, in bytes (512 MiB). Asserted before an id or a slot is used.
pub const PAYLOAD_BYTES_MAX: usize = 512 << 20;

/// The largest id: the largest integer a JavaScript number holds exactly (2^53 - 1).
pub const ID_MAX: u64 = (1 << 53) - 1;

/// How many ids one lease covers at least.
pub const LEASE_IDS: u64 = 1 << 20;

/// How far ids jump after reported damage, so that no id of a lost entry comes again (2^32).
pub const DAMAGE_ID_GAP: u64 = 1 << 32;

/// How many payload bytes may wait for room in a full queue (256 MiB); one waiting push is always accepted.
pub const WAITING_BYTES_MAX: usize = 256 << 20;

/// How many bytes of values one shared commit gathers at most (8 MiB), unless a single submission is larger.
pub(crate) const BATCH_BYTES_MAX: usize = 8 << 20;

/// How many entries the reader thread hands over in one sweep at most.
pub(crate) const SWEEP_ENTRIES_MAX: usize = 1024;

/// How many payload bytes the reader thread hands over in one sweep at most (1 MiB), unless one entry is larger.
pub(crate) const SWEEP_BYTES_MAX: usize = 1 << 20;

/// The longest codec name, in bytes.
pub const CODEC_NAME_BYTES_MAX: usize = 64;
