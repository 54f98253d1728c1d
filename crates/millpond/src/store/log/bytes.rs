//! Little-endian numbers in byte strings.

/// The number at `at`, which must be inside.
pub(super) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    let mut raw = [0; 4];
    raw.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(raw)
}

/// The number at `at`, which must be inside.
pub(super) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(raw)
}

/// A size in memory. What does not fit an address space is never asked for: every size is bounded by a file first.
pub(super) fn usize_of(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Takes a byte string apart from the front; every step says when it ends too early.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|raw| get_u32(raw, 0))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|raw| get_u64(raw, 0))
    }
}
