//! The key space every store carries.
//!
//! A key is one kind byte and a body. Kinds are persisted: a number is never reused. All kinds exist from the
//! start, so that a store written for this crate needs no change when a later version uses more of them.

use std::fmt;

/// Kind byte of the meta record. Persisted, never reuse.
pub const META: u8 = 0x00;
/// Kind byte of an entry. Persisted, never reuse.
pub const ENTRY: u8 = 0x01;
/// Kind byte of an attempt record. Persisted, never reuse.
pub const ATTEMPT: u8 = 0x02;
/// Kind byte of a due time. Persisted, never reuse.
pub const DUE: u8 = 0x03;
/// Kind byte of a dedupe record. Persisted, never reuse.
pub const DEDUPE: u8 = 0x04;

/// The key of the meta record: one byte.
pub const META_KEY: [u8; 1] = [META];

/// A key taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// The meta record of the queue.
    Meta,
    /// The entry with this id.
    Entry(u64),
    /// The attempt record of the entry with this id.
    Attempt(u64),
    /// The due time of the entry with this id.
    Due(u64),
    /// The dedupe record of a caller's key.
    Dedupe(&'a [u8]),
}

/// A key whose kind or length this version does not know. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// The kind byte, or `None` for an empty key.
    pub kind: Option<u8>,
    /// The length of the whole key in bytes.
    pub length: usize,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown key kind={:?} length={}", self.kind, self.length)
    }
}

impl std::error::Error for UnknownKey {}

impl<'a> Key<'a> {
    /// Takes a key apart.
    ///
    /// # Errors
    /// [`UnknownKey`] when the kind is not one of this version's, or the body has the wrong length.
    pub fn parse(key: &'a [u8]) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey { kind: key.first().copied(), length: key.len() };
        let (kind, body) = key.split_first().ok_or_else(unknown)?;
        let id = || body.try_into().map(u64::from_be_bytes).map_err(|_| unknown());
        match *kind {
            META if body.is_empty() => Ok(Key::Meta),
            ENTRY => id().map(Key::Entry),
            ATTEMPT => id().map(Key::Attempt),
            DUE => id().map(Key::Due),
            DEDUPE => Ok(Key::Dedupe(body)),
            _ => Err(unknown()),
        }
    }
}

/// The key of entry `id`: the kind byte, then the id in big endian, so that byte order is id order.
#[must_use]
pub fn entry(id: u64) -> [u8; 9] {
    let mut key = [ENTRY; 9];
    key[1..].copy_from_slice(&id.to_be_bytes());
    key
}

/// The lowest id whose key is not below `from`, which need not be a whole key.
pub(crate) fn first_entry_from(from: &[u8]) -> Option<u64> {
    match from.split_first() {
        Some((&ENTRY, body)) if body.len() > 8 => padded(body).checked_add(1),
        Some((&ENTRY, body)) => Some(padded(body)),
        Some((&kind, _)) if kind > ENTRY => None,
        _ => Some(0),
    }
}

/// The highest id whose key is not above `upto`, which need not be a whole key.
pub(crate) fn last_entry_upto(upto: &[u8]) -> Option<u64> {
    match upto.split_first() {
        Some((&ENTRY, body)) if body.len() < 8 => padded(body).checked_sub(1),
        Some((&ENTRY, body)) => Some(padded(body)),
        Some((&kind, _)) if kind > ENTRY => Some(u64::MAX),
        _ => None,
    }
}

/// The id bytes of an entry key that may be cut short, filled with zeros.
fn padded(body: &[u8]) -> u64 {
    let mut id = [0; 8];
    id.iter_mut().zip(body).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_keys_sort_like_ids() {
        assert!(entry(1) < entry(255) && entry(255) < entry(256) && entry(256) < entry(u64::MAX));
        assert_eq!(Key::parse(&entry(77)), Ok(Key::Entry(77)));
    }

    #[test]
    fn unknown_kinds_and_lengths_are_refused() {
        for bad in [&[][..], &[0, 0], &[1], &[1, 0, 0], &[2, 1], &[9, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(Key::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Key::parse(&[4, 9, 9]), Ok(Key::Dedupe(&[9, 9])));
    }
}
