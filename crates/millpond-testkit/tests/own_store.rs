//! The example of a store of one's own keeps the contract.

use std::path::Path;

use millpond::{Failure, OpenError};
use millpond_testkit::conformance::{
    clause_1_readers_see_what_a_returned_commit_applied, clause_2_keys_are_ordered_as_byte_strings,
    clause_3_a_durable_commit_keeps_every_earlier_one, clause_4_a_non_durable_commit_is_visible,
    clause_5_operations_apply_in_order, clause_7_an_empty_durable_commit_makes_earlier_ones_durable,
};
use millpond_testkit::subjects::Subject;
use millpond_testkit::tests_on;

#[path = "../../millpond/examples/own_store.rs"]
#[expect(dead_code, reason = "only the store is put to the test here")]
mod own_store;

struct Own;

impl Subject for Own {
    type Store = own_store::FileStore;
    const NAME: &'static str = "own";
    const KEEPS_UNSYNCED: bool = false;

    fn holds_entries(_file: &str) -> bool {
        true
    }

    fn open(directory: &Path) -> Result<Self::Store, Failure> {
        // A failure of the queue's own stands for an error of the file system.
        let failed = |_| Failure::from(OpenError::InvalidMeta);
        own_store::FileStore::open(directory.join("queue")).map_err(failed)
    }
}

tests_on! { own = super::Own:
    clause_1_readers_see_what_a_returned_commit_applied,
    clause_2_keys_are_ordered_as_byte_strings,
    clause_3_a_durable_commit_keeps_every_earlier_one,
    clause_4_a_non_durable_commit_is_visible,
    clause_5_operations_apply_in_order,
    clause_7_an_empty_durable_commit_makes_earlier_ones_durable,
}
