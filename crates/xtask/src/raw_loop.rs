//! The floor that every durable figure is compared with: write some bytes, `fdatasync`, again.
//!
//! The file is zero-filled first, so that no write extends it or takes new blocks: nothing but the bytes and the
//! flush is left to pay for.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A loop that comes to the end begins again at the start: the blocks are written by then either way.
const FILE_BYTES: u64 = 512 << 20;
const FILL_BYTES: usize = 1 << 20;

/// A zero-filled file that records are written into, each made durable.
pub struct RawFile {
    file: File,
    offset: u64,
}

impl RawFile {
    /// Makes the file and fills it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        fill(&file)?;
        Ok(Self { file, offset: 0 })
    }

    /// One write and one `fdatasync`.
    ///
    /// # Errors
    /// Those of the two calls; a record larger than the file is [`io::ErrorKind::InvalidInput`].
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if record.len() as u64 > FILE_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.offset + record.len() as u64 > FILE_BYTES {
            self.offset = 0;
        }
        self.file.write_all_at(record, self.offset)?;
        self.file.sync_data()?;
        self.offset += record.len() as u64;
        Ok(())
    }
}

/// What one loop did.
struct Lap {
    syncs: u64,
    seconds: f64,
    p50: Duration,
}

/// Answers each `BYTES SECONDS` line with one JSON line, until the input ends. Removes the file then.
///
/// # Errors
/// When the file cannot be written or a line is not understood.
pub fn serve(path: &Path, requests: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let served = RawFile::create(path).and_then(|mut file| {
        for line in requests.lines() {
            let (bytes, seconds) = parse(&line?)?;
            let lap = run(&mut file, bytes, seconds)?;
            writeln!(
                answers,
                "{{\"bytes\":{bytes},\"syncs\":{},\"seconds\":{:.6},\"p50Micros\":{:.1}}}",
                lap.syncs,
                lap.seconds,
                lap.p50.as_secs_f64() * 1e6
            )?;
            answers.flush()?;
        }
        Ok(())
    });
    std::fs::remove_file(path)?;
    served
}

fn parse(line: &str) -> io::Result<(usize, f64)> {
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, format!("not `BYTES SECONDS`: {line:?}"));
    let (bytes, seconds) = line.split_once(' ').ok_or_else(bad)?;
    let bytes: usize = bytes.parse().map_err(|_| bad())?;
    let seconds: f64 = seconds.parse().map_err(|_| bad())?;
    if bytes == 0 || bytes as u64 > FILE_BYTES || !(0.0..=3600.0).contains(&seconds) {
        return Err(bad());
    }
    Ok((bytes, seconds))
}

fn fill(file: &File) -> io::Result<()> {
    let zeros = vec![0; FILL_BYTES];
    for offset in (0..FILE_BYTES).step_by(FILL_BYTES) {
        file.write_all_at(&zeros, offset)?;
    }
    file.sync_all()
}

fn run(file: &mut RawFile, bytes: usize, seconds: f64) -> io::Result<Lap> {
    let record = vec![1; bytes];
    let mut laps = Vec::new();
    let started = Instant::now();
    let mut last = started;
    while (last - started).as_secs_f64() < seconds || laps.is_empty() {
        file.append(&record)?;
        let now = Instant::now();
        laps.push(now - last);
        last = now;
    }
    laps.sort_unstable();
    Ok(Lap { syncs: laps.len() as u64, seconds: (last - started).as_secs_f64(), p50: laps[laps.len() / 2] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_make_no_sense_are_refused() {
        for bad in ["", "1", "0 1", "256 -1", "256 x", "x 1", "256 NaN", "99999999999 1"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(matches!(parse("256 1.5"), Ok((256, seconds)) if seconds > 1.4));
    }
}
