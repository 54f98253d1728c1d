//! The seam of the log on a [`Medium`].

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use millpond::store::{Disk, DiskFile, DiskLock};
use parking_lot::Mutex;
use rustix::io::Errno;

use super::fault::{Fault, Kind, Plan};
use super::medium::{Medium, folder_of};
use crate::random::Random;

/// A call that changed something, or made something durable.
#[derive(Clone, Debug)]
pub enum Call {
    /// A file was made.
    Create(String),
    /// Bytes were written to a file: which one, where, how many.
    Write(usize, u64, usize),
    /// A file was synced.
    Sync(usize),
    /// A name was changed.
    Rename(String, String),
    /// A name was removed.
    Unlink(String),
    /// The directory was synced.
    SyncDir,
}

impl Call {
    /// Whether it changes what is on the disk rather than making it durable.
    pub fn is_change(&self) -> bool {
        !matches!(self, Call::Sync(_) | Call::SyncDir)
    }
}

type Observer = Box<dyn FnMut(&Medium, &Call) + Send>;

struct State {
    medium: Medium,
    /// The process that had it is gone.
    dead: bool,
    random: Random,
    plan: Option<Plan>,
    /// Bytes that may still be written before the disk is full.
    room: Option<u64>,
    changes: u64,
}

struct Shared {
    state: Mutex<State>,
    /// Called after every call of [`Call`]'s kinds that succeeded or failed halfway.
    observer: Mutex<Option<Observer>>,
}

/// One mount of a simulated disk, by one process, or a folder of it.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
    /// What the names in the folder begin with on the medium; nothing for the directory itself.
    folder: Arc<str>,
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").finish_non_exhaustive()
    }
}

fn fault(code: Errno) -> io::Error {
    io::Error::from_raw_os_error(code.raw_os_error())
}

impl SimDisk {
    /// Mounts a medium. `seed` decides the random bytes that the log asks for and what a failed sync leaves.
    pub fn on(medium: Medium, seed: u64) -> Self {
        let random = Random::new(seed);
        let state = State { medium, dead: false, random, plan: None, room: None, changes: 0 };
        let shared = Shared { state: Mutex::new(state), observer: Mutex::new(None) };
        Self { shared: Arc::new(shared), folder: Arc::from("") }
    }

    /// Calls `observer` after every call that changes something or makes something durable.
    pub fn observe(&self, observer: impl FnMut(&Medium, &Call) + Send + 'static) {
        *self.shared.observer.lock() = Some(Box::new(observer));
    }

    /// Calls nobody any more.
    pub fn unobserve(&self) {
        *self.shared.observer.lock() = None;
    }

    /// What is to fail from now on.
    pub fn plan(&self, fault: Option<Fault>) {
        self.shared.state.lock().plan = fault.map(Plan::new);
    }

    /// How often the planned fault struck.
    pub fn fired(&self) -> u64 {
        self.shared.state.lock().plan.as_ref().map_or(0, |plan| plan.fired)
    }

    /// Leaves room for so many bytes more, or for any number.
    pub fn set_room(&self, room: Option<u64>) {
        self.shared.state.lock().room = room;
    }

    /// Calls that changed something so far, syncs not counted.
    pub fn changes(&self) -> u64 {
        self.shared.state.lock().changes
    }

    /// The number of the file of this name; a file keeps its number for as long as the disk lives.
    ///
    /// # Errors
    /// When there is no such file, or the process is gone.
    pub fn number(&self, name: &str) -> io::Result<usize> {
        let name = &self.name(name);
        self.ask(Kind::Open, |state| state.medium.names.get(name).copied().ok_or_else(|| fault(Errno::NOENT)))
    }

    /// The file of this number, whatever its name is by now.
    pub fn file(&self, number: usize) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { disk: self.clone(), inode: number })
    }

    /// The medium as it is now.
    pub fn medium(&self) -> Medium {
        self.shared.state.lock().medium.clone()
    }

    /// The process ends here: every later call through this mount fails and changes nothing.
    pub fn kill(&self) -> Medium {
        let mut state = self.shared.state.lock();
        state.dead = true;
        state.medium.clone()
    }

    /// A name of this folder as the medium has it.
    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.folder)
    }

    /// Makes a call that is worth an observation; `act` may fail halfway.
    fn change<T>(
        &self,
        kind: Kind,
        call: impl FnOnce(&T) -> Call,
        act: impl FnOnce(&mut State, bool) -> io::Result<T>,
    ) -> io::Result<T>
    where
        T: Default,
    {
        let mut state = self.shared.state.lock();
        if state.dead {
            return Err(fault(Errno::IO));
        }
        let planned = state.plan.as_mut().and_then(|plan| plan.check(kind));
        let result = match planned {
            None => act(&mut state, false),
            Some((error, half)) => {
                let syncs = matches!(kind, Kind::Sync | Kind::SyncDir);
                if half || syncs {
                    let _ = act(&mut state, true);
                }
                Err(error)
            }
        };
        let call = call(result.as_ref().unwrap_or(&T::default()));
        state.changes += u64::from(call.is_change());
        if let Some(observer) = &mut *self.shared.observer.lock() {
            observer(&state.medium, &call);
        }
        result
    }

    fn ask<T>(&self, kind: Kind, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.shared.state.lock();
        if state.dead {
            return Err(fault(Errno::IO));
        }
        match state.plan.as_mut().and_then(|plan| plan.check(kind)) {
            Some((error, _)) => Err(error),
            None => act(&mut state),
        }
    }
}

impl Disk for SimDisk {
    fn path(&self) -> &Path {
        Path::new("/simulated")
    }

    fn lock(&self) -> io::Result<DiskLock> {
        self.ask(Kind::Lock, |_| Ok(DiskLock::Held(Box::new(()))))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.ask(Kind::List, |state| {
            let own = |name: &&String| folder_of(name) == &*self.folder;
            let names = state.medium.names.keys().filter(own);
            Ok(names.map(|name| name[self.folder.len()..].to_owned()).collect())
        })
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let name = &self.name(name);
        let inode = self.change(
            Kind::Create,
            |_| Call::Create(name.to_owned()),
            |state, _| {
                if state.medium.names.contains_key(name) {
                    return Err(fault(Errno::EXIST));
                }
                Ok(state.medium.create(name))
            },
        )?;
        Ok(Arc::new(SimFile { disk: self.clone(), inode }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.number(name).map(|number| self.file(number))
    }

    fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (&self.name(from), &self.name(to));
        self.change(
            Kind::Rename,
            |()| Call::Rename(from.to_owned(), to.to_owned()),
            |state, _| {
                if state.medium.names.contains_key(to) {
                    return Err(fault(Errno::EXIST));
                }
                if !state.medium.names.contains_key(from) {
                    return Err(fault(Errno::NOENT));
                }
                state.medium.rename(from, to);
                Ok(())
            },
        )
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        let name = &self.name(name);
        self.change(
            Kind::Unlink,
            |()| Call::Unlink(name.to_owned()),
            |state, _| {
                if !state.medium.names.contains_key(name) {
                    return Err(fault(Errno::NOENT));
                }
                state.medium.unlink(name);
                Ok(())
            },
        )
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.change(
            Kind::SyncDir,
            |()| Call::SyncDir,
            |state, fails| {
                match (self.folder.is_empty(), fails) {
                    (true, false) => state.medium.sync_dir(),
                    (true, true) => state.medium.sync_dir_failed(&mut state.random),
                    (false, _) => {
                        let random = &mut state.random;
                        state.medium.sync_names(&self.folder, |_| !fails || random.below(2) == 0);
                    }
                }
                Ok(())
            },
        )
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let name = &self.name(name);
        if !self.ask(Kind::Open, |state| Ok(state.medium.names.contains_key(name)))? {
            self.change(
                Kind::Create,
                |()| Call::Create(name.clone()),
                |state, _| {
                    state.medium.create(name);
                    Ok(())
                },
            )?;
        }
        Ok(Arc::new(Self { shared: Arc::clone(&self.shared), folder: format!("{name}/").into() }))
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.ask(Kind::Random, |state| {
            bytes.fill_with(|| u8::try_from(state.random.below(256)).unwrap_or(0));
            Ok(())
        })
    }
}

struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.ask(Kind::Len, |state| {
            Ok(state.medium.inodes.get(&self.inode).map_or(0, |inode| inode.cached.len))
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.change(
            Kind::Write,
            |()| Call::Write(self.inode, offset, bytes.len()),
            |state, half| {
                let mut fits = if half { bytes.len() / 2 } else { bytes.len() };
                if let Some(room) = &mut state.room {
                    fits = fits.min(usize::try_from(*room).unwrap_or(usize::MAX));
                    *room -= fits as u64;
                }
                state.medium.write(self.inode, &bytes[..fits], offset);
                if fits < bytes.len() && !half { Err(fault(Errno::NOSPC)) } else { Ok(()) }
            },
        )
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.ask(Kind::Read, |state| Ok(state.medium.read(self.inode, bytes, offset)))
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.ask(Kind::Read, |state| Ok(state.medium.read_uncached(self.inode, bytes, offset)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.change(
            Kind::Sync,
            |()| Call::Sync(self.inode),
            |state, fails| {
                if fails {
                    state.medium.sync_failed(self.inode, &mut state.random);
                } else {
                    state.medium.sync(self.inode);
                }
                Ok(())
            },
        )
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }
}
