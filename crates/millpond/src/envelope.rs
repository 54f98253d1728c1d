//! The value of an entry: one version-and-flags byte, an optional header block, the payload.
//!
//! ```text
//! byte 0      bits 7..4 version (1), bits 3..0 flags
//! flag 0x1    a header block follows: length u32 LE, then that many bytes
//! rest        payload
//! ```
//! The core, not the store, defines it, so that it is the same on every store. `docs/format.md#envelope`.

/// Version 1 without a header block. Persisted, never reuse.
const PLAIN: u8 = 0x10;
/// The flag of a header block. Persisted, never reuse.
const HAS_HEADERS: u8 = 0x01;
/// Mask of the version bits.
const VERSION_MASK: u8 = 0xF0;

/// How many bytes an envelope adds to a payload.
pub(crate) const OVERHEAD: usize = 1;

/// Appends the envelope of `payload` to `out`.
pub(crate) fn encode(payload: &[u8], out: &mut Vec<u8>) {
    out.push(PLAIN);
    out.extend_from_slice(payload);
}

/// Where the payload begins in `value`, or what is wrong with the envelope.
pub(crate) fn payload_offset(value: &[u8]) -> Result<usize, &'static str> {
    let &first = value.first().ok_or("empty envelope")?;
    if first & VERSION_MASK != PLAIN {
        return Err("unknown envelope version");
    }
    match first & !VERSION_MASK {
        0 => Ok(OVERHEAD),
        HAS_HEADERS => {
            let length = value.get(1..5).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
            let length = length.ok_or("cut header block")?;
            let offset = 5usize.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
            if offset <= value.len() { Ok(offset) } else { Err("cut header block") }
        }
        _ => Err("unknown envelope flag"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_payload_is_not_an_empty_value() {
        let mut value = Vec::new();
        encode(b"", &mut value);
        assert_eq!(value, [0x10]);
        assert_eq!(payload_offset(&value), Ok(1));
    }

    #[test]
    fn a_header_block_is_skipped() {
        assert_eq!(payload_offset(&[0x11, 2, 0, 0, 0, 7, 7, 42]), Ok(7));
        assert!(payload_offset(&[0x11, 9, 0, 0, 0, 7]).is_err());
        assert!(payload_offset(&[0x11, 255, 255, 255, 255]).is_err());
    }

    #[test]
    fn other_versions_and_flags_are_refused() {
        for bad in [&[][..], &[0x00, 1], &[0x20, 1], &[0x12, 1], &[0x11, 1]] {
            assert!(payload_offset(bad).is_err(), "{bad:?}");
        }
    }
}
