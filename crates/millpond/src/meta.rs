//! The meta record: format, flags, codec name and the id lease.
//!
//! ```text
//! u16 LE  format version (1)
//! u32 LE  must-understand flags: an unknown one refuses the store
//! u32 LE  may-ignore flags
//! u64 LE  id ceiling: every id below it may have been given out
//! u8      length of the codec name, then the name in UTF-8
//! ```
//! Bytes behind the name belong to later versions that set a flag for them. `docs/format.md#meta`.

/// The format this version writes and the newest it reads. Persisted, never reuse.
pub(crate) const FORMAT: u16 = 1;

/// The parts of a meta record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Ids below this may have been given out; none above has.
    pub(crate) ceiling: u64,
    /// The codec all entries were encoded with.
    pub(crate) codec: String,
    /// Flags a reader may ignore; kept as they were found.
    pub(crate) may_ignore: u32,
}

/// Why a meta record was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MetaError {
    /// A newer format version.
    Newer(u16),
    /// A must-understand flag of a newer version.
    UnknownFlags(u32),
    /// The record is cut or not valid.
    Invalid,
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(19 + self.codec.len());
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        out.extend_from_slice(&self.may_ignore.to_le_bytes());
        out.extend_from_slice(&self.ceiling.to_le_bytes());
        out.push(u8::try_from(self.codec.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(self.codec.as_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, MetaError> {
        let (format, rest) = split::<2>(bytes)?;
        let format = u16::from_le_bytes(format);
        if format > FORMAT {
            return Err(MetaError::Newer(format));
        }
        let (must, rest) = split::<4>(rest)?;
        let must = u32::from_le_bytes(must);
        if must != 0 {
            return Err(MetaError::UnknownFlags(must));
        }
        let (may, rest) = split::<4>(rest)?;
        let (ceiling, rest) = split::<8>(rest)?;
        let ([length], rest) = split::<1>(rest)?;
        let name = rest.get(..usize::from(length)).ok_or(MetaError::Invalid)?;
        let codec = String::from_utf8(name.to_vec()).map_err(|_| MetaError::Invalid)?;
        if format == 0 {
            return Err(MetaError::Invalid);
        }
        Ok(Self { ceiling: u64::from_le_bytes(ceiling), codec, may_ignore: u32::from_le_bytes(may) })
    }
}

fn split<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), MetaError> {
    bytes.split_first_chunk::<N>().map(|(head, rest)| (*head, rest)).ok_or(MetaError::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> Meta {
        Meta { ceiling: 1 << 40, codec: "json".to_owned(), may_ignore: 8 }
    }

    #[test]
    fn meta_round_trips() {
        assert_eq!(Meta::decode(&meta().encode()), Ok(meta()));
    }

    #[test]
    fn newer_formats_and_unknown_flags_are_refused() {
        let mut bytes = meta().encode();
        bytes[0] = 2;
        assert_eq!(Meta::decode(&bytes), Err(MetaError::Newer(2)));
        let mut bytes = meta().encode();
        bytes[2] = 4;
        assert_eq!(Meta::decode(&bytes), Err(MetaError::UnknownFlags(4)));
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = meta().encode();
        for cut in 0..bytes.len() {
            assert!(Meta::decode(&bytes[..cut]).is_err());
        }
    }
}
