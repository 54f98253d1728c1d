//! The judge of every crash test: what `push` acknowledged is delivered until an acknowledged `ack`.

use std::fmt;
use std::str::FromStr;

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
    let drained = drain(queue)?;
    let verdict = drained.judge(journal);
    let ids = drained.ids().chain([drained.next]);
    journal.acks.extend(ids.clone());
    journal.acked.extend(ids);
    journal.pushed.insert(drained.next, 0);
    Ok(verdict)
}

/// What a queue gave until it was empty, and what it said then. As text: a line for each entry and each number, and a
/// last line `end`, so that half of it is not taken for the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// The length before.
    pub length: u64,
    /// Ids in the order they came, with the nonces of their payloads; `None` where the bytes are nobody's.
    pub delivered: Vec<(u64, Option<u64>)>,
    /// The id of the next push.
    pub next: u64,
    /// The length after, before that push.
    pub left: u64,
}

/// Drains a queue, acks everything, then pushes and acks one more entry.
///
/// # Errors
/// A call of the queue that failed.
pub fn drain(queue: &Queue) -> Result<Drained, Failure> {
    let mut drained = Drained { length: queue.len(), ..Drained::default() };
    while let Some(item) = queue.reserve()? {
        drained.delivered.push((item.seq(), payload::nonce(&item)));
        item.ack()?;
    }
    drained.left = queue.len();
    drained.next = queue.push(b"the next id")?;
    queue.ack(drained.next)?;
    Ok(drained)
}

impl Drained {
    fn ids(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.delivered.iter().map(|(id, _)| *id)
    }

    /// Says what is wrong.
    pub fn judge(&self, journal: &Journal) -> Verdict {
        let mut verdict =
            Verdict { length: self.length, delivered: self.delivered.len() as u64, ..Verdict::default() };
        let mut last = 0;
        for (id, nonce) in &self.delivered {
            let id = *id;
            if id <= last {
                verdict.violate(format!("(4) id {id} came after {last}"));
            }
            last = id;
            match nonce {
                None => verdict.violate(format!("(3) entry {id} has other bytes than were pushed")),
                Some(nonce) if !journal.pushes.contains(nonce) => {
                    verdict.violate(format!("(3) entry {id} was never pushed"));
                }
                Some(nonce) if journal.pushed.get(&id).is_some_and(|known| known != nonce) => {
                    verdict.violate(format!("(3) entry {id} has the bytes of another"));
                }
                Some(_) => {}
            }
            if journal.acked.contains(&id) {
                verdict.violate(format!("(2) entry {id} came back after its ack"));
            }
        }
        for id in journal.pushed.keys().filter(|id| !journal.acks.contains(id)) {
            if self.delivered.binary_search_by_key(id, |(found, _)| *found).is_err() {
                verdict.lost += 1;
                verdict.violate(format!("(1) entry {id} was acknowledged and is lost"));
            }
        }
        if self.length != self.delivered.len() as u64 || self.left > 0 {
            let (before, seen, after) = (self.length, self.delivered.len(), self.left);
            verdict.violate(format!("(6) length {before}, {seen} delivered, {after} left"));
        }
        let returned = journal.pushed.keys().copied().chain(journal.returned);
        let highest = returned.chain(self.ids()).max().unwrap_or(0);
        if self.next <= highest {
            verdict.violate(format!("(5) id {} was given out after {highest}", self.next));
        }
        verdict
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "length {}", self.length)?;
        for (id, nonce) in &self.delivered {
            match nonce {
                Some(nonce) => writeln!(f, "entry {id} {nonce}")?,
                None => writeln!(f, "entry {id} foreign")?,
            }
        }
        writeln!(f, "left {}\nnext {}\nend", self.left, self.next)
    }
}

/// A text that is not that of a [`Drained`], or not all of it.
#[derive(Debug)]
pub struct NotDrained;

impl FromStr for Drained {
    type Err = NotDrained;

    fn from_str(text: &str) -> Result<Self, NotDrained> {
        let mut drained = Self::default();
        let number = |word: &str| word.parse::<u64>().map_err(|_| NotDrained);
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["length", length] => drained.length = number(length)?,
                ["entry", id, "foreign"] => drained.delivered.push((number(id)?, None)),
                ["entry", id, nonce] => drained.delivered.push((number(id)?, Some(number(nonce)?))),
                ["left", left] => drained.left = number(left)?,
                ["next", next] => drained.next = number(next)?,
                ["end"] => return Ok(drained),
                _ => return Err(NotDrained),
            }
        }
        Err(NotDrained)
    }
}

/// What the judge saw.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Length before draining.
    pub length: u64,
    /// Entries delivered.
    pub delivered: u64,
    /// Entries that were acknowledged and are lost.
    pub lost: u64,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Event;

    #[test]
    fn what_was_drained_is_read_as_it_was_written() {
        let drained = Drained { length: 2, delivered: vec![(3, Some(70)), (5, None)], left: 0, next: 9 };
        let text = drained.to_string();
        assert_eq!(text.parse::<Drained>().unwrap(), drained);
        assert!(text.strip_suffix("end\n").unwrap().parse::<Drained>().is_err());
    }

    #[test]
    fn each_kind_of_breach_is_named() {
        let mut journal = Journal::default();
        for nonce in 1..=5 {
            journal.add(Event::Push(nonce));
            journal.add(Event::Pushed(nonce, nonce + 10));
        }
        journal.add(Event::Ack(11));
        journal.add(Event::Acked(11));
        let delivered = vec![(11, Some(1)), (13, Some(3)), (12, None), (14, Some(5)), (16, Some(9))];
        let drained = Drained { length: 4, delivered, left: 1, next: 15 };
        let verdict = drained.judge(&journal);
        for clause in [
            "(1) entry 15",
            "(2) entry 11",
            "(3) entry 12",
            "(3) entry 14",
            "(3) entry 16",
            "(4) id 12",
            "(5) id 15",
            "(6) length 4",
        ] {
            assert!(verdict.violations.iter().any(|what| what.starts_with(clause)), "{clause}: {verdict:?}");
        }
        assert!(verdict.lost > 0);
    }
}
