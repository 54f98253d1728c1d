//! What the kernel asks.

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use millpond::store::Disk;

use super::boot::Boot;
use super::mount::{Boots, QUEUE};

/// Nothing is remembered by the kernel: the next boot is another disk.
const NOT_AT_ALL: Duration = Duration::ZERO;
/// Inode numbers of one boot: its folder, the queue's directory, and files from [`FILES`] on.
const BITS: u32 = 24;
const FOLDER: u64 = 0;
const DIRECTORY: u64 = 1;
const FILES: u64 = 2;

/// What an inode number says.
enum Place {
    Root,
    /// The folder of a boot.
    Folder(u64),
    /// The queue's directory in it.
    Directory(u64),
    /// A file of it.
    File(u64, usize),
}

impl Place {
    fn of(inode: INodeNo) -> Self {
        let number = u64::from(inode);
        let (boot, low) = (number >> BITS, number & ((1 << BITS) - 1));
        match low {
            _ if inode == INodeNo::ROOT => Self::Root,
            FOLDER => Self::Folder(boot),
            DIRECTORY => Self::Directory(boot),
            _ => Self::File(boot, usize::try_from(low - FILES).unwrap_or_default()),
        }
    }

    fn inode(&self) -> INodeNo {
        let number = |boot: u64, low: u64| INodeNo((boot << BITS) | low);
        match *self {
            Self::Root => INodeNo::ROOT,
            Self::Folder(boot) => number(boot, FOLDER),
            Self::Directory(boot) => number(boot, DIRECTORY),
            Self::File(boot, file) => number(boot, FILES + file as u64),
        }
    }

    fn boot(&self) -> u64 {
        match *self {
            Self::Root => 0,
            Self::Folder(boot) | Self::Directory(boot) | Self::File(boot, _) => boot,
        }
    }
}

fn error(errno: rustix::io::Errno) -> io::Error {
    errno.into()
}

pub(super) struct Calls {
    boots: Boots,
}

impl Calls {
    pub(super) fn new(boots: Boots) -> Self {
        Self { boots }
    }

    /// Does something on the boot of a place; one that has ended answers EIO.
    fn on<T>(&self, place: &Place, act: impl FnOnce(&mut Boot) -> io::Result<T>) -> io::Result<T> {
        self.boots.lock().get_mut(&place.boot()).map_or_else(|| Err(error(rustix::io::Errno::IO)), act)
    }

    fn attributes(&self, place: &Place) -> io::Result<FileAttr> {
        let size = match place {
            Place::Root => 0,
            Place::File(_, file) => self.on(place, |boot| boot.disk.file(*file).len())?,
            Place::Folder(_) | Place::Directory(_) => self.on(place, |_| Ok(0))?,
        };
        let is_file = matches!(place, Place::File(..));
        Ok(FileAttr {
            ino: place.inode(),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: if is_file { 1 } else { 2 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn find(&self, parent: &Place, name: &OsStr) -> io::Result<Place> {
        let missing = || error(rustix::io::Errno::NOENT);
        let name = name.to_str().ok_or_else(missing)?;
        match parent {
            Place::Root => {
                let number = name.parse().map_err(|_| missing())?;
                let place = Place::Folder(number);
                if self.boots.lock().contains_key(&number) { Ok(place) } else { Err(missing()) }
            }
            Place::Folder(boot) => self.on(parent, |found| {
                if name == QUEUE && found.has_folder() { Ok(Place::Directory(*boot)) } else { Err(missing()) }
            }),
            Place::Directory(boot) => {
                self.on(parent, |found| found.disk.number(name)).map(|file| Place::File(*boot, file))
            }
            Place::File(..) => Err(error(rustix::io::Errno::NOTDIR)),
        }
    }

    /// The disk behind the queue's directory, and a name in it.
    fn in_directory<T>(
        &self,
        parent: INodeNo,
        name: &OsStr,
        act: impl FnOnce(&mut Boot, &str) -> io::Result<T>,
    ) -> io::Result<T> {
        let place = Place::of(parent);
        let (Place::Directory(_), Some(name)) = (&place, name.to_str()) else {
            return Err(error(rustix::io::Errno::PERM));
        };
        self.on(&place, |boot| act(boot, name))
    }

    fn on_file<T>(
        &self,
        inode: INodeNo,
        act: impl FnOnce(&mut Boot, usize) -> io::Result<T>,
    ) -> io::Result<T> {
        let place = Place::of(inode);
        let Place::File(_, file) = place else { return Err(error(rustix::io::Errno::ISDIR)) };
        self.on(&place, |boot| act(boot, file))
    }

    fn list(&self, inode: INodeNo) -> io::Result<Vec<(INodeNo, FileType, String)>> {
        let place = Place::of(inode);
        let Place::Directory(number) = place else { return Ok(Vec::new()) };
        self.on(&place, |boot| {
            let file = |name: String| {
                let inode = Place::File(number, boot.disk.number(&name)?).inode();
                Ok((inode, FileType::RegularFile, name))
            };
            boot.disk.list()?.into_iter().map(file).collect()
        })
    }
}

fn empty(result: io::Result<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

impl Filesystem for Calls {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.find(&Place::of(parent), name).and_then(|place| self.attributes(&place)) {
            Ok(found) => reply.entry(&NOT_AT_ALL, &found, Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(&Place::of(inode)) {
            Ok(found) => reply.attr(&NOT_AT_ALL, &found),
            Err(error) => reply.error(error.into()),
        }
    }

    /// Times and modes are taken and forgotten; no file is cut.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(&Place::of(inode)) {
            Ok(_) if size.is_some() => reply.error(Errno::EPERM),
            Ok(found) => reply.attr(&NOT_AT_ALL, &found),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let place = Place::of(parent);
        let made = match place {
            Place::Folder(number) if name == QUEUE => {
                self.on(&place, Boot::make_folder).and_then(|()| self.attributes(&Place::Directory(number)))
            }
            _ => Err(error(rustix::io::Errno::PERM)),
        };
        match made {
            Ok(found) => reply.entry(&NOT_AT_ALL, &found, Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.in_directory(parent, name, |boot, name| {
            boot.step()?;
            boot.disk.create(name)?;
            boot.disk.number(name)
        });
        let place = made.map(|file| Place::File(Place::of(parent).boot(), file));
        match place.and_then(|place| self.attributes(&place)) {
            Ok(found) => {
                reply.created(&NOT_AT_ALL, &found, Generation(0), FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.on_file(inode, |_, _| Ok(())) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; size as usize];
        match self.on_file(inode, |boot, file| boot.disk.file(file).read_uncached_at(&mut bytes, offset)) {
            Ok(count) => reply.data(&bytes[..count]),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.on_file(inode, |boot, file| boot.write(file, bytes, offset)) {
            Ok(count) => reply.written(u32::try_from(count).unwrap_or(u32::MAX)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(self.on_file(inode, Boot::sync_file), reply);
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let place = Place::of(inode);
        let synced = match place {
            Place::Root => Ok(()),
            Place::Folder(_) => self.on(&place, Boot::sync_parent),
            Place::Directory(_) => self.on(&place, Boot::sync_folder),
            Place::File(..) => Err(error(rustix::io::Errno::NOTDIR)),
        };
        empty(synced, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let unlinked = self.in_directory(parent, name, |boot, name| {
            boot.step()?;
            boot.disk.unlink(name)
        });
        empty(unlinked, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.in_directory(parent, name, |boot, name| match new_name.to_str() {
            Some(to) if new_parent == parent => {
                boot.step()?;
                boot.disk.rename_new(name, to)
            }
            _ => Err(error(rustix::io::Errno::PERM)),
        });
        empty(renamed, reply);
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.list(inode) {
            Ok(files) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                for (at, (inode, kind, name)) in files.into_iter().enumerate().skip(from) {
                    if reply.add(inode, at as u64 + 1, kind, name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(error.into()),
        }
    }
}
