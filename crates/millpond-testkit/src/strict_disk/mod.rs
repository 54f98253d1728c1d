//! A strict file system that is really mounted (FUSE): what was not synced is lost when the power goes, each sector and
//! each name by itself, as no journalling file system does it. Any process can work on it, Node with the addon too.
//!
//! Each [boot](mount::StrictDisk::boot) is a folder of its own in the mount, in which one queue directory can be made, so
//! that nothing that the kernel knows of an earlier boot is taken for this one. Under it lies the
//! [simulated disk](crate::sim_disk). Reads go past a cache: after a failed sync they give what the disk holds.

mod boot;
mod calls;
pub mod mount;

pub use boot::{Deaf, Plan, Remains};
pub use mount::StrictDisk;
