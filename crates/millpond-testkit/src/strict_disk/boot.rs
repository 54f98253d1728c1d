//! One boot of a machine: a disk with one folder, from the moment it is mounted to a crash.

use std::io;

use millpond::store::Disk;
use rustix::io::Errno;

use crate::ledger::Crash;
use crate::random::Random;
use crate::sim_disk::{Fault, Medium, SimDisk};

/// Whether the queue's directory has its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Folder {
    #[default]
    Missing,
    /// It was made, and its parent was not synced since.
    Unsynced,
    Durable,
}

/// What a crash left.
#[derive(Clone, Default)]
pub struct Remains {
    medium: Medium,
    folder: Folder,
}

/// Syncs that answer success and do nothing: what a build without them would do to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deaf {
    /// None.
    #[default]
    No,
    /// Those of files.
    Files,
    /// Those of directories.
    Directories,
}

/// What is to happen in a boot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// The machine is cut off before this call that changes or syncs something, counted from 1.
    pub cut: Option<u64>,
    /// This write takes half of its bytes and says so, counted from 1.
    pub short: Option<u64>,
    /// Calls that fail.
    pub fault: Option<Fault>,
    /// Syncs that do nothing.
    pub deaf: Deaf,
}

/// How a boot went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// It was cut off.
    pub was_cut: bool,
    /// Planned failures that came.
    pub failed: u64,
    /// Writes that took half.
    pub short: u64,
}

/// A boot.
pub(super) struct Boot {
    pub(super) disk: SimDisk,
    folder: Folder,
    plan: Plan,
    is_cut: bool,
    calls: u64,
    writes: u64,
    short: u64,
}

impl Boot {
    pub(super) fn new(remains: Remains, plan: Plan, seed: u64) -> Self {
        let disk = SimDisk::on(remains.medium, seed);
        disk.plan(plan.fault);
        Self { disk, folder: remains.folder, plan, is_cut: false, calls: 0, writes: 0, short: 0 }
    }

    pub(super) fn has_folder(&self) -> bool {
        self.folder != Folder::Missing
    }

    pub(super) fn make_folder(&mut self) -> io::Result<()> {
        self.step()?;
        if self.has_folder() {
            return Err(Errno::EXIST.into());
        }
        self.folder = Folder::Unsynced;
        Ok(())
    }

    /// Makes the name of the queue's directory durable.
    pub(super) fn sync_parent(&mut self) -> io::Result<()> {
        self.step()?;
        if self.has_folder() && self.plan.deaf != Deaf::Directories {
            self.folder = Folder::Durable;
        }
        Ok(())
    }

    pub(super) fn sync_folder(&mut self) -> io::Result<()> {
        self.step()?;
        if self.plan.deaf == Deaf::Directories { Ok(()) } else { self.disk.sync_dir() }
    }

    pub(super) fn sync_file(&mut self, number: usize) -> io::Result<()> {
        self.step()?;
        if self.plan.deaf == Deaf::Files { Ok(()) } else { self.disk.file(number).sync_data() }
    }

    /// Writes, and says how many bytes were taken.
    pub(super) fn write(&mut self, number: usize, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.step()?;
        self.writes += 1;
        let is_short = self.plan.short == Some(self.writes) && bytes.len() > 1;
        self.short += u64::from(is_short);
        let count = if is_short { bytes.len() / 2 } else { bytes.len() };
        self.disk.file(number).write_all_at(&bytes[..count], offset)?;
        Ok(count)
    }

    /// Counts a call that changes or syncs something; the planned one meets a machine that is off.
    pub(super) fn step(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.plan.cut == Some(self.calls) {
            self.is_cut = true;
            self.disk.kill();
        }
        if self.is_cut { Err(Errno::IO.into()) } else { Ok(()) }
    }

    pub(super) fn log(&self) -> Log {
        Log { was_cut: self.is_cut, failed: self.disk.fired(), short: self.short }
    }

    /// Ends the boot, and says what is left of it.
    pub(super) fn end(self, crash: Crash, random: &mut Random) -> Remains {
        let medium = self.disk.kill();
        match crash {
            Crash::Kill => Remains { medium, folder: self.folder },
            Crash::PowerCut if self.folder == Folder::Durable => {
                Remains { medium: medium.images().one(random), folder: self.folder }
            }
            Crash::PowerCut if self.folder == Folder::Unsynced && random.below(2) == 0 => {
                Remains { medium: medium.images().one(random), folder: Folder::Durable }
            }
            // Whatever was in it has no name any more.
            Crash::PowerCut => Remains::default(),
        }
    }
}
