//! What one commit carries: values, deletes, and who is told about them.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::completion::{Completion, SharedOutcome};
use crate::key;
use crate::limits::BATCH_BYTES_MAX;
use crate::store::Op;
use crate::sync::Arc;

/// Operations that share one [`Store::commit`](crate::store::Store::commit). A batch of one operation, which is every
/// batch without group commit, takes no memory of its own but for the value.
#[derive(Default)]
pub(crate) struct Batch {
    /// One member at least asked for an fsync.
    pub(crate) durable: bool,
    /// No further operation may join.
    pub(crate) sealed: bool,
    /// The new id ceiling, if this is a lease.
    pub(crate) ceiling: Option<u64>,
    /// The meta record that carries the ceiling.
    pub(crate) meta: Option<Vec<u8>>,
    /// Values (envelopes) one after another.
    pub(crate) values: Vec<u8>,
    /// Id and end of each value in `values`.
    pub(crate) puts: SmallVec<[(u64, usize); 1]>,
    /// Ids to delete.
    pub(crate) deletes: SmallVec<[u64; 1]>,
    /// Who is told, in order of submission.
    pub(crate) parts: SmallVec<[Part; 1]>,
    /// A parked thread with a ticket of its own waits for it and can lead it.
    pub(crate) led: bool,
    /// What the followers wait for.
    pub(crate) outcome: Option<Arc<SharedOutcome>>,
}

/// Keys of entries.
type Keys = SmallVec<[[u8; 9]; 1]>;

/// One operation of a batch, or a run of them with one completion.
pub(crate) struct Part {
    pub(crate) completion: Completion,
    pub(crate) kind: PartKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum PartKind {
    /// `count` entries from id `first` on, whose values are in `puts` and have `bytes` together.
    Push { first: u64, count: u32, bytes: u64 },
    /// Acks of delivered items: `count` ids in `deletes` from `start` on, each with a token of its own.
    Ack { start: usize, count: u32 },
    /// One call that acks ids which may be unknown.
    AckIds { start: usize, count: u32 },
    /// Nothing but a wait for durability.
    Flush,
}

impl Batch {
    /// The batch at the end of the line, when `bytes` more may still join it; else a new one behind it.
    pub(crate) fn open(line: &mut VecDeque<Batch>, bytes: usize, alone: bool) -> Option<&mut Batch> {
        let joins = !alone && line.back().is_some_and(|last| last.takes(bytes));
        if !joins {
            line.push_back(Batch { sealed: alone, ..Batch::default() });
        }
        line.back_mut()
    }

    /// Whether an operation with `bytes` of values may still join.
    fn takes(&self, bytes: usize) -> bool {
        !self.sealed && (self.values.is_empty() || self.values.len() + bytes <= BATCH_BYTES_MAX)
    }

    /// Whether a thread whose operation has `bytes` of values may join without a ticket: another one leads.
    pub(crate) fn takes_follower(&self, bytes: usize) -> bool {
        self.led && self.takes(bytes)
    }

    /// What a thread waits for that follows in the batch.
    pub(crate) fn follow(&mut self) -> Arc<SharedOutcome> {
        Arc::clone(self.outcome.get_or_insert_default())
    }

    /// A batch of one part that nobody is told of yet: a commit on the caller's thread.
    pub(crate) fn of(kind: PartKind) -> Self {
        let part = Part { completion: Completion::Nobody, kind };
        Self { parts: SmallVec::from_buf([part]), ..Self::default() }
    }

    pub(crate) fn add_part(&mut self, completion: Completion, kind: PartKind) {
        self.led |= completion.can_lead();
        self.parts.push(Part { completion, kind });
    }

    /// Calls `commit` with the operations, deletes whose id is in `missing` (sorted) left out. Puts come first: an ack of an
    /// entry can only follow its push.
    pub(crate) fn with_ops<R>(&self, missing: &[u64], commit: impl FnOnce(&[Op<'_>]) -> R) -> R {
        // One operation, the usual case without group commit, needs no lists.
        match (self.puts.as_slice(), self.deletes.as_slice()) {
            (&[(id, _)], []) if self.meta.is_none() => {
                return commit(&[Op::Put(&key::entry(id), &self.values)]);
            }
            ([], &[id]) if self.meta.is_none() && missing.is_empty() => {
                return commit(&[Op::Delete(&key::entry(id))]);
            }
            _ => {}
        }
        let keys: Keys = self.puts.iter().map(|&(id, _)| key::entry(id)).collect();
        let stored = self.deletes.iter().filter(|id| missing.binary_search(id).is_err());
        let gone: Keys = stored.map(|&id| key::entry(id)).collect();
        let mut ops: SmallVec<[Op<'_>; 2]> = SmallVec::with_capacity(keys.len() + gone.len() + 1);
        if let Some(meta) = &self.meta {
            ops.push(Op::Put(&key::META_KEY, meta));
        }
        let mut rest = self.values.as_slice();
        let mut start = 0;
        for (key, &(_, end)) in keys.iter().zip(&self.puts) {
            let (value, tail) = rest.split_at(end - start);
            ops.push(Op::Put(key, value));
            (rest, start) = (tail, end);
        }
        ops.extend(gone.iter().map(|key| Op::Delete(key)));
        commit(&ops)
    }

    /// Bytes of the value of `id`, if this batch carries it.
    pub(crate) fn value_bytes(&self, id: u64) -> u64 {
        let Some(place) = self.puts.iter().position(|&(put, _)| put == id) else { return 0 };
        let start = place.checked_sub(1).and_then(|before| self.puts.get(before)).map_or(0, |&(_, end)| end);
        self.puts.get(place).map_or(0, |&(_, end)| (end - start) as u64)
    }

    /// The ids of one part's acks: `count` of `deletes` from `start` on.
    pub(crate) fn acks(&self, start: usize, count: u32) -> &[u64] {
        let rest = self.deletes.get(start..).unwrap_or(&[]);
        rest.get(..count as usize).unwrap_or(rest)
    }

    /// How many operations it carries.
    pub(crate) fn operations(&self) -> u64 {
        (self.puts.len() + self.deletes.len()) as u64
    }

    /// A parked thread whose operation is in this batch.
    pub(crate) fn thread(&self) -> Option<&crate::completion::Ticket> {
        self.parts.iter().find_map(|part| match &part.completion {
            Completion::Ticket(ticket) if ticket.can_lead() => Some(ticket.as_ref()),
            _ => None,
        })
    }
}
