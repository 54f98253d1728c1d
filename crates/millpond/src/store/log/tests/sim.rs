//! A disk in memory that forgets at a crash: unsynced sectors each survive or not, names as far as a prefix goes.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::Random;
use crate::store::log::{Disk, DiskFile, DiskLock};

const SECTOR: usize = 512;

type Sector = [u8; SECTOR];

#[derive(Clone, Default)]
struct Inode {
    durable: Vec<u8>,
    cached: Vec<u8>,
    /// Versions of each sector since the last sync.
    dirty: BTreeMap<usize, Vec<Sector>>,
    synced_after_failure: u64,
    failed: bool,
}

#[derive(Clone)]
enum NameOp {
    Create(String, usize),
    Rename(String, String),
    Unlink(String),
}

fn apply(names: &mut BTreeMap<String, usize>, op: &NameOp) {
    match op {
        NameOp::Create(name, inode) => drop(names.insert(name.clone(), *inode)),
        NameOp::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        NameOp::Unlink(name) => drop(names.remove(name)),
    }
}

/// Everything the disk is at one moment.
#[derive(Clone, Default)]
pub(crate) struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    name_ops: Vec<NameOp>,
    /// Calls that change something, so far.
    pub(crate) calls: u64,
    /// Bytes that may still be written before the disk is full.
    pub(crate) room: Option<u64>,
    /// Every read fails.
    pub(crate) fail_reads: bool,
    /// The sync that fails, counted down.
    pub(crate) fail_sync_in: Option<u64>,
}

type Hook = Box<dyn Fn(&State) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Sim {
    pub(crate) state: Mutex<State>,
    /// Called after every call that changes something.
    pub(crate) hook: Mutex<Option<Hook>>,
}

#[derive(Clone)]
pub(crate) struct SimDisk(pub(crate) Arc<Sim>);

struct SimFile {
    sim: Arc<Sim>,
    inode: usize,
}

fn fault(code: Errno) -> io::Error {
    io::Error::from_raw_os_error(code.raw_os_error())
}

impl State {
    /// What may be left after a power cut now.
    pub(crate) fn crash(&self, random: &mut Random) -> State {
        // Some images keep nearly all, some nearly nothing.
        let kept = [0, 10, 50, 90, 100][random.size(5)];
        let mut inodes = Vec::new();
        for inode in &self.inodes {
            let mut bytes = inode.durable.clone();
            if inode.cached.len() > bytes.len() && random.below(100) < kept {
                bytes.resize(inode.cached.len(), 0);
            }
            for (sector, versions) in &inode.dirty {
                if random.below(100) < kept {
                    let from = sector * SECTOR;
                    let to = (from + SECTOR).min(bytes.len());
                    if from < to {
                        let version = &versions[random.size(versions.len())];
                        bytes[from..to].copy_from_slice(&version[..to - from]);
                    }
                }
            }
            inodes.push(Inode { durable: bytes.clone(), cached: bytes, ..Inode::default() });
        }
        let mut names = self.durable_names.clone();
        let prefix = random.size(self.name_ops.len() + 1);
        for op in &self.name_ops[..prefix] {
            apply(&mut names, op);
        }
        State { inodes, names: names.clone(), durable_names: names, ..State::default() }
    }

    /// Syncs that any file saw after one of them had failed on it.
    pub(crate) fn syncs_after_failure(&self) -> u64 {
        self.inodes.iter().map(|inode| inode.synced_after_failure).sum()
    }

    /// Names that a crash cannot bring back or take away.
    pub(crate) fn durable_names(&self) -> usize {
        self.durable_names.len()
    }

    /// Whether there are unsynced names, or unsynced bytes in a file with a name.
    pub(crate) fn is_telling(&self) -> bool {
        let dirty = |inode: &usize| !self.inodes[*inode].dirty.is_empty();
        !self.name_ops.is_empty() || self.names.values().any(dirty)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    fn sync_fails(&mut self) -> bool {
        match &mut self.fail_sync_in {
            Some(0) => {
                self.fail_sync_in = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }
}

impl SimDisk {
    pub(crate) fn new() -> Self {
        Self::of(State::default())
    }

    pub(crate) fn of(state: State) -> Self {
        Self(Arc::new(Sim { state: Mutex::new(state), hook: Mutex::new(None) }))
    }

    fn change<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        self.0.change(act)
    }
}

impl Sim {
    fn change<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock();
        let result = act(&mut state);
        state.calls += 1;
        if let Some(hook) = &*self.hook.lock() {
            hook(&state);
        }
        result
    }
}

impl Disk for SimDisk {
    fn path(&self) -> &Path {
        Path::new("/simulated")
    }

    fn lock(&self) -> io::Result<DiskLock> {
        Ok(DiskLock::Held(Box::new(())))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.state.lock().names())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.change(|state| {
            if state.names.contains_key(name) {
                return Err(fault(Errno::EXIST));
            }
            state.inodes.push(Inode::default());
            let inode = state.inodes.len() - 1;
            let op = NameOp::Create(name.to_owned(), inode);
            apply(&mut state.names, &op);
            state.name_ops.push(op);
            Ok(inode)
        })?;
        Ok(Arc::new(SimFile { sim: Arc::clone(&self.0), inode }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let inode = *self.0.state.lock().names.get(name).ok_or_else(|| fault(Errno::NOENT))?;
        Ok(Arc::new(SimFile { sim: Arc::clone(&self.0), inode }))
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|state| {
            if state.names.contains_key(to) {
                return Err(fault(Errno::EXIST));
            }
            let op = NameOp::Rename(from.to_owned(), to.to_owned());
            apply(&mut state.names, &op);
            state.name_ops.push(op);
            Ok(())
        })
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        self.change(|state| {
            if !state.names.contains_key(name) {
                return Err(fault(Errno::NOENT));
            }
            let op = NameOp::Unlink(name.to_owned());
            apply(&mut state.names, &op);
            state.name_ops.push(op);
            Ok(())
        })
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.change(|state| {
            if state.sync_fails() {
                return Err(fault(Errno::IO));
            }
            state.durable_names = state.names.clone();
            state.name_ops.clear();
            Ok(())
        })
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.sim.state.lock().inodes[self.inode].cached.len() as u64)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.sim.change(|state| {
            let mut bytes = bytes;
            let mut full = false;
            if let Some(room) = &mut state.room {
                if *room < bytes.len() as u64 {
                    bytes = &bytes[..usize::try_from(*room).unwrap()];
                    full = true;
                }
                *room -= bytes.len() as u64;
            }
            let inode = &mut state.inodes[self.inode];
            let from = usize::try_from(offset).unwrap();
            let to = from + bytes.len();
            if inode.cached.len() < to {
                inode.cached.resize(to, 0);
            }
            inode.cached[from..to].copy_from_slice(bytes);
            if from < to {
                for sector in from / SECTOR..=(to - 1) / SECTOR {
                    let mut version = [0; SECTOR];
                    let end = ((sector + 1) * SECTOR).min(inode.cached.len());
                    version[..end - sector * SECTOR].copy_from_slice(&inode.cached[sector * SECTOR..end]);
                    inode.dirty.entry(sector).or_default().push(version);
                }
            }
            if full { Err(fault(Errno::NOSPC)) } else { Ok(()) }
        })
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.sim.state.lock();
        if state.fail_reads {
            return Err(fault(Errno::IO));
        }
        Ok(read(&state.inodes[self.inode].cached, bytes, offset))
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.sim.state.lock();
        if state.fail_reads {
            return Err(fault(Errno::IO));
        }
        let inode = &state.inodes[self.inode];
        // Dirty pages stay where they are; after a failed sync the cache and the device differ for good.
        Ok(read(if inode.failed { &inode.durable } else { &inode.cached }, bytes, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sim.change(|state| {
            let fails = state.sync_fails();
            let inode = &mut state.inodes[self.inode];
            inode.synced_after_failure += u64::from(inode.failed);
            inode.dirty.clear();
            if fails {
                inode.failed = true;
                return Err(fault(Errno::IO));
            }
            if !inode.failed {
                inode.durable.clone_from(&inode.cached);
            }
            Ok(())
        })
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }
}

fn read(from: &[u8], bytes: &mut [u8], offset: u64) -> usize {
    let rest = from.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
    let count = rest.len().min(bytes.len());
    bytes[..count].copy_from_slice(&rest[..count]);
    count
}
