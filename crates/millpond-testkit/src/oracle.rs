//! The judge of every crash test: what `push` acknowledged is delivered until an acknowledged `ack`.

use millpond::{Failure, Queue};

use crate::journal::Journal;
use crate::payload;

/// Drains a queue that was opened after a crash, acks everything, pushes one more entry, and says what is wrong with
/// what it saw. With P pushes called, A acknowledged, S acks called, K acknowledged, D delivered:
///
/// 1. A \ S is in D. 2. D and K are disjoint. 3. D is in P, byte for byte. 4. Ids in D strictly ascend. 5. The next id
///    is above every id ever returned. 6. The length is |D| before and 0 after.
///
/// The drained ids are added to the journal as acked, so that the next life is judged with them.
///
/// # Errors
/// A call of the queue that failed.
pub fn judge(queue: &Queue, journal: &mut Journal) -> Result<Verdict, Failure> {
    let mut verdict = Verdict { length: queue.len(), ..Verdict::default() };
    let (mut delivered, mut last) = (Vec::new(), 0);
    while let Some(item) = queue.reserve()? {
        let id = item.seq();
        if id <= last {
            verdict.violate(format!("(4) id {id} came after {last}"));
        }
        last = id;
        match payload::nonce(&item) {
            None => verdict.violate(format!("(3) entry {id} has other bytes than were pushed")),
            Some(nonce) if !journal.pushes.contains(&nonce) => {
                verdict.violate(format!("(3) entry {id} was never pushed"));
            }
            Some(nonce) if journal.pushed.get(&id).is_some_and(|known| *known != nonce) => {
                verdict.violate(format!("(3) entry {id} has the bytes of another"));
            }
            Some(_) => {}
        }
        if journal.acked.contains(&id) {
            verdict.violate(format!("(2) entry {id} came back after its ack"));
        }
        item.ack()?;
        delivered.push(id);
    }
    for id in journal.pushed.keys().filter(|id| !journal.acks.contains(id)) {
        if delivered.binary_search(id).is_err() {
            verdict.violate(format!("(1) entry {id} was acknowledged and is lost"));
        }
    }
    if verdict.length != delivered.len() as u64 || !queue.is_empty() {
        let (before, seen, after) = (verdict.length, delivered.len(), queue.len());
        verdict.violate(format!("(6) length {before}, {seen} delivered, {after} left"));
    }
    let highest = journal.pushed.keys().chain(&delivered).max().copied().unwrap_or(0);
    let next = queue.push(b"the next id")?;
    if next <= highest {
        verdict.violate(format!("(5) id {next} was given out after {highest}"));
    }
    queue.ack(next)?;
    verdict.delivered = delivered.len() as u64;
    journal.acks.extend(delivered.iter().copied().chain([next]));
    journal.acked.extend(delivered.into_iter().chain([next]));
    journal.pushed.insert(next, 0);
    Ok(verdict)
}

/// What the judge saw.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Length before draining.
    pub length: u64,
    /// Entries delivered.
    pub delivered: u64,
    /// What broke the promise, at most a few of each kind.
    pub violations: Vec<String>,
}

impl Verdict {
    fn violate(&mut self, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(what);
        }
    }
}
