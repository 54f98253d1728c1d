//! The example of a store of one's own does what it says.

#[path = "../examples/own_store.rs"]
#[expect(dead_code, reason = "the example's own start is not called here")]
mod own_store;

#[test]
fn a_queue_lives_on_a_store_of_ones_own() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    assert_eq!(own_store::run(&folder.path().join("queue"))?, [2, 3]);
    Ok(())
}
