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
            match line.parse() {
                Ok(Event::Push(nonce)) => drop(self.pushes.insert(nonce)),
                Ok(Event::Pushed(nonce, id)) => drop(self.pushed.insert(id, nonce)),
                Ok(Event::Ack(id)) => drop(self.acks.insert(id)),
                Ok(Event::Acked(id)) => drop(self.acked.insert(id)),
                Err(NotAnEvent) => {}
            }
        }
    }
}
