//! What a queue keeps in memory, and the rules that hold it together.
//!
//! LOCK ORDER: `Shared::state` before a ticket's slot or a lock of a store in memory. Nothing else is ever locked while
//! `state` is held, and `state` is never held across a call of a sink, of a waker, or of the store, but for `put` and
//! `remove` of [`Memory`](crate::store::Memory), which do no I/O and call nobody.
//!
//! INVARIANTS
//! - Every id below `next_id` was given out (or skipped for ever); ids are given out only below `ceiling`, which is
//!   durable.
//! - `stored` counts entries whose push was settled as done and whose delete was not; `claimed` counts slots of pushes
//!   under way. `stored + claimed <= capacity` unless the store was opened with more.
//!   `stored_bytes` is kept only when there is a byte limit.
//! - An entry is ready when its id is in `returned`, or not below `cursor`. Ids in `flights` are neither.
//! - No id at or above the lowest of `outstanding` is handed out, so delivery is in id order whatever order commits
//!   end in.
//! - At most one party leads: `leading` is true from its designation until it has designated the next.
//! - An entry whose ack is settled before its push was is in `early`, and the push counts without it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::task::Waker;
use std::time::Instant;

use crate::batch::{Batch, PartKind};
use crate::completion::{Completion, PortSink, Settlements};
use crate::durability::Durability;
use crate::error::{Failure, PushError};
use crate::limits::{ID_MAX, LEASE_IDS};
use crate::meta::Meta;
use crate::push::Ends;
use crate::room::{Capacity, Load};
use crate::store::AnyStore;
use crate::sync::{Arc, Condvar, JoinHandle, Mutex, ThreadId};

/// One queue: its store, its settings and its state.
pub(crate) struct Shared {
    pub(crate) store: Box<dyn AnyStore>,
    pub(crate) durability: Durability,
    /// The policy of acks: the queue's, or `None` when they need not be durable.
    pub(crate) ack_durability: Durability,
    pub(crate) capacity: Capacity,
    pub(crate) state: Mutex<State>,
    /// Wakes the commit thread.
    pub(crate) commit: Condvar,
    /// Wakes the reader thread.
    pub(crate) read: Condvar,
    /// Wakes threads that wait for an entry.
    pub(crate) ready: Condvar,
    /// Wakes threads that wait for the end.
    pub(crate) ended: Condvar,
}

/// Everything the lock guards.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no combination is a state machine"
)]
pub(crate) struct State {
    pub(crate) next_id: u64,
    pub(crate) meta: Meta,
    /// A lease is in the line or under way.
    pub(crate) leasing: bool,
    /// This queue has written a lease, so closing may shrink it.
    pub(crate) leased: bool,

    pub(crate) stored: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) claimed: Load,
    /// Ids that were acked between the moment readers saw them and the moment their push was settled, and the bytes of
    /// their values.
    pub(crate) early: BTreeMap<u64, u64>,

    pub(crate) cursor: u64,
    pub(crate) returned: BTreeMap<u64, u32>,
    pub(crate) flights: HashMap<u64, Flight, BuildHasherDefault<IdHasher>>,
    /// How many of `flights` were delivered.
    pub(crate) in_flight: u64,
    pub(crate) outstanding: VecDeque<(u64, u64)>,
    pub(crate) next_generation: u64,

    pub(crate) line: VecDeque<Batch>,
    pub(crate) leading: bool,
    /// The thread that makes the commit under way and tells of it.
    pub(crate) leader: Option<ThreadId>,
    pub(crate) committer_elected: bool,
    /// Commits on their callers' threads that have not been settled.
    pub(crate) inline: u32,

    pub(crate) waiting: BTreeMap<u64, Waiting>,
    /// What all of `waiting` asks for together.
    pub(crate) waiting_load: Load,
    pub(crate) next_token: u64,
    /// Threads that wait for an entry.
    pub(crate) ready_waiters: u32,
    /// Futures that wait for an entry, by token: first come, first woken.
    pub(crate) ready_wakers: BTreeMap<u64, Waker>,

    pub(crate) demands: Vec<Demand>,
    pub(crate) scans: VecDeque<Scan>,

    pub(crate) closed: bool,
    pub(crate) finishing: bool,
    pub(crate) finished: Option<Result<(), Failure>>,
    pub(crate) finish_ports: Vec<Arc<PortSink>>,
    pub(crate) poison: Option<Failure>,
    pub(crate) threads: Threads,
    pub(crate) counters: Counters,
}

/// An entry that is neither ready nor gone.
pub(crate) struct Flight {
    /// Which delivery this is; 0 for an entry that is being acked without having been delivered.
    pub(crate) generation: u64,
    /// How often it was delivered since open.
    pub(crate) deliveries: u32,
    /// Acks under way. While there is one the entry is neither ready nor nackable.
    pub(crate) acking: u32,
    /// One of these acks is by handle: it came first, so the removal is its own.
    pub(crate) by_handle: bool,
    /// Its handle was dropped while an ack was under way.
    pub(crate) orphaned: bool,
    /// Its push was not settled when it was acked by id, so that a look-up that finds nothing proves nothing.
    pub(crate) unsettled: bool,
    /// Bytes of its value, once it was read; 0 before.
    pub(crate) bytes: u64,
    pub(crate) since: Instant,
}

/// A push that waits for room or for ids.
pub(crate) struct Waiting {
    pub(crate) values: Vec<u8>,
    pub(crate) ends: Ends,
    pub(crate) durability: Durability,
    pub(crate) completion: Completion,
}

impl Waiting {
    /// What it asks for.
    pub(crate) fn load(&self) -> Load {
        Load::new(self.ends.len(), self.values.len())
    }
}

/// Items a port asked for and has not got. Below 0 for a moment when a withdrawal overtakes a delivery; the item that
/// is then given back evens it out.
pub(crate) struct Demand {
    pub(crate) port: Arc<PortSink>,
    pub(crate) wanted: i64,
}

/// A read that a port asked for.
pub(crate) struct Scan {
    pub(crate) port: Arc<PortSink>,
    pub(crate) token: u64,
    pub(crate) from: u64,
    pub(crate) max: usize,
}

/// The queue's own threads, started on first use.
#[derive(Default)]
pub(crate) struct Threads {
    pub(crate) committer: Option<JoinHandle<()>>,
    pub(crate) reader: Option<JoinHandle<()>>,
}

/// What happened since open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) pushed: u64,
    pub(crate) acked: u64,
    pub(crate) nacked: u64,
    pub(crate) delivered: u64,
    pub(crate) redelivered: u64,
    pub(crate) commits: u64,
    pub(crate) operations: u64,
}

impl Counters {
    /// A commit of one operation.
    pub(crate) fn count_commit(&mut self) {
        self.commits += 1;
        self.operations += 1;
    }
}

/// Hashes an id by one multiplication: ids are not chosen by an adversary and mostly consecutive.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The golden ratio in 64 bits (Fibonacci hashing), folded so that the low bits depend on the high ones.
        let mixed = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

impl State {
    /// Ids below this are settled as far as their push goes.
    pub(crate) fn visible(&self) -> u64 {
        self.outstanding.front().map_or(self.next_id, |&(first, _)| first)
    }

    /// Whether a walk may find a ready entry.
    pub(crate) fn may_be_ready(&self) -> bool {
        !self.returned.is_empty() || self.cursor < self.visible()
    }

    /// Whether anybody waits for an entry.
    pub(crate) fn is_awaited(&self) -> bool {
        self.ready_waiters > 0 || !self.demands.is_empty() || !self.ready_wakers.is_empty()
    }

    pub(crate) fn ready_len(&self) -> u64 {
        self.stored.saturating_sub(self.in_flight)
    }

    /// Whether the push of `id` is under way.
    pub(crate) fn is_outstanding(&self, id: u64) -> bool {
        self.outstanding.iter().any(|&(first, last)| (first..=last).contains(&id))
    }

    /// What of these ids was acked before their push was settled. Asked once, when it is.
    pub(crate) fn take_early(&mut self, ids: Range<u64>) -> Load {
        if self.early.is_empty() {
            return Load::default();
        }
        let early: Vec<(u64, u64)> = self.early.range(ids).map(|(&id, &bytes)| (id, bytes)).collect();
        let mut load = Load::default();
        for (id, bytes) in early {
            self.early.remove(&id);
            load.add(Load { entries: 1, bytes });
        }
        load
    }

    /// Intake is closed and no push is under way: what is ready now is all that will ever be.
    pub(crate) fn has_run_dry(&self) -> bool {
        self.closed && self.outstanding.is_empty() && self.waiting.is_empty() && !self.may_be_ready()
    }

    /// How many ids can be given out now.
    pub(crate) fn ids_left(&self) -> u64 {
        self.meta.ceiling.saturating_sub(self.next_id)
    }

    /// Gives out ids and their slots. The caller has checked both.
    pub(crate) fn claim(&mut self, load: Load) -> u64 {
        let (first, count) = (self.next_id, load.entries);
        self.next_id += count;
        self.claimed.add(load);
        self.outstanding.push_back((first, first + count - 1));
        first
    }

    /// Takes back what `claim` gave out, when the push is settled either way. Ids are not reused.
    pub(crate) fn unclaim(&mut self, first: u64, load: Load) {
        self.claimed.remove(load);
        if let Some(place) = self.outstanding.iter().position(|&(start, _)| start == first) {
            self.outstanding.remove(place);
        }
    }

    /// Puts an extension of the lease in the line, for `count` ids at least, if there is none yet.
    ///
    /// ORDER: the lease is a durable commit of its own, and `meta.ceiling` moves only when it has succeeded.
    pub(crate) fn extend_lease(&mut self, count: u64) {
        let limit = ID_MAX + 1;
        if self.leasing || self.meta.ceiling >= limit {
            return;
        }
        let span = LEASE_IDS.max(count.saturating_mul(2));
        let ceiling = self.next_id.max(self.meta.ceiling).saturating_add(span).min(limit);
        let meta = Meta { ceiling, ..self.meta.clone() };
        self.leasing = true;
        self.line.push_back(Batch {
            durable: true,
            sealed: true,
            ceiling: Some(ceiling),
            meta: Some(meta.encode()),
            ..Batch::default()
        });
    }

    /// Adds a push, whose ids are claimed, to the line.
    pub(crate) fn enqueue_push(
        &mut self,
        first: u64,
        values: &[u8],
        ends: &[usize],
        durability: Durability,
        completion: &Completion,
        whole: bool,
    ) {
        let alone = durability == Durability::Sync;
        if alone && !whole && ends.len() > 1 {
            let mut start = 0;
            for (offset, (&end, id)) in ends.iter().zip(first..).enumerate() {
                if let Some(value) = values.get(start..end) {
                    let completion = completion.at(offset as u64);
                    // ORDER: `outstanding` holds one run per part, so that each is settled by itself.
                    self.split_outstanding(id);
                    self.enqueue_push(id, value, &[value.len()], durability, &completion, true);
                }
                start = end;
            }
            return;
        }
        let Some(batch) = Batch::open(&mut self.line, values.len(), alone) else { return };
        let base = batch.values.len();
        batch.durable |= durability != Durability::None;
        batch.values.extend_from_slice(values);
        batch.puts.extend(ends.iter().zip(first..).map(|(&end, id)| (id, base + end)));
        let count = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        let bytes = values.len() as u64;
        batch.add_part(completion.clone(), PartKind::Push { first, count, bytes });
    }

    /// Makes `id` the start of a run of its own in `outstanding`.
    fn split_outstanding(&mut self, id: u64) {
        if let Some(place) = self.outstanding.iter().position(|&(first, last)| first < id && id <= last)
            && let Some(run) = self.outstanding.get_mut(place)
        {
            let last = run.1;
            run.1 = id - 1;
            self.outstanding.insert(place + 1, (id, last));
        }
    }

    /// Moves pushes that waited into the line, first come first served, while there is room and ids.
    pub(crate) fn grant(&mut self, capacity: Capacity, settlements: &mut Settlements) {
        while let Some(entry) = self.waiting.first_entry() {
            let load = Load::new(entry.get().ends.len(), entry.get().values.len());
            let count = load.entries;
            let mut held = Load { entries: self.stored, bytes: self.stored_bytes };
            held.add(self.claimed);
            if !capacity.admits(held, load) {
                return;
            }
            if self.next_id.saturating_add(count) > ID_MAX + 1 {
                let waiting = entry.remove();
                self.waiting_load.remove(waiting.load());
                let refusal = Failure::from(PushError::IdsExhausted);
                settlements.push(waiting.completion, u32::try_from(count).unwrap_or(u32::MAX), Err(refusal));
                continue;
            }
            if self.meta.ceiling.saturating_sub(self.next_id) < count {
                self.extend_lease(count);
                return;
            }
            let waiting = entry.remove();
            self.waiting_load.remove(waiting.load());
            let first = self.claim(load);
            let Waiting { values, ends, durability, completion } = waiting;
            self.enqueue_push(first, &values, &ends, durability, &completion, true);
        }
        // Ahead of use: half of a lease is left when the next one is asked for.
        if self.leased && self.ids_left() < LEASE_IDS / 2 {
            self.extend_lease(0);
        }
    }

    /// Refuses everything that waits, for room or for ids.
    pub(crate) fn refuse_waiting(&mut self, failure: &Failure, settlements: &mut Settlements) {
        self.refuse_from(0, failure, settlements);
    }

    /// Stops intake: refuses what waits for room. A push that has room and only waits for the lease under way was
    /// taken in; it goes its way.
    pub(crate) fn stop_intake(&mut self, capacity: Capacity, settlements: &mut Settlements) {
        self.closed = true;
        let mut held = self.held();
        let first = self.waiting.iter().find(|(_, waiting)| {
            let load = Load::new(waiting.ends.len(), waiting.values.len());
            let has_room = self.leasing && capacity.admits(held, load);
            held.add(load);
            !has_room
        });
        // First come, first served: behind one that is refused nobody passes.
        let first = first.map_or(self.next_token, |(token, _)| *token);
        self.refuse_from(first, &PushError::Closed.into(), settlements);
    }

    fn refuse_from(&mut self, first: u64, failure: &Failure, settlements: &mut Settlements) {
        for (_, waiting) in self.waiting.split_off(&first) {
            self.waiting_load.remove(waiting.load());
            let count = u32::try_from(waiting.ends.len()).unwrap_or(u32::MAX);
            settlements.push(waiting.completion, count, Err(failure.clone()));
        }
    }

    /// Why nothing can be written, if so.
    pub(crate) fn write_refusal(&self) -> Option<Failure> {
        if self.finishing {
            return Some(PushError::Closed.into());
        }
        self.poison.clone()
    }
}
