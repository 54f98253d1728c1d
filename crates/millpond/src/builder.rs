//! Opening a queue on a store.

use std::collections::{BTreeMap, VecDeque};

use crate::durability::Durability;
use crate::error::{Failure, OpenError};
use crate::key;
use crate::limits::{CODEC_NAME_BYTES_MAX, DAMAGE_ID_GAP, ID_MAX};
use crate::meta::{self, Meta, MetaError};
use crate::queue::Queue;
use crate::room::{Capacity, Load};
use crate::state::{Counters, Shared, State, Threads};
use crate::store::planted::{self, Fault};
use crate::store::{AnyStore, Store, Summary};
use crate::sync::{Arc, Condvar, Mutex};

/// The codec name of a queue that was opened without one: payloads are bytes.
const BYTES: &str = "bytes";

/// The capacity of a queue that was opened without one, in unacked entries.
const CAPACITY: u64 = 1024;

/// Settings of a queue.
pub struct Builder {
    store: Box<dyn AnyStore>,
    capacity: Capacity,
    durability: Durability,
    durable_acks: bool,
    codec: String,
}

impl Builder {
    /// A queue on `store`, with a capacity of 1,024 unacked entries and [`Durability::Sync`].
    pub fn new(store: impl Store + 'static) -> Self {
        Self {
            store: Box::new(store),
            capacity: Capacity { entries: CAPACITY, bytes: None },
            durability: Durability::default(),
            durable_acks: true,
            codec: BYTES.to_owned(),
        }
    }

    /// The largest number of unacked entries before pushes wait. At least 1. A store that holds more opens all the
    /// same.
    #[must_use]
    pub fn capacity(mut self, entries: u64) -> Self {
        self.capacity.entries = entries;
        self
    }

    /// The largest number of bytes that unacked entries may take before pushes wait, beside the limit of
    /// [`Builder::capacity`]; whichever is reached first. At least 1. Counted are the values as they are stored: a payload
    /// and one byte of envelope. A store that holds more opens all the same.
    ///
    /// A push that is larger than the whole limit (one payload, or a [`Queue::push_many`] together) is taken in when the
    /// queue is empty, nothing else being under way; else it waits until it is, and [`Queue::try_push`] says
    /// [`Full`](crate::TryPushError::Full). Pushes are served in order, so later ones wait behind it.
    ///
    /// With a limit, acks by id read the size of entries that were not delivered.
    #[must_use]
    pub fn capacity_bytes(mut self, bytes: u64) -> Self {
        self.capacity.bytes = Some(bytes);
        self
    }

    /// Whether acks are as durable as the policy says (the default) or ride along without an fsync of their own.
    ///
    /// # Durability
    /// With `false` an ack is answered when the store has applied it. It becomes durable with the next durable push,
    /// [`Queue::flush`] or clean end. A power cut before that (on stores that keep non-durable commits to themselves also a
    /// killed process) loses it, and the entry is delivered again. Pushes are not affected: what was pushed is never lost.
    #[must_use]
    pub fn durable_acks(mut self, durable: bool) -> Self {
        self.durable_acks = durable;
        self
    }

    /// When pushes and acks are answered.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The name of the codec that payloads are encoded with. It is kept with the queue; a queue that was written with
    /// another one is refused by name.
    #[must_use]
    pub fn codec(mut self, name: impl Into<String>) -> Self {
        self.codec = name.into();
        self
    }

    /// Opens the queue. Writes nothing: the first push does.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(self) -> Result<Queue, OpenError> {
        if self.capacity.entries == 0 || self.capacity.bytes == Some(0) {
            return Err(OpenError::ZeroCapacity);
        }
        let bytes = self.codec.len();
        if bytes == 0 || bytes > CODEC_NAME_BYTES_MAX {
            return Err(OpenError::CodecName { bytes, limit: CODEC_NAME_BYTES_MAX });
        }
        let failed = |error| OpenError::Store(Failure::of_store(&error, None));
        let record = self.store.get(&key::META_KEY).map_err(failed)?;
        let found = record.map(|bytes| Meta::decode(&bytes)).transpose().map_err(|error| match error {
            MetaError::Newer(found) => {
                OpenError::NewerFormat { found: found.into(), known: meta::FORMAT.into() }
            }
            MetaError::UnknownFlags(flags) => {
                OpenError::NewerFormat { found: flags, known: meta::FORMAT.into() }
            }
            MetaError::Invalid => OpenError::InvalidMeta,
        })?;
        if let Some(meta) = &found
            && meta.codec != self.codec
        {
            return Err(OpenError::CodecMismatch { stored: meta.codec.clone(), asked: self.codec });
        }
        let summary = self.store.summary().map_err(failed)?;
        let damaged = !self.store.recovery().damage.is_empty();
        let mut meta = found.unwrap_or(Meta { ceiling: 1, codec: self.codec, may_ignore: 0 });
        let next_id = next_id(&meta, &summary, damaged);
        // Ids below may have been given out, so none is left of the last lease: the first push takes a new one.
        meta.ceiling = next_id;

        let state = State {
            next_id,
            meta,
            leasing: false,
            leased: false,
            stored: summary.count,
            stored_bytes: summary.bytes,
            claimed: Load::default(),
            early: BTreeMap::new(),
            cursor: summary.first.unwrap_or(next_id),
            returned: BTreeMap::new(),
            flights: std::collections::HashMap::default(),
            in_flight: 0,
            outstanding: VecDeque::new(),
            next_generation: 1,
            line: VecDeque::new(),
            leading: false,
            leader: None,
            committer_elected: false,
            inline: 0,
            waiting: BTreeMap::new(),
            waiting_load: Load::default(),
            next_token: 1,
            ready_waiters: 0,
            ready_wakers: BTreeMap::new(),
            demands: Vec::new(),
            scans: VecDeque::new(),
            closed: false,
            finishing: false,
            finished: None,
            finish_ports: Vec::new(),
            poison: None,
            threads: Threads::default(),
            counters: Counters::default(),
        };
        let shared = Shared {
            store: self.store,
            durability: self.durability,
            ack_durability: if self.durable_acks { self.durability } else { Durability::None },
            capacity: self.capacity,
            state: Mutex::new(state),
            commit: Condvar::new(),
            read: Condvar::new(),
            ready: Condvar::new(),
            ended: Condvar::new(),
        };
        Ok(Queue::new(Arc::new(shared)))
    }
}

/// The first id this open gives out: above everything that may have been given out before.
fn next_id(meta: &Meta, summary: &Summary, damaged: bool) -> u64 {
    let above_stored = summary.last.map_or(1, |last| last.saturating_add(1));
    let ceiling = if planted::is(Fault::ReuseIdAfterDrain) { 1 } else { meta.ceiling };
    let next = ceiling.max(above_stored).max(1);
    let gap = if damaged { DAMAGE_ID_GAP } else { 0 };
    next.saturating_add(gap).min(ID_MAX + 1)
}
