//! Handing entries out and taking them back: the walk from the head, handles and nacks.

use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::code::{ErrorCode, Outcome};
use crate::completion::{Entry, Settlements};
use crate::envelope;
use crate::error::{Failure, PushError};
use crate::key;
use crate::limits::SWEEP_BYTES_MAX;
use crate::reserved::{Handle, Reserved};
use crate::state::{Flight, Shared, State};
use crate::sync::Arc;

/// An id that was picked and marked, and whose value is not read yet.
#[derive(Clone, Copy)]
struct Pick {
    id: u64,
    generation: u64,
    deliveries: u32,
}

/// A pick whose value was read.
struct Read {
    pick: Pick,
    value: Vec<u8>,
    /// Where the payload begins in `value`.
    offset: usize,
}

/// Delivered items. One of them, the usual case, takes no list.
pub(crate) type Items = SmallVec<[Reserved; 1]>;

/// A delivered item as the queue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The entry's id.
    pub id: u64,
    /// How often it was delivered since open.
    pub deliveries: u32,
    /// How long ago it was delivered.
    pub age: Duration,
}

impl Shared {
    /// Hands out ready entries in id order: at most `max`, and about [`SWEEP_BYTES_MAX`] payload bytes. Never waits;
    /// empty when nothing is ready. An error means that nothing was handed out.
    pub(crate) fn take(self: &Arc<Self>, max: usize) -> Result<Items, Failure> {
        loop {
            let (picks, settled) = {
                let mut state = self.state.lock();
                if state.finishing {
                    return Err(PushError::Closed.into());
                }
                (state.pick(max), state.visible())
            };
            if picks.is_empty() {
                return Ok(Items::new());
            }
            let (read, failure) = self.read_picks(&picks, settled);
            let items = self.confirm(read);
            match failure {
                _ if !items.is_empty() => return Ok(items),
                Some(failure) => return Err(failure),
                None => {}
            }
        }
    }

    /// The lowest ready entry: [`Shared::take`] of one, without lists.
    pub(crate) fn take_one(self: &Arc<Self>) -> Result<Option<Reserved>, Failure> {
        loop {
            let mut state = self.state.lock();
            if state.finishing {
                return Err(PushError::Closed.into());
            }
            let settled = state.visible();
            let Some(pick) = state.pick_next(settled, Instant::now()) else { return Ok(None) };
            drop(state);
            let found = match self.read_value(pick.id) {
                Ok(Some((value, offset))) => {
                    let read = Read { pick, value, offset };
                    match self.confirm_one(&mut self.state.lock(), read) {
                        Some(item) => return Ok(Some(item)),
                        None => continue,
                    }
                }
                Ok(None) => self.next_stored(pick.id),
                Err(failure) => Err(failure),
            };
            match found {
                Ok(next) => {
                    self.skip_hole(pick, next, settled);
                }
                Err(failure) => {
                    self.give_back(&[pick]);
                    return Err(failure);
                }
            }
        }
    }

    /// Reads the values of `picks`, as far as they are there and the byte limit allows; the others are unmarked.
    /// Pushes of ids below `settled` were settled before, so a read that does not find one proves that it is gone.
    fn read_picks(&self, picks: &[Pick], settled: u64) -> (SmallVec<[Read; 1]>, Option<Failure>) {
        let mut read = SmallVec::with_capacity(picks.len());
        let mut bytes = 0;
        let mut hole_upto = 0;
        for (place, pick) in picks.iter().enumerate() {
            if pick.id < hole_upto {
                self.state.lock().forget(*pick);
                continue;
            }
            match self.read_value(pick.id) {
                Ok(Some((value, offset))) => {
                    bytes += value.len();
                    read.push(Read { pick: *pick, value, offset });
                }
                Ok(None) => match self.next_stored(pick.id) {
                    Ok(next) => hole_upto = self.skip_hole(*pick, next, settled),
                    Err(failure) => {
                        self.give_back(picks.get(place..).unwrap_or(&[]));
                        return (read, Some(failure));
                    }
                },
                Err(failure) => {
                    self.give_back(picks.get(place..).unwrap_or(&[]));
                    return (read, Some(failure));
                }
            }
            if bytes >= SWEEP_BYTES_MAX {
                self.give_back(picks.get(place + 1..).unwrap_or(&[]));
                break;
            }
        }
        (read, None)
    }

    /// Nothing is stored from `pick` up to `next`: a failed commit's gap, or entries that were acked by id. The walk
    /// goes on behind it. Returns where the hole ends.
    ///
    /// ORDER: `settled` was read before the store was: a push that is settled since may lie in the hole.
    fn skip_hole(&self, pick: Pick, next: Option<u64>, settled: u64) -> u64 {
        let mut state = self.state.lock();
        state.forget(pick);
        let end = next.unwrap_or(u64::MAX).min(settled);
        state.cursor = state.cursor.max(end);
        end
    }

    /// Unmarks picks that were not read.
    fn give_back(&self, picks: &[Pick]) {
        let mut settlements = Settlements::default();
        let mut state = self.state.lock();
        for pick in picks {
            state.unpick(*pick);
        }
        self.wake_ready(&mut state, &mut settlements);
        drop(state);
        settlements.tell();
    }

    /// Makes items of what was read, leaving out what was settled by id meanwhile.
    ///
    /// ORDER: after the read. An ack that came between pick and read decides; its entry is not handed out.
    fn confirm(self: &Arc<Self>, read: SmallVec<[Read; 1]>) -> Items {
        let mut items = Items::with_capacity(read.len());
        let mut state = self.state.lock();
        items.extend(read.into_iter().filter_map(|read| self.confirm_one(&mut state, read)));
        items
    }

    fn confirm_one(self: &Arc<Self>, state: &mut State, read: Read) -> Option<Reserved> {
        let Read { pick, value, offset } = read;
        match state.flights.get_mut(&pick.id) {
            Some(flight) if flight.generation == pick.generation && flight.acking == 0 => {
                flight.bytes = value.len() as u64;
                state.counters.delivered += 1;
                state.counters.redelivered += u64::from(pick.deliveries > 1);
                let handle = Handle { id: pick.id, generation: pick.generation };
                Some(Reserved::new(Arc::clone(self), handle, pick.deliveries, value, offset))
            }
            Some(_) => {
                state.unpick(pick);
                None
            }
            None => None,
        }
    }

    /// The value of entry `id` and where its payload begins.
    pub(crate) fn read_value(&self, id: u64) -> Result<Option<(Vec<u8>, usize)>, Failure> {
        let value = self.call_read(Some(id), |store| match store.memory() {
            Some(memory) => Ok(memory.get(id)),
            None => store.get(&key::entry(id)),
        })?;
        let Some(value) = value else {
            self.settle_lost();
            return Ok(None);
        };
        match envelope::payload_offset(&value) {
            Ok(offset) => Ok(Some((value, offset))),
            Err(reason) => Err(Failure::new(
                ErrorCode::Corrupt,
                Outcome::NotDone,
                format!("entry {id} has no valid envelope: {reason}"),
            )),
        }
    }

    /// Entries that the store gave up as damaged count as acked: there is room for others.
    fn settle_lost(&self) {
        let lost = self.store.take_lost();
        if lost.is_empty() {
            return;
        }
        let mut settlements = Settlements::default();
        let mut state = self.state.lock();
        for entry in lost {
            state.lose(entry.id, entry.bytes);
        }
        state.grant(self.capacity, &mut settlements);
        drop(state);
        settlements.tell();
    }

    /// The first unacked entry whose id is not below `from`.
    pub(crate) fn entry_from(&self, from: u64) -> Result<Option<Entry>, Failure> {
        let mut from = from;
        loop {
            let next = self.next_stored(from)?;
            let Some(id) = next else { return Ok(None) };
            if let Some((mut value, offset)) = self.read_value(id)? {
                value.drain(..offset);
                return Ok(Some(Entry { id, payload: value }));
            }
            // Acked between the two calls.
            from = id.saturating_add(1);
        }
    }

    /// Puts an item back in its place. False when it was settled already, or an ack of it is under way.
    pub(crate) fn nack(&self, handle: Handle, counts: bool) -> bool {
        let mut settlements = Settlements::default();
        let mut state = self.state.lock();
        let held = state.flights.get(&handle.id);
        let held = held.is_some_and(|flight| flight.generation == handle.generation && flight.acking == 0);
        if held {
            state.return_to_ready(handle.id, counts);
            state.counters.nacked += u64::from(counts);
            self.wake_ready(&mut state, &mut settlements);
        }
        drop(state);
        settlements.tell();
        held
    }

    /// Puts whichever delivery of `id` there is back in its place.
    pub(crate) fn nack_id(&self, id: u64) -> bool {
        let generation = self.state.lock().flights.get(&id).map(|flight| flight.generation);
        generation.is_some_and(|generation| generation != 0 && self.nack(Handle { id, generation }, true))
    }

    /// A handle went away without a settle: its item goes back, or will when the ack under way fails.
    pub(crate) fn release(&self, handle: Handle) {
        let mut state = self.state.lock();
        match state.flights.get_mut(&handle.id) {
            Some(flight) if flight.generation == handle.generation => {
                if flight.acking > 0 {
                    flight.orphaned = true;
                    return;
                }
            }
            // Settled, as it mostly is.
            _ => return,
        }
        state.return_to_ready(handle.id, true);
        state.counters.nacked += 1;
        let mut settlements = Settlements::default();
        self.wake_ready(&mut state, &mut settlements);
        drop(state);
        settlements.tell();
    }

    /// Wakes those who wait for an entry, if there may be one or there will be none any more.
    pub(crate) fn wake_ready(&self, state: &mut State, settlements: &mut Settlements) {
        if !state.may_be_ready() && !state.has_run_dry() {
            return;
        }
        if state.ready_waiters > 0 {
            self.ready.notify_all();
        }
        if state.demands.iter().any(|demand| demand.wanted > 0) {
            self.read.notify_one();
        }
        state.wake_futures(settlements);
    }

    pub(crate) fn in_flight(&self) -> Vec<InFlight> {
        let state = self.state.lock();
        let delivered = state.flights.iter().filter(|(_, flight)| flight.generation != 0);
        let mut list: Vec<InFlight> = delivered
            .map(|(&id, flight)| InFlight { id, deliveries: flight.deliveries, age: flight.since.elapsed() })
            .collect();
        list.sort_unstable_by_key(|item| item.id);
        list
    }
}

impl State {
    /// Marks up to `max` ready ids, lowest first.
    fn pick(&mut self, max: usize) -> SmallVec<[Pick; 1]> {
        let mut picks = SmallVec::new();
        let visible = self.visible();
        let since = Instant::now();
        while picks.len() < max
            && let Some(pick) = self.pick_next(visible, since)
        {
            picks.push(pick);
        }
        picks
    }

    /// Marks the lowest ready id.
    fn pick_next(&mut self, visible: u64, since: Instant) -> Option<Pick> {
        // Returned ids lie below the cursor: they were delivered before.
        let (id, before) = loop {
            if let Some(returned) = self.returned.pop_first() {
                break returned;
            }
            if self.cursor >= visible {
                return None;
            }
            let id = self.cursor;
            self.cursor += 1;
            if !self.flights.contains_key(&id) {
                break (id, 0);
            }
        };
        let generation = self.next_generation;
        self.next_generation += 1;
        let deliveries = before.saturating_add(1);
        self.flights.insert(
            id,
            Flight {
                generation,
                deliveries,
                acking: 0,
                by_handle: false,
                orphaned: false,
                unsettled: false,
                bytes: 0,
                since,
            },
        );
        self.in_flight += 1;
        Some(Pick { id, generation, deliveries })
    }

    /// The picked id is not stored: it is neither ready nor in flight. An ack of it that is applied and not settled
    /// keeps the flight, as one that was never delivered: the count falls when it is settled.
    fn forget(&mut self, pick: Pick) {
        let Some(flight) = self.flights.get_mut(&pick.id) else { return };
        if flight.generation != pick.generation {
            return;
        }
        self.in_flight -= 1;
        if flight.acking > 0 {
            flight.generation = 0;
            flight.deliveries -= 1;
        } else {
            self.flights.remove(&pick.id);
        }
    }

    /// The picked id was not read: it is ready as before.
    fn unpick(&mut self, pick: Pick) {
        let Some(flight) = self.flights.get_mut(&pick.id) else { return };
        if flight.generation != pick.generation {
            return;
        }
        flight.deliveries -= 1;
        if flight.acking > 0 {
            flight.orphaned = true;
        } else {
            self.return_to_ready(pick.id, true);
        }
    }

    /// Moves an item from flight to ready; a delivery that nobody saw is not counted.
    pub(crate) fn return_to_ready(&mut self, id: u64, counts: bool) {
        if let Some(flight) = self.flights.remove(&id) {
            self.in_flight -= u64::from(flight.generation != 0);
            let deliveries = if counts { flight.deliveries } else { flight.deliveries.saturating_sub(1) };
            self.returned.insert(id, deliveries);
        }
    }
}
