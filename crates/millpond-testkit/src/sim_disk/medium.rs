//! What a disk is at one moment: what it holds for sure, what its cache says, and what lies between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::content::{Content, SECTOR, Sector, index, is_same, mix};
use crate::random::Random;

/// A file.
#[derive(Clone, Default)]
pub(crate) struct Inode {
    /// What a power cut leaves when nothing of the rest reaches the disk.
    pub(crate) durable: Arc<Content>,
    /// What a read through the cache gives.
    pub(crate) cached: Arc<Content>,
    /// What each sector became since the last sync, in order: a power cut leaves the durable one or any of these.
    pub(crate) pending: BTreeMap<usize, Vec<Sector>>,
    /// A sync of it failed.
    pub(crate) failed: bool,
}

/// A change of names that no sync of the directory covers yet.
#[derive(Clone, Debug)]
pub(crate) enum NameOp {
    Create(String, usize),
    Rename(String, String, usize),
    Unlink(String),
}

impl NameOp {
    /// The file that gets a name.
    pub(crate) fn inode(&self) -> Option<usize> {
        match self {
            NameOp::Create(_, inode) | NameOp::Rename(_, _, inode) => Some(*inode),
            NameOp::Unlink(_) => None,
        }
    }

    /// The name it is about.
    fn name(&self) -> &str {
        match self {
            NameOp::Create(name, _) | NameOp::Rename(name, _, _) | NameOp::Unlink(name) => name,
        }
    }

    fn apply(&self, names: &mut Names) {
        match self {
            NameOp::Create(name, inode) => drop(names.insert(name.clone(), *inode)),
            NameOp::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            NameOp::Unlink(name) => drop(names.remove(name)),
        }
    }
}

type Names = BTreeMap<String, usize>;

/// The folder of a name, with the slash behind it; empty for the directory itself.
pub(crate) fn folder_of(name: &str) -> &str {
    name.rfind('/').map_or("", |at| &name[..=at])
}

/// A disk with one directory and the folders in it.
#[derive(Clone, Default)]
pub struct Medium {
    pub(crate) inodes: BTreeMap<usize, Arc<Inode>>,
    pub(crate) names: Names,
    pub(crate) durable_names: Names,
    pub(crate) name_ops: Vec<NameOp>,
    pub(crate) directory_failed: bool,
    /// Syncs of a file, or of the directory, of which one had failed before.
    pub(crate) syncs_after_failure: u64,
}

impl Medium {
    /// A disk that holds these files and nothing unsynced.
    pub fn of(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut medium = Self::default();
        for (name, bytes) in files {
            let inode = medium.create(&name);
            medium.write(inode, &bytes, 0);
            medium.sync(inode);
        }
        medium.sync_dir();
        medium
    }

    /// The names with the bytes a reader sees.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let bytes = |inode: &usize| {
            let content = &self.inodes[inode].cached;
            let mut bytes = vec![0; usize::try_from(content.len).unwrap_or(0)];
            content.read(&mut bytes, 0);
            bytes
        };
        self.names.iter().map(|(name, inode)| (name.clone(), bytes(inode))).collect()
    }

    /// Changes a byte of a file, durably. The file must be there and reach so far.
    pub fn set_byte(&mut self, name: &str, offset: u64, change: impl FnOnce(u8) -> u8) {
        let Some(inode) = self.names.get(name).copied() else { return };
        let mut byte = [0];
        if self.inodes[&inode].cached.read(&mut byte, offset) == 1 {
            self.write(inode, &[change(byte[0])], offset);
            self.sync(inode);
        }
    }

    /// Replaces bytes of a file, durably, as far as it goes.
    pub fn overwrite(&mut self, name: &str, offset: u64, bytes: &[u8]) {
        let Some(inode) = self.names.get(name).copied() else { return };
        let room = self.inodes[&inode].cached.len.saturating_sub(offset);
        let count = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.write(inode, &bytes[..count], offset);
        self.sync(inode);
    }

    /// Cuts a file, durably.
    pub fn truncate(&mut self, name: &str, len: u64) {
        let Some(inode) = self.names.get(name) else { return };
        if let Some(inode) = self.inodes.get_mut(inode).map(Arc::make_mut) {
            let mut content = Content::clone(&inode.cached);
            content.cut(len.min(content.len));
            inode.cached = Arc::new(content);
            inode.durable = Arc::clone(&inode.cached);
            inode.pending.clear();
        }
    }

    /// Gives a file another name, durably; a file of that name goes.
    pub fn move_over(&mut self, from: &str, to: &str) {
        if let Some(inode) = self.names.get(from).copied() {
            self.name_ops.push(NameOp::Rename(from.to_owned(), to.to_owned(), inode));
            self.apply_last();
            self.sync_dir();
        }
    }

    /// Copies a file, durably; a file of that name goes.
    pub fn copy_over(&mut self, from: &str, to: &str) {
        if let Some(bytes) = self.files().remove(from) {
            self.remove(to);
            let inode = self.create(to);
            self.write(inode, &bytes, 0);
            self.sync(inode);
            self.sync_dir();
        }
    }

    /// Removes a name, durably.
    pub fn remove(&mut self, name: &str) {
        if self.names.contains_key(name) {
            self.unlink(name);
            self.sync_dir();
        }
    }

    /// Syncs that a file, or the directory, saw after one of them had failed on it.
    pub fn syncs_after_failure(&self) -> u64 {
        self.syncs_after_failure
    }

    /// A number that other disks with the same bytes, names and unsynced parts have too.
    pub fn hash(&self) -> u64 {
        let text = |name: &str| name.bytes().fold(3, |hash, byte| mix(hash, u64::from(byte)));
        let mut hash = 11;
        for (name, inode) in &self.names {
            let inode = &self.inodes[inode];
            let mut own = mix(text(name), inode.cached.hash());
            if !Arc::ptr_eq(&inode.cached, &inode.durable) {
                own = mix(own, inode.durable.hash());
            }
            own = mix(own, inode.pending.len() as u64);
            hash = mix(hash, own);
        }
        mix(hash, self.name_ops.len() as u64)
    }

    pub(crate) fn create(&mut self, name: &str) -> usize {
        let inode = self.inodes.keys().next_back().map_or(0, |last| last + 1);
        self.inodes.insert(inode, Arc::default());
        self.name_ops.push(NameOp::Create(name.to_owned(), inode));
        self.apply_last();
        inode
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        if let Some(inode) = self.names.get(from) {
            self.name_ops.push(NameOp::Rename(from.to_owned(), to.to_owned(), *inode));
            self.apply_last();
        }
    }

    pub(crate) fn unlink(&mut self, name: &str) {
        self.name_ops.push(NameOp::Unlink(name.to_owned()));
        self.apply_last();
    }

    fn apply_last(&mut self) {
        if let Some(op) = self.name_ops.last() {
            op.apply(&mut self.names);
        }
    }

    pub(crate) fn write(&mut self, inode: usize, bytes: &[u8], offset: u64) {
        let Some(inode) = self.inodes.get_mut(&inode).map(Arc::make_mut) else { return };
        let content = Arc::make_mut(&mut inode.cached);
        content.len = content.len.max(offset + bytes.len() as u64);
        if bytes.is_empty() {
            return;
        }
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for at in index(offset)..=index(offset + bytes.len() as u64 - 1) {
            let new = content.written(at, bytes, from);
            // What changes nothing leaves nothing to choose.
            if !is_same(&new, &content.get(at)) {
                content.set(at, new.clone());
                inode.pending.entry(at).or_default().push(new);
            }
        }
    }

    /// A sync that succeeds. After one that failed it says so too, and brings nothing to the disk that the failed
    /// one gave up.
    pub(crate) fn sync(&mut self, inode: usize) {
        let Some(inode) = self.inodes.get_mut(&inode).map(Arc::make_mut) else { return };
        self.syncs_after_failure += u64::from(inode.failed);
        let written = std::mem::take(&mut inode.pending);
        if inode.failed {
            let durable = Arc::make_mut(&mut inode.durable);
            for at in written.into_keys() {
                durable.set(at, inode.cached.get(at));
            }
            durable.len = inode.cached.len;
        } else {
            inode.durable = Arc::clone(&inode.cached);
        }
    }

    /// A sync that fails: the cache calls itself clean, and the disk holds what it happens to hold.
    pub(crate) fn sync_failed(&mut self, inode: usize, random: &mut Random) {
        let Some(inode) = self.inodes.get_mut(&inode).map(Arc::make_mut) else { return };
        self.syncs_after_failure += u64::from(inode.failed);
        inode.failed = true;
        let kept = [0, 50, 100][usize::try_from(random.below(3)).unwrap_or(0)];
        let durable = Arc::make_mut(&mut inode.durable);
        if random.below(100) < kept {
            durable.len = inode.cached.len;
        }
        for (at, versions) in std::mem::take(&mut inode.pending) {
            if random.below(100) < kept && ((at * SECTOR) as u64) < durable.len {
                durable.set(at, versions.into_iter().next_back().flatten());
            }
        }
    }

    pub(crate) fn sync_dir(&mut self) {
        self.syncs_after_failure += u64::from(self.directory_failed);
        self.sync_names("", |_| true);
    }

    pub(crate) fn sync_dir_failed(&mut self, random: &mut Random) {
        self.syncs_after_failure += u64::from(self.directory_failed);
        self.directory_failed = true;
        self.sync_names("", |_| random.below(2) == 0);
    }

    /// Ends the doubt about names in one folder: those for which `keeps` says so are durable, the others are not.
    pub(crate) fn sync_names(&mut self, folder: &str, mut keeps: impl FnMut(&NameOp) -> bool) {
        let (own, others) =
            std::mem::take(&mut self.name_ops).into_iter().partition(|op| folder_of(op.name()) == folder);
        self.name_ops = others;
        let own: Vec<NameOp> = own;
        for op in own.iter().filter(|op| keeps(op)) {
            op.apply(&mut self.durable_names);
        }
    }

    /// Applies some of the unsynced changes of names to the durable ones.
    pub(crate) fn names_with(&self, kept: impl Fn(usize) -> bool) -> Names {
        let mut names = self.durable_names.clone();
        for (at, op) in self.name_ops.iter().enumerate() {
            if kept(at) {
                op.apply(&mut names);
            }
        }
        // What lies in a folder that is not there is not there either.
        let folders: BTreeSet<String> = names.keys().map(|name| format!("{name}/")).collect();
        names.retain(|name, _| folder_of(name).is_empty() || folders.contains(folder_of(name)));
        names
    }

    pub(crate) fn read(&self, inode: usize, bytes: &mut [u8], offset: u64) -> usize {
        self.inodes.get(&inode).map_or(0, |inode| inode.cached.read(bytes, offset))
    }

    /// Past the cache: dirty sectors are not dropped from it, but what a failed sync gave up is not there.
    pub(crate) fn read_uncached(&self, inode: usize, bytes: &mut [u8], offset: u64) -> usize {
        let Some(inode) = self.inodes.get(&inode) else { return 0 };
        let count = inode.cached.read(bytes, offset);
        if inode.failed {
            let mut device = Content::clone(&inode.durable);
            device.len = inode.cached.len;
            for at in inode.pending.keys() {
                device.set(*at, inode.cached.get(*at));
            }
            device.read(&mut bytes[..count], offset);
        }
        count
    }
}
