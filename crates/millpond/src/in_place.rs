//! Operations without durability on entries in memory: one step on their callers' threads, under the lock.
//!
//! Clause 8 of [`store`](crate::store) makes the call of the store as good as a change of the state, so such an operation is
//! never seen under way and needs no batch, no ticket and no commit thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::smallvec;

use crate::batch::{Batch, PartKind};
use crate::completion::Settlements;
use crate::error::Failure;
use crate::group_commit::{panic_failure, panicked};
use crate::reserved::Handle;
use crate::room::Load;
use crate::state::{Shared, State};
use crate::store::Memory;
use crate::sync::MutexGuard;

impl Shared {
    /// A push without durability into memory: id, slot, value and settlement in one step.
    ///
    /// The lock is held across the call of the store, which clause 8 makes as good as a change of `state`; so the push
    /// is never seen under way.
    pub(crate) fn push_in_place(
        &self,
        mut state: MutexGuard<'_, State>,
        memory: &dyn Memory,
        value: Vec<u8>,
    ) -> Result<u64, Failure> {
        let (id, bytes) = (state.next_id, value.len() as u64);
        let failure = match catch_unwind(AssertUnwindSafe(|| memory.put(id, value))) {
            Ok(()) => {
                state.next_id += 1;
                state.stored += 1;
                state.stored_bytes += bytes;
                state.counters.count_commit();
                state.counters.pushed += 1;
                if !state.lease_runs_low() && !state.is_awaited() {
                    return Ok(id);
                }
                None
            }
            Err(_) => Some(Batch::of(PartKind::Push {
                first: state.claim(Load { entries: 1, bytes }),
                count: 1,
                bytes,
            })),
        };
        self.end_in_place(state, failure).map(|()| id)
    }

    /// An ack without durability of an entry in memory: one step, like [`Shared::push_in_place`]. `None`: the handle no
    /// longer holds its item.
    pub(crate) fn ack_in_place(
        &self,
        mut state: MutexGuard<'_, State>,
        memory: &dyn Memory,
        handle: Handle,
    ) -> Option<Result<u64, Failure>> {
        if !state.mark_acking(handle) {
            return None;
        }
        let taken_out = catch_unwind(AssertUnwindSafe(|| memory.remove(handle.id)));
        let (failure, removed) = if let Ok(value) = taken_out {
            state.remove(handle.id);
            state.counters.count_commit();
            (None, value)
        } else {
            let part = PartKind::Ack { start: 0, count: 1 };
            (Some(Batch { deletes: smallvec![handle.id], ..Batch::of(part) }), None)
        };
        let outcome = if failure.is_none() && state.waiting.is_empty() && !state.closed {
            drop(state);
            Ok(())
        } else {
            self.end_in_place(state, failure)
        };
        // Its memory is given back without the lock.
        drop(removed);
        Some(outcome.map(|()| 1))
    }

    /// What follows an operation in memory that somebody waits for, or that panicked: the rest of its settlement.
    fn end_in_place(&self, mut state: MutexGuard<'_, State>, panicked: Option<Batch>) -> Result<(), Failure> {
        let mut settlements = Settlements::default();
        let outcome = match panicked {
            None => {
                state.grant(self.capacity, &mut settlements);
                self.wake_ready(&mut state, &mut settlements);
                Ok(())
            }
            Some(batch) => Err(self.settle_panicked(&mut state, batch, &mut settlements)),
        };
        self.elect(&mut state);
        drop(state);
        settlements.tell();
        outcome
    }

    /// Settles `batch` after a panic of the store's: what it left is not known, so nothing more is accepted.
    fn settle_panicked(&self, state: &mut State, batch: Batch, settlements: &mut Settlements) -> Failure {
        self.settle_batch(state, batch, panicked(), settlements);
        panic_failure()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::builder::Builder;
    use crate::code::ErrorCode;
    use crate::durability::Durability;
    use crate::store::{MemStore, Op, Pair, Store};
    use crate::sync::Arc;

    /// A store in memory that breaks its clause 8 when asked to.
    struct Panics(MemStore, AtomicBool);

    impl Memory for Panics {
        fn get(&self, id: u64) -> Option<Vec<u8>> {
            Memory::get(&self.0, id)
        }

        fn put(&self, id: u64, value: Vec<u8>) {
            assert!(!self.1.load(Ordering::SeqCst), "asked to");
            Memory::put(&self.0, id, value);
        }

        fn remove(&self, id: u64) -> Option<Vec<u8>> {
            assert!(!self.1.load(Ordering::SeqCst), "asked to");
            Memory::remove(&self.0, id)
        }
    }

    impl Store for Arc<Panics> {
        type Error = Infallible;

        fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
            Store::get(&self.0, key)
        }

        fn seek(&self, from: &[u8]) -> Result<Option<Pair>, Infallible> {
            self.0.seek(from)
        }

        fn seek_back(&self, upto: &[u8]) -> Result<Option<Pair>, Infallible> {
            self.0.seek_back(upto)
        }

        fn commit(&self, ops: &[Op<'_>], durable: bool) -> Result<(), Infallible> {
            Store::commit(&self.0, ops, durable)
        }

        fn memory(&self) -> Option<&dyn Memory> {
            Some(self.as_ref())
        }
    }

    #[test]
    fn a_panic_of_a_store_in_memory_poisons_and_stays_in_the_call() {
        for on_ack in [false, true] {
            let store = Arc::new(Panics(MemStore::new(), AtomicBool::new(false)));
            let queue = Builder::new(Arc::clone(&store)).durability(Durability::None).open().unwrap();
            queue.push(b"a").unwrap();
            queue.push(b"b").unwrap();
            let item = queue.reserve().unwrap().unwrap();
            store.1.store(true, Ordering::SeqCst);
            let code =
                if on_ack { item.ack().unwrap_err().code() } else { queue.push(b"c").unwrap_err().code() };
            assert_eq!(code, ErrorCode::Internal);
            assert_eq!(queue.push(b"d").unwrap_err().code(), ErrorCode::Poisoned);
            drop(item);
            let stats = queue.stats();
            assert_eq!((stats.length, stats.claimed, stats.in_flight), (2, 0, 0));
        }
    }
}
