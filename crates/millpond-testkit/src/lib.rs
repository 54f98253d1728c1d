//! What the tests of stores and of crashes share: the contract of a store as checks, the journal of a process that is
//! killed, the oracle that judges what is left, and reproducible randomness.

#![forbid(unsafe_code)]

pub mod block_device;
pub mod by_hand;
pub mod conformance;
pub mod fault_store;
pub mod journal;
pub mod ledger;
pub mod life;
pub mod oracle;
pub mod payload;
pub mod random;
pub mod sim_disk;
pub mod strace;
#[cfg(feature = "strict-disk")]
pub mod strict_disk;
pub mod subjects;
