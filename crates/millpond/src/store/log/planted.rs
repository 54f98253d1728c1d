//! Faults that are planted to prove that the crash suite finds them. Without the feature `planted` there are none, and
//! [`is`] is a constant.

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "tests reach it through `testing`"))]
pub enum Fault {
    /// A commit does not sync what it wrote.
    SkipDataSync,
    /// A new file's name is not synced before the file is used.
    SkipDirectorySync,
    /// A new file is not synced before it has its name.
    SkipSpareSync,
    /// A segment is not synced before its successor is used.
    SkipSyncAtRotation,
    /// Recovery trusts what a killed process left in the cache.
    SkipRecoverySync,
    /// Recovery reads through the cache.
    ReadThroughCache,
    /// Checksums do not know the life of a file.
    IgnoreGeneration,
    /// All lives of all files have one generation.
    ReuseGeneration,
    /// The bytes of an entry are taken unchecked.
    IgnorePayloadChecksum,
    /// After a write that failed halfway the next batch goes behind its remains.
    AppendBehindTornTail,
    /// Stretches that were torn at one open may be frames at the next.
    ForgetTornStretches,
    /// A failed sync is tried again.
    RetryFailedSync,
    /// A segment goes without the acks it holds for others.
    FreeBeforeForwarding,
    /// A segment's file goes before the frame that lets it go is durable.
    UnlinkBeforeFreedIsDurable,
    /// A mark names what was written instead of what was synced.
    VouchForUnsynced,
    /// A footer is believed whatever else is known of its segment.
    TrustStaleFooter,
    /// Ids go on behind what is stored, whatever was given out before.
    ReuseIdAfterDrain,
}

/// All of them, by the names that `MILLPOND_PLANTED` takes.
#[cfg(feature = "testing")]
pub const FAULTS: &[(&str, Fault)] = &[
    ("skip-data-sync", Fault::SkipDataSync),
    ("skip-directory-sync", Fault::SkipDirectorySync),
    ("skip-spare-sync", Fault::SkipSpareSync),
    ("skip-sync-at-rotation", Fault::SkipSyncAtRotation),
    ("skip-recovery-sync", Fault::SkipRecoverySync),
    ("read-through-cache", Fault::ReadThroughCache),
    ("ignore-generation", Fault::IgnoreGeneration),
    ("reuse-generation", Fault::ReuseGeneration),
    ("ignore-payload-checksum", Fault::IgnorePayloadChecksum),
    ("append-behind-torn-tail", Fault::AppendBehindTornTail),
    ("forget-torn-stretches", Fault::ForgetTornStretches),
    ("retry-failed-sync", Fault::RetryFailedSync),
    ("free-before-forwarding", Fault::FreeBeforeForwarding),
    ("unlink-before-freed-is-durable", Fault::UnlinkBeforeFreedIsDurable),
    ("vouch-for-unsynced", Fault::VouchForUnsynced),
    ("trust-stale-footer", Fault::TrustStaleFooter),
    ("reuse-id-after-drain", Fault::ReuseIdAfterDrain),
];

/// Whether this fault is planted in this process.
#[cfg(feature = "planted")]
pub(crate) fn is(fault: Fault) -> bool {
    static PLANTED: std::sync::OnceLock<Option<Fault>> = std::sync::OnceLock::new();
    let find = || {
        let name = std::env::var("MILLPOND_PLANTED").ok()?;
        FAULTS.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    };
    *PLANTED.get_or_init(find) == Some(fault)
}

/// Whether this fault is planted in this process: never.
#[cfg(not(feature = "planted"))]
pub(crate) const fn is(_fault: Fault) -> bool {
    false
}
