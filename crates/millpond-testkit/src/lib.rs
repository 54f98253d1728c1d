//! What the crash tests share: the journal of a process that is killed, the oracle that judges what is left, and
//! reproducible randomness.

#![forbid(unsafe_code)]

pub mod fault_store;
pub mod journal;
pub mod oracle;
pub mod payload;
pub mod random;
