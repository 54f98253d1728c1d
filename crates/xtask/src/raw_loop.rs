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
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let served = fill(&file).and_then(|()| {
        for line in requests.lines() {
            let (bytes, seconds) = parse(&line?)?;
            let lap = run(&file, bytes, seconds)?;
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
    drop(file);
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

fn run(file: &File, bytes: usize, seconds: f64) -> io::Result<Lap> {
    let record = vec![1; bytes];
    let mut laps = Vec::new();
    let mut offset = 0;
    let started = Instant::now();
    let mut last = started;
    while (last - started).as_secs_f64() < seconds || laps.is_empty() {
        if offset + bytes as u64 > FILE_BYTES {
            offset = 0;
        }
        file.write_all_at(&record, offset)?;
        file.sync_data()?;
        offset += bytes as u64;
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
