//! Every clause of the store contract on every store.

use millpond_testkit::conformance::{
    clause_1_readers_see_what_a_returned_commit_applied, clause_2_keys_are_ordered_as_byte_strings,
    clause_3_a_durable_commit_keeps_every_earlier_one, clause_4_a_non_durable_commit_is_visible,
    clause_5_operations_apply_in_order, clause_7_an_empty_durable_commit_makes_earlier_ones_durable,
    clause_8_memory_is_the_same_entries,
};
use millpond_testkit::tests_on_all_stores;

tests_on_all_stores! {
    clause_1_readers_see_what_a_returned_commit_applied,
    clause_2_keys_are_ordered_as_byte_strings,
    clause_3_a_durable_commit_keeps_every_earlier_one,
    clause_4_a_non_durable_commit_is_visible,
    clause_5_operations_apply_in_order,
    clause_7_an_empty_durable_commit_makes_earlier_ones_durable,
    clause_8_memory_is_the_same_entries,
}
