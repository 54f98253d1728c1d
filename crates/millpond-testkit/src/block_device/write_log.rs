//! The recording: what was written to a device and when it was flushed, in the format of the kernel's `dm-log-writes`.
//!
//! The first sector is the super block. Then come entries: one sector that says where, how much and how
//! (`sector`, `sectors`, `flags`, `bytes of a mark`, each 64 bits, little endian), and the written sectors. The daemon
//! serves one request of the export at a time, so an entry before a flush was complete when the flush began.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::SECTOR;

/// The first eight bytes of a recording.
const MAGIC: u64 = 0x006a_7366_7773_6872;
/// The only version.
const VERSION: u64 = 1;

const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

/// One request that reached the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its first sector on the device.
    pub sector: u64,
    /// How many sectors it covers.
    pub sectors: u64,
    /// Everything before it is durable when it is answered.
    pub flushes: bool,
    /// It is durable itself when it is answered.
    pub is_durable: bool,
    /// It gives up the sectors' content and carries no data.
    pub discards: bool,
    /// Where its data begins in the recording, in bytes.
    pub data: u64,
    /// Where the recording ends with this entry, in bytes.
    pub end: u64,
}

impl Entry {
    /// Whether it changes sectors.
    pub fn writes(&self) -> bool {
        self.sectors > 0 && !self.discards
    }
}

/// A recording.
#[derive(Debug)]
pub struct WriteLog {
    file: File,
    /// What reached the device, in order.
    pub entries: Vec<Entry>,
}

impl WriteLog {
    /// Reads the recording of a device that has stopped.
    ///
    /// # Errors
    /// A file that is no recording, or ends within an entry.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        if word(&file, 0)? != MAGIC || word(&file, 8)? != VERSION || word(&file, 24)? & 0xFFFF_FFFF != SECTOR
        {
            return Err(invalid("no recording of version 1 in sectors of 512 bytes".to_owned()));
        }
        let entries = entries(&file, length)?;
        if entries.last().map_or(SECTOR, |entry| entry.end) < length {
            return Err(invalid(format!("entry {} ends behind the file", entries.len())));
        }
        Ok(Self { file, entries })
    }

    /// The data of an entry that writes.
    ///
    /// # Errors
    /// That of reading it.
    pub fn data(&self, entry: &Entry) -> io::Result<Vec<u8>> {
        let bytes = usize::try_from(entry.sectors * SECTOR).map_err(io::Error::other)?;
        let mut data = vec![0; bytes];
        self.file.read_exact_at(&mut data, entry.data)?;
        Ok(data)
    }

    /// The index of the first entry that came after the recording had this many bytes.
    pub fn first_after(&self, bytes: u64) -> usize {
        self.entries.partition_point(|entry| entry.end <= bytes)
    }
}

fn word(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_le_bytes(bytes))
}

/// All entries that are whole.
fn entries(file: &File, length: u64) -> io::Result<Vec<Entry>> {
    let (mut entries, mut at) = (Vec::new(), SECTOR);
    while at.saturating_add(SECTOR) <= length {
        let (sector, sectors) = (word(file, at)?, word(file, at + 8)?);
        let (flags, mark) = (word(file, at + 16)?, word(file, at + 24)?);
        if flags & !(FLUSH | FUA | DISCARD) != 0 || mark != 0 {
            return Err(invalid(format!("entry {}: flags {flags:#x}, {MARK:#x} is a mark", entries.len())));
        }
        let discards = flags & DISCARD != 0;
        let data = at + SECTOR;
        let bytes = if discards { Some(0) } else { sectors.checked_mul(SECTOR) };
        let end = bytes.and_then(|bytes| data.checked_add(bytes));
        let Some(end) = end.filter(|end| *end <= length) else { break };
        at = end;
        let (flushes, is_durable) = (flags & FLUSH != 0, flags & FUA != 0);
        entries.push(Entry { sector, sectors, flushes, is_durable, discards, data, end });
    }
    Ok(entries)
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of these entries: sector, flags, data.
    fn recording(entries: &[(u64, u64, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [MAGIC, VERSION, entries.len() as u64, SECTOR] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(512, 0);
        for (sector, flags, data) in entries {
            let start = bytes.len();
            for word in [*sector, data.len() as u64 / SECTOR, *flags, 0] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.resize(start + 512, 0);
            bytes.extend_from_slice(data);
        }
        bytes
    }

    fn open(bytes: &[u8]) -> io::Result<WriteLog> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        WriteLog::open(file.path())
    }

    #[test]
    fn entries_are_read_with_their_marks_and_data() {
        let log = open(&recording(&[(7, 0, &[1; 1024]), (0, FLUSH, &[]), (9, FUA, &[2; 512])])).unwrap();
        let [write, flush, durable] = log.entries.as_slice() else { panic!("{:?}", log.entries) };
        assert_eq!((write.sector, write.sectors, write.flushes, write.end), (7, 2, false, 2048));
        assert!(flush.flushes && !flush.writes());
        assert!(durable.is_durable && durable.writes());
        assert_eq!(log.data(write).unwrap(), [1; 1024]);
        assert_eq!(log.data(durable).unwrap(), [2; 512]);
        assert_eq!([512, 2047, 2048, 2560].map(|bytes| log.first_after(bytes)), [0, 0, 1, 2]);
    }

    #[test]
    fn a_recording_that_ends_within_an_entry_is_refused() {
        let whole = recording(&[(7, 0, &[1; 1024])]);
        for length in [513, 543, 1024, 2047] {
            assert!(open(&whole[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(open(&whole).unwrap().entries.len(), 1);
    }

    #[test]
    fn another_format_is_refused() {
        let whole = recording(&[]);
        for at in [0, 8, 25] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(open(&changed).is_err(), "byte {at}");
        }
        assert!(open(&recording(&[(0, MARK, &[])])).is_err());
    }
}
