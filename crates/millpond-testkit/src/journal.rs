//! What a process says of its calls while it lives: one line for each call and each answer, written with one `write`,
//! so that a kill leaves whole lines but perhaps the last.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

/// One line of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `push` of this nonce was called.
    Push(u64),
    /// `push` of this nonce returned this id.
    Pushed(u64, u64),
    /// `ack` of this id was called.
    Ack(u64),
    /// `ack` of this id returned.
    Acked(u64),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Push(nonce) => writeln!(f, "p {nonce}"),
            Event::Pushed(nonce, id) => writeln!(f, "a {nonce} {id}"),
            Event::Ack(id) => writeln!(f, "s {id}"),
            Event::Acked(id) => writeln!(f, "k {id}"),
        }
    }
}

/// A line that is not one of a journal's.
#[derive(Debug)]
pub struct NotAnEvent;

impl FromStr for Event {
    type Err = NotAnEvent;

    fn from_str(line: &str) -> Result<Self, NotAnEvent> {
        let mut words = line.split(' ');
        let kind = words.next().ok_or(NotAnEvent)?;
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or(NotAnEvent);
        match kind {
            "p" => Ok(Event::Push(number()?)),
            "a" => Ok(Event::Pushed(number()?, number()?)),
            "s" => Ok(Event::Ack(number()?)),
            "k" => Ok(Event::Acked(number()?)),
            _ => Err(NotAnEvent),
        }
    }
}

/// Writes one event with one call.
///
/// # Errors
/// That of the write.
pub fn write(out: &mut impl Write, event: Event) -> io::Result<()> {
    out.write_all(event.to_string().as_bytes())
}

/// Everything the journals of a queue's lives said.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// Nonces of pushes called.
    pub pushes: BTreeSet<u64>,
    /// Nonce by id of pushes that returned.
    pub pushed: BTreeMap<u64, u64>,
    /// Ids of acks called.
    pub acks: BTreeSet<u64>,
    /// Ids of acks that returned.
    pub acked: BTreeSet<u64>,
    /// The highest id that any push returned, also one whose entry may be gone because nothing was promised for it.
    pub returned: Option<u64>,
}

impl Journal {
    /// Adds the lines of one life; a last line without its end was cut by the kill.
    pub fn read(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            let Some(line) = line.strip_suffix('\n') else { continue };
            if let Ok(event) = line.parse() {
                self.add(event);
            }
        }
    }

    /// Adds one event.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Push(nonce) => drop(self.pushes.insert(nonce)),
            Event::Pushed(nonce, id) => drop(self.pushed.insert(id, nonce)),
            Event::Ack(id) => drop(self.acks.insert(id)),
            Event::Acked(id) => drop(self.acked.insert(id)),
        }
    }
}

/// An event, and how many bytes the recording of a [device](crate::block_device) had: before a call, and after an
/// answer. As a line: the bytes, a blank, the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Bytes of the recording.
    pub at: u64,
    /// What happened.
    pub event: Event,
}

impl Placed {
    /// Everything that had happened when the recording ended with `end` bytes: an answer that was given then is owed,
    /// a call that was made then has reached nothing.
    pub fn journal_at(events: &[Self], end: u64) -> Journal {
        let mut journal = Journal::default();
        for placed in events {
            let has_happened = match placed.event {
                Event::Push(_) | Event::Ack(_) => placed.at < end,
                Event::Pushed(..) | Event::Acked(_) => placed.at <= end,
            };
            if has_happened {
                journal.add(placed.event);
            }
        }
        journal
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.event)
    }
}

impl FromStr for Placed {
    type Err = NotAnEvent;

    fn from_str(line: &str) -> Result<Self, NotAnEvent> {
        let (at, event) = line.split_once(' ').ok_or(NotAnEvent)?;
        Ok(Self { at: at.parse().map_err(|_| NotAnEvent)?, event: event.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_owed_from_its_place_on_and_a_call_counts_behind_it() {
        let text = "512 p 7\n1024 a 7 1\n1024 s 1\n1536 k 1";
        let events: Vec<Placed> = text.lines().map(|line| line.parse().unwrap()).collect();
        let counts = [512, 513, 1023, 1024, 1025, 1536].map(|end| {
            let journal = Placed::journal_at(&events, end);
            [journal.pushes.len(), journal.pushed.len(), journal.acks.len(), journal.acked.len()]
        });
        assert_eq!(
            counts,
            [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
        );
    }
}
