//! Millpond's own tasks: files generated from Rust tables, and the raw disk loop that benches compare with.
//!
//! The house rules are tests of this crate (`tests/tidy.rs`).

pub mod codegen;
pub mod documents;
pub mod raw_loop;
pub mod tree;
