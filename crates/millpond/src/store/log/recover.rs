//! Opening a log: reads what it must, decides, and changes nothing on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::LogOptions;
use super::disk::{Disk, DiskFile};
use super::error::LogError;
use super::footer;
use super::frame;
use super::handles::Handles;
use super::index::Index;
use super::open_record::{self, Living, OpenRecord};
use super::planted::{self, Fault as Planted};
use super::progress::{OpenProgress, Progress};
use super::scan::{self, Stretch, Window};
use super::segment::{self, BLOCK, BLOCK_BYTES, Header, Identity, RECORD_AT, Segment};
use super::trace;
use crate::store::{Damage, RecoveryReport};

/// What recovery found.
pub(super) struct Recovered {
    pub(super) identity: Identity,
    pub(super) index: Index,
    pub(super) report: RecoveryReport,
    /// The number of the next file.
    pub(super) next: u64,
    /// Names that no living segment has; the thread unlinks them after the first append.
    pub(super) leftovers: Vec<String>,
    /// The last segment, if it came into use and holds no frame.
    pub(super) unused: Option<u64>,
}

/// A file with a header of this queue.
pub(super) struct Candidate {
    pub(super) header: Header,
    pub(super) file: Arc<dyn DiskFile>,
}

impl Candidate {
    pub(super) fn is_recycled(&self) -> bool {
        self.header.recycled
    }
}

/// Error of a scan, which knows no path.
enum Fault {
    Read(io::Error),
    Log(LogError),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// A recovery under way.
pub(super) struct Recovery<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) files: BTreeMap<u64, Candidate>,
    /// Files without a valid header, by the number in their name.
    pub(super) headless: BTreeMap<u64, Arc<dyn DiskFile>>,
    pub(super) index: Index,
    pub(super) report: RecoveryReport,
    pub(super) next: u64,
    pub(super) leftovers: Vec<String>,
    pub(super) unused: Option<u64>,
    /// Files without a valid record that hold something of their life all the same.
    traces: BTreeSet<u64>,
    /// Segments that a vouched frame let go.
    pub(super) released: BTreeSet<u64>,
    /// Largest mark and first bad byte at or above it, of segments whose end nobody vouches for.
    pub(super) open_ends: BTreeMap<u64, (u64, u64)>,
    /// Every frame is read and every payload checked, whatever footers say.
    pub(super) verify: bool,
    progress: Progress<'a>,
}

/// Reads the log in this directory.
pub(super) fn recover(
    disk: &dyn Disk,
    handles: &Arc<Handles>,
    options: &LogOptions,
    progress: &mut dyn FnMut(OpenProgress),
) -> Result<Recovered, LogError> {
    let mut recovery = Recovery {
        disk,
        files: BTreeMap::new(),
        headless: BTreeMap::new(),
        index: Index::default(),
        report: RecoveryReport { clean: true, ..RecoveryReport::default() },
        next: 1,
        leftovers: Vec::new(),
        unused: None,
        traces: BTreeSet::new(),
        released: BTreeSet::new(),
        open_ends: BTreeMap::new(),
        verify: options.verify || options.strict,
        progress: Progress::new(progress),
    };
    let identity = recovery.read_headers(handles)?;
    let authority = recovery.newest_record()?;
    recovery.replay(identity.unwrap_or_default(), authority)?;
    let Recovery { index, report, next, leftovers, unused, .. } = recovery;
    if let Some(damage) = report.damage.first().filter(|_| options.strict) {
        let path = disk.path().join(&damage.file);
        return Err(LogError::Corrupt { path, offset: damage.offset, reason: damage.reason });
    }
    let identity = match identity {
        Some(identity) => identity,
        None => new_identity(disk)?,
    };
    Ok(Recovered { identity, index, report, next, leftovers, unused })
}

fn new_identity(disk: &dyn Disk) -> Result<Identity, LogError> {
    let mut identity = Identity::default();
    disk.random(&mut identity)
        .map_err(|error| LogError::io("getrandom", disk.path().to_path_buf(), error))?;
    Ok(identity)
}

impl Recovery<'_> {
    fn path(&self, number: u64) -> PathBuf {
        self.disk.path().join(segment::name(number))
    }

    /// The size of a file as its header has it.
    pub(super) fn size_of(&self, number: u64) -> Option<u64> {
        self.files.get(&number).map(|file| file.header.size)
    }

    fn read_failed(&self, number: u64) -> impl Fn(io::Error) -> LogError + use<> {
        let path = self.path(number);
        move |error| LogError::io("pread", path.clone(), error)
    }

    pub(super) fn damaged(
        &mut self,
        number: u64,
        range: (u64, u64),
        ids: (Option<u64>, Option<u64>),
        reason: &'static str,
    ) {
        self.report.damage.push(Damage {
            file: segment::name(number),
            offset: range.0,
            bytes: range.1.saturating_sub(range.0),
            first_id: ids.0,
            last_id: ids.1,
            reason,
        });
        if let Some(part) = self.index.parts.get_mut(&number) {
            part.damaged = true;
        }
    }

    /// Opens every segment file and tells ours from others.
    fn read_headers(&mut self, handles: &Arc<Handles>) -> Result<Option<Identity>, LogError> {
        let directory = self.disk.path().to_path_buf();
        let names = self.disk.list().map_err(|error| LogError::io("getdents", directory, error))?;
        let mut found = Vec::new();
        for name in names {
            let Some((number, temporary)) = segment::number_of(&name) else { continue };
            self.next = self.next.max(number.saturating_add(1));
            if temporary {
                self.leftovers.push(name);
                continue;
            }
            let file = handles.file(name);
            let mut start = vec![0; 2 * BLOCK_BYTES];
            let got = file.read_uncached_at(&mut start, 0).map_err(self.read_failed(number))?;
            let len = file.len().map_err(self.read_failed(number))?;
            found.push((number, Header::decode(&start[..got])?, file, len));
        }
        found.sort_by_key(|(number, ..)| *number);
        let mut votes = BTreeMap::<Identity, usize>::new();
        for header in found.iter().filter_map(|(_, header, ..)| header.as_ref()) {
            *votes.entry(header.identity).or_default() += 1;
        }
        // A stray file from another queue must not take the log over, so the many decide.
        let most = votes.values().max().copied();
        let identity =
            found.iter().filter_map(|(_, header, ..)| header.as_ref()).map(|header| header.identity);
        let identity = identity.into_iter().find(|identity| votes.get(identity).copied() == most);
        for (number, header, file, len) in found {
            match header {
                Some(header) if Some(header.identity) != identity => {
                    self.damaged(number, (0, len), (None, None), "the file belongs to another queue");
                }
                Some(header) if header.number != number => {
                    self.damaged(number, (0, len), (None, None), "the file has the name of another segment");
                }
                Some(header) => {
                    self.files.insert(number, Candidate { header, file });
                }
                None => {
                    self.damaged(
                        number,
                        (0, len.min(2 * BLOCK)),
                        (None, None),
                        "no copy of the header is valid",
                    );
                    self.headless.insert(number, file);
                }
            }
        }
        Ok(identity)
    }

    /// The newest valid open record, with the number of its segment.
    fn newest_record(&mut self) -> Result<Option<(u64, OpenRecord)>, LogError> {
        for (number, file) in self.files.iter().rev() {
            let failed = self.read_failed(*number);
            if !trace::may_be_in_use(file).map_err(&failed)? {
                continue;
            }
            let record = read_record(file.file.as_ref(), file.header.seed(), *number);
            if let Some((record, _)) = record.map_err(failed)? {
                return Ok(Some((*number, record)));
            }
            self.traces.insert(*number);
        }
        Ok(None)
    }

    /// Gives files whose header is lost the one that the authority knows.
    fn adopt(&mut self, identity: Identity, living: &[Living]) {
        for part in living {
            if let Some(file) = self.headless.remove(&part.number) {
                let (generation, number, size) = (part.generation, part.number, part.size);
                let header = Header { identity, generation, number, size, recycled: false };
                self.files.insert(number, Candidate { header, file });
            }
        }
    }

    fn replay(&mut self, identity: Identity, authority: Option<(u64, OpenRecord)>) -> Result<(), LogError> {
        let (authority, record) = authority.unzip();
        let record = record.unwrap_or_default();
        if let Some((what, bits)) = record.unknown {
            return Err(LogError::UnknownFeature { what, bits });
        }
        let mut living = record.living;
        self.index.kv = record.kv;
        self.index.highest = record.highest;
        let listed: BTreeSet<u64> = living.iter().map(|part| part.number).collect();
        let last_listed = listed.last().map_or(0, |number| number.saturating_add(1));
        self.next = self.next.max(last_listed);
        let own = authority.unwrap_or(0);
        self.adopt(identity, &living);
        for (number, file) in &self.files {
            let unlisted = Living {
                number: *number,
                generation: file.header.generation,
                size: file.header.size,
                ..Living::default()
            };
            if *number == own && authority.is_some() {
                living.push(unlisted);
            } else if *number > own {
                // No valid record: a spare, or a segment whose record was damaged after it had been durable.
                let proven = self.traces.contains(number)
                    && proves_its_record(file).map_err(self.read_failed(*number))?;
                if proven {
                    living.push(unlisted);
                }
            }
        }
        self.report_short_spares(&living)?;
        living.sort_by_key(|part| part.number);
        // What the authority lists was synced before the authority was written.
        self.sync(living.iter().filter(|part| part.number >= own))?;
        // Sizes are what a record says.
        self.progress.total = living.iter().fold(0, |total, part| part.size.saturating_add(total));
        for part in &living {
            self.add_part(part);
            self.read_segment(part, part.number >= own, listed.contains(&part.number))?;
            self.progress.done = self.progress.done.saturating_add(part.size);
        }
        self.let_go(&living);
        self.report_missing(&living);
        self.forget_lost();
        let in_use: BTreeSet<u64> = living.iter().map(|part| part.number).collect();
        let dead =
            self.files.keys().filter(|number| !in_use.contains(number)).map(|number| segment::name(*number));
        self.leftovers.extend(dead);
        self.report.clean &= match living.last() {
            Some(newest) => self.index.parts.contains_key(&newest.number),
            None => self.report.damage.is_empty(),
        };
        Ok(())
    }

    /// A file has its full size before it has its name: one that is shorter, and in which nothing tells whether it was
    /// in use, may have lost what was.
    fn report_short_spares(&mut self, living: &[Living]) -> Result<(), LogError> {
        let newest = living.iter().map(|part| part.number).max().unwrap_or(0);
        let mut short = Vec::new();
        for (number, file) in self.files.range(newest.saturating_add(1)..) {
            let len = file.file.len().map_err(self.read_failed(*number))?;
            if len < file.header.size {
                short.push((*number, (len, file.header.size)));
            }
        }
        for (number, range) in short {
            self.damaged(number, range, (None, None), "the file is too short");
        }
        Ok(())
    }

    /// Makes what will be trusted durable: a writer that was killed may have left it in the page cache only.
    fn sync<'l>(&self, living: impl Iterator<Item = &'l Living>) -> Result<(), LogError> {
        let skips = planted::is(Planted::SkipRecoverySync);
        for part in living.filter(|_| !skips) {
            if let Some(file) = self.files.get(&part.number) {
                let failed = |error| LogError::io("fsync", self.path(part.number), error);
                file.file.sync_all().map_err(failed)?;
            }
        }
        let failed = |error| LogError::io("fsync", self.disk.path().to_path_buf(), error);
        self.disk.sync_dir().map_err(failed)
    }

    fn add_part(&mut self, part: &Living) {
        let same = |file: &&Candidate| file.header.generation == part.generation;
        if let Some(file) = self.files.get(&part.number).filter(same) {
            let segment = Segment::new(file.header, Arc::clone(&file.file), u64::MAX);
            self.index.add_part(Arc::new(segment), part.clone());
            let name = segment::name(part.number);
            if let Some(added) = self.index.parts.get_mut(&part.number) {
                added.damaged = self.report.damage.iter().any(|damage| damage.file == name);
            }
        }
    }

    /// Takes over what one segment holds: by its footer if it has one that holds good, else by its frames.
    fn read_segment(&mut self, part: &Living, replays_kv: bool, listed: bool) -> Result<(), LogError> {
        let number = part.number;
        if !self.index.parts.contains_key(&number) {
            return Ok(());
        }
        if !self.verify && self.read_footer(part, replays_kv, listed).map_err(self.read_failed(number))? {
            return Ok(());
        }
        self.read_frames(part, replays_kv, listed)?;
        let end = self.index.parts.get(&number).map_or(0, |part| part.about.live_end);
        if let Some(cold) = self.index.frozen(number, end) {
            self.index.freeze(number, cold);
        }
        Ok(())
    }

    /// Takes over the frames of one segment and judges what is no frame.
    fn read_frames(&mut self, part: &Living, replays_kv: bool, listed: bool) -> Result<(), LogError> {
        let number = part.number;
        let failed = self.read_failed(number);
        let Some(file) = self.files.get(&number) else { return Ok(()) };
        let seed = file.header.seed();
        let handle = Arc::clone(&file.file);
        let from = read_record(handle.as_ref(), seed, number).map_err(&failed)?;
        let from = from.map_or(RECORD_AT, |(_, frames)| frames);
        let window = if listed { Window::cached(handle.as_ref()) } else { Window::new(handle.as_ref()) };
        let mut window = window.map_err(&failed)?;
        let to = listed.then_some(part.live_end);
        let most = footer::seal_at(file.header.size);
        let stretch = Stretch { seed, from, to, most, torn: &part.torn };
        let Self { index, progress, .. } = self;
        let found = scan::scan(&mut window, &stretch, |at, head, payload| {
            progress.reached(at);
            if let Some((what, bits)) = head.unknown() {
                return Err(Fault::Log(LogError::UnknownFeature { what, bits }));
            }
            if replays_kv || !matches!(head.kind, frame::KV_PUT | frame::KV_DELETE) {
                index.apply(number, at, head, payload);
            }
            Ok(())
        });
        let found = found.map_err(|fault| match fault {
            Fault::Read(error) => failed(error),
            Fault::Log(error) => error,
        })?;
        if listed {
            self.judge_listed(part, &found);
        } else {
            self.judge_last(number, from, &found, window.len);
        }
        Ok(())
    }
}

/// The open record of a file, from whichever copy is valid.
fn read_record(file: &dyn DiskFile, seed: u32, number: u64) -> io::Result<Option<(OpenRecord, u64)>> {
    let mut window = Window::small(file)?;
    let mut at = RECORD_AT;
    let mut bound = RECORD_AT + 1;
    // The second copy begins in the block behind the first; where the first does not say how long it is, the copies
    // are looked for as far as two records could reach.
    while at < window.len && at < bound {
        let start = window.at(at, BLOCK_BYTES)?;
        let Some(length) = open_record::length_of(start).filter(|length| at + *length as u64 <= window.len)
        else {
            bound = window.len;
            at += BLOCK;
            if at == RECORD_AT + BLOCK {
                // From here on it is a search.
                window = Window::new(file)?;
            }
            continue;
        };
        let bytes = window.at(at, length)?;
        if let Some(record) = bytes.get(..length).and_then(|bytes| open_record::open(bytes, seed, at, number))
        {
            return Ok(Some((record, open_record::frames_at(length as u64))));
        }
        bound = window.len;
        at += BLOCK;
    }
    Ok(None)
}

/// Whether a frame says that this segment was synced while it was in use: then its record had been durable.
fn proves_its_record(file: &Candidate) -> io::Result<bool> {
    let mut window = Window::new(file.file.as_ref())?;
    let most = footer::seal_at(file.header.size);
    let stretch = Stretch { seed: file.header.seed(), from: RECORD_AT, to: None, most, torn: &[] };
    let found = scan::scan::<io::Error>(&mut window, &stretch, |_, _, _| Ok(()))?;
    Ok(found.mark > 0)
}
