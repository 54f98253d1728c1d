//! Giving up a stretch of a segment: what lay in it counts as settled, and it is not damage any more.
//!
//! ```text
//! generation of the segment (8), begin and end of the stretch (8 + 8), lowest and highest id that may have been in it
//! (8 + 8; lowest above highest: not known), pieces of the ids it settles
//! ```

use super::bytes::Cursor;
use super::pieces;

/// One stretch that is given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) generation: u64,
    /// The stretch, in bytes from the start of the file.
    pub(super) bytes: (u64, u64),
    /// The ids that may have been in it, for reports.
    pub(super) may_be: Option<(u64, u64)>,
    /// The entries that are known to begin in it: they are settled.
    pub(super) ids: Vec<(u64, u64)>,
}

impl Lost {
    /// Appends the payload.
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        let (low, high) = self.may_be.unwrap_or((u64::MAX, 0));
        for number in [self.generation, self.bytes.0, self.bytes.1, low, high] {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        pieces::encode(buffer, &self.ids);
    }

    /// Reads the payload.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        let generation = cursor.u64()?;
        let bytes = (cursor.u64()?, cursor.u64()?);
        let (low, high) = (cursor.u64()?, cursor.u64()?);
        let mut ids = Vec::new();
        while pieces::decode(&mut cursor, |first, last| ids.push((first, last))).is_some() {}
        Some(Self { generation, bytes, may_be: (low <= high).then_some((low, high)), ids })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_stretch_comes_back() {
        for may_be in [None, Some((3, 9))] {
            let lost = Lost { generation: 7, bytes: (4096, 5000), may_be, ids: vec![(4, 6), (8, 8)] };
            let mut payload = Vec::new();
            lost.encode(&mut payload);
            assert_eq!(Lost::decode(&payload), Some(lost));
            assert_eq!(Lost::decode(&payload[..39]), None);
        }
    }
}
