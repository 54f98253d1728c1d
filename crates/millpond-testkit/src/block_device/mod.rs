//! A disk whose every write and flush is recorded, and which fails on demand, under a real file system.
//!
//! `qemu-storage-daemon` exports an image as a file (FUSE) and records what reaches it; the file is mounted through a
//! loop device. The recording is replayed into images of what a crash can leave. Everything lives in a
//! [`sandbox`](sandbox::enter): a mount and process namespace of its own, which the kernel takes down with every mount,
//! loop device and process when its first process ends, however that happens.

pub mod device;
pub mod extents;
pub mod image;
pub mod mount;
pub mod program;
pub mod sandbox;
pub mod write_log;

/// Bytes of a sector: the unit in which a device's write is old or new after a power cut.
pub const SECTOR: u64 = 512;
