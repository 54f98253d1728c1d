//! Taking acks in, and what being acked means for an entry.

use std::time::Instant;

use smallvec::{SmallVec, smallvec};

use crate::batch::{Batch, PartKind};
use crate::completion::Completion;
use crate::durability::Durability;
use crate::error::AckError;
use crate::push::Taken;
use crate::reserved::Handle;
use crate::state::{Flight, Shared, State};
use crate::sync::Arc;

impl Shared {
    /// Marks what `handles` hold as being acked and puts the deletes in the line. The first settle wins: the answer
    /// says for each handle whether it still held its item. `completion` is told unless the caller, a thread that parks, may
    /// follow in a batch and does.
    pub(crate) fn ack_handles(
        self: &Arc<Self>,
        handles: &[Handle],
        may_follow: bool,
        completion: impl FnOnce(u64) -> Completion,
    ) -> Result<(SmallVec<[bool; 1]>, Taken), AckError> {
        let mut state = self.state.lock();
        if let Some(refusal) = state.write_refusal() {
            return Err(refusal.into());
        }
        self.start_committer(&mut state)?;
        if let [handle] = *handles
            && self.ack_durability == Durability::None
            && let Some(memory) = self.store.memory()
        {
            let token = state.next_token;
            let settled = self.ack_in_place(state, memory, handle);
            let accepted = smallvec![settled.is_some()];
            return Ok((accepted, Taken::settled(token, settled.unwrap_or(Ok(0)))));
        }
        let accepted: SmallVec<[bool; 1]> = match *handles {
            [handle] => smallvec![state.mark_acking(handle)],
            _ => handles.iter().map(|handle| state.mark_acking(*handle)).collect(),
        };
        let ids =
            handles.iter().zip(&accepted).filter(|(_, accepted)| **accepted).map(|(handle, _)| handle.id);
        let ids: SmallVec<[u64; 1]> = ids.collect();
        let count = ids.len() as u64;
        let token = state.next_token;
        state.next_token += count;
        if ids.is_empty() {
            return Ok((accepted, Taken::settled(token, Ok(0))));
        }
        let mut answer = Taken::waits(token);
        let part_of =
            |count: usize| PartKind::Ack { start: 0, count: u32::try_from(count).unwrap_or(u32::MAX) };
        match self.ack_durability {
            Durability::None => {
                let part = part_of(ids.len());
                let batch = Batch { deletes: ids, ..Batch::of(part) };
                let settled = self.settle_inline(state, batch, || completion(token), Ok(1));
                let answer = settled.map_or(Taken::waits(token), |outcome| Taken::settled(token, outcome));
                return Ok((accepted, answer));
            }
            Durability::Sync => {
                let completion = completion(token);
                for (id, offset) in ids.into_iter().zip(0u64..) {
                    let mut batch =
                        Batch { durable: true, sealed: true, deletes: smallvec![id], ..Batch::default() };
                    batch.add_part(completion.at(offset), part_of(1));
                    state.line.push_back(batch);
                }
            }
            Durability::Group => {
                if let Some(batch) = Batch::open(&mut state.line, 0, false) {
                    let start = batch.deletes.len();
                    let completion = if may_follow && batch.takes_follower(0) {
                        answer.follows = Some((batch.follow(), 1));
                        Completion::Nobody
                    } else {
                        completion(token)
                    };
                    batch.durable = true;
                    batch.deletes.extend_from_slice(&ids);
                    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                    batch.add_part(completion, PartKind::Ack { start, count });
                }
            }
        }
        self.elect(&mut state);
        Ok((accepted, answer))
    }

    /// Acks by id; ids that are not stored are fine. One token, told the number removed.
    pub(crate) fn ack_ids(
        self: &Arc<Self>,
        ids: &[u64],
        completion: impl FnOnce(u64) -> Completion,
    ) -> Result<Taken, AckError> {
        let mut state = self.state.lock();
        if let Some(refusal) = state.write_refusal() {
            return Err(refusal.into());
        }
        self.start_committer(&mut state)?;
        let token = state.next_token;
        state.next_token += 1;
        if ids.is_empty() {
            return Ok(Taken::settled(token, Ok(0)));
        }
        for &id in ids {
            state.mark_acking_by_id(id);
        }
        if let Some(batch) = Batch::open(&mut state.line, 0, self.ack_durability == Durability::Sync) {
            let start = batch.deletes.len();
            batch.durable |= self.ack_durability != Durability::None;
            batch.deletes.extend_from_slice(ids);
            let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            batch.add_part(completion(token), PartKind::AckIds { start, count });
        }
        self.elect(&mut state);
        Ok(Taken::waits(token))
    }
}

impl State {
    pub(crate) fn mark_acking(&mut self, handle: Handle) -> bool {
        match self.flights.get_mut(&handle.id) {
            Some(flight) if flight.generation == handle.generation && flight.acking == 0 => {
                flight.acking = 1;
                flight.by_handle = true;
                true
            }
            _ => false,
        }
    }

    /// An ack by id takes the entry out of what can be delivered, whether it exists or not.
    fn mark_acking_by_id(&mut self, id: u64) {
        let deliveries = self.returned.remove(&id);
        let unsettled = id >= self.visible();
        let flight = self.flights.entry(id).or_insert_with(|| Flight {
            generation: 0,
            deliveries: deliveries.unwrap_or(0),
            acking: 0,
            by_handle: false,
            orphaned: false,
            unsettled: false,
            bytes: 0,
            since: Instant::now(),
        });
        flight.unsettled |= unsettled;
        flight.acking += 1;
    }

    /// The entry's delete is committed. False when another ack had removed it.
    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let Some(flight) = self.flights.remove(&id) else { return false };
        self.in_flight -= u64::from(flight.generation != 0);
        if flight.unsettled && self.is_outstanding(id) {
            self.early.insert(id, flight.bytes);
        } else {
            self.stored = self.stored.saturating_sub(1);
            self.stored_bytes = self.stored_bytes.saturating_sub(flight.bytes);
        }
        self.counters.acked += 1;
        true
    }

    /// The store gave the entry up. Whoever picked it forgets it for himself.
    pub(crate) fn lose(&mut self, id: u64, bytes: u64) {
        if self.is_outstanding(id) {
            self.early.insert(id, bytes);
        } else {
            self.stored = self.stored.saturating_sub(1);
            self.stored_bytes = self.stored_bytes.saturating_sub(bytes);
        }
    }

    /// Whether an ack by handle of this entry came first and is not settled. Both are told, but one removal is told once,
    /// also when the commit of the later ack was the first.
    pub(crate) fn is_removed_by_handle(&self, id: u64) -> bool {
        self.flights.get(&id).is_some_and(|flight| flight.by_handle)
    }

    /// The ack by handle of this entry failed.
    pub(crate) fn unack_handle(&mut self, id: u64) {
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.by_handle = false;
        }
        self.unack(id);
    }

    /// One ack by id found nothing. Then there is nothing to put back, unless the entry was on its way meanwhile or
    /// somebody holds it.
    pub(crate) fn unack_missing(&mut self, id: u64) {
        match self.flights.get(&id) {
            Some(flight) if flight.generation == 0 && flight.acking == 1 && !flight.unsettled => {
                self.flights.remove(&id);
            }
            _ => self.unack(id),
        }
    }

    /// One ack of this entry failed.
    pub(crate) fn unack(&mut self, id: u64) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        flight.acking = flight.acking.saturating_sub(1);
        if flight.acking > 0 {
            return;
        }
        if flight.orphaned {
            self.return_to_ready(id, true);
        } else if flight.generation == 0 {
            // Never delivered: the walk finds it again, or it was never there.
            let deliveries = flight.deliveries;
            self.flights.remove(&id);
            if id < self.cursor {
                self.returned.insert(id, deliveries);
            }
        }
    }
}
