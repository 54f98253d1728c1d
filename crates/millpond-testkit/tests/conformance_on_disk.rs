//! The clauses of the store contract that only a store with files can break, on every one that has them.

use millpond_testkit::conformance::{
    a_directory_has_one_owner, clause_6_a_closed_store_accepts_nothing, files_are_the_owners_alone,
    unknown_kinds_are_refused_and_nothing_is_written,
};
use millpond_testkit::tests_on_disk_stores;

tests_on_disk_stores! {
    clause_6_a_closed_store_accepts_nothing,
    a_directory_has_one_owner,
    files_are_the_owners_alone,
    unknown_kinds_are_refused_and_nothing_is_written,
}
