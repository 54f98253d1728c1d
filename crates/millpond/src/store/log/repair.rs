//! Giving up everything that is damaged, at once and for good.

use std::path::Path;

use super::error::LogError;
use super::verify::{Verified, verify};
use super::{LogOptions, LogStore};
use crate::store::{RecoveryReport, Store};

/// What [`repair`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What was found. Every damaged stretch was copied aside into the folder `quarantine` where there was room for it, and
    /// what cannot be delivered was given up.
    pub found: RecoveryReport,
    /// What a look afterwards says. Damage that is left belongs to files that are none of this log's: they are not touched.
    pub after: Verified,
}

/// Makes a damaged log one that opens without a complaint, with `strict` too, and with everything that is intact in it.
///
/// It is what a non-strict open does by and by, done at once. Takes the lock, so no owner may be running. A log that is not
/// damaged is not changed.
///
/// # Errors
/// Another owner holds the directory, it cannot be read or written, or a newer version wrote it.
pub fn repair(path: impl AsRef<Path>) -> Result<Repaired, LogError> {
    let path = path.as_ref();
    // Only what is there is repaired; an open would make it.
    drop(super::real_disk::RealDisk::look(path)?);
    let store = LogStore::open_with(path, LogOptions { verify: true, ..LogOptions::default() })?;
    let found = store.recovery();
    if !found.damage.is_empty() {
        store.give_up_all()?;
    }
    store.close()?;
    Ok(Repaired { found, after: verify(path)? })
}
