//! Opens what a crash left and says what is in it: `block-rig check STORE DIRECTORY`.

use std::path::Path;

use millpond::{Builder, Durability};
use millpond_testkit::on_store;
use millpond_testkit::oracle;
use millpond_testkit::subjects::Subject;

/// Prints what was [drained](oracle::Drained), or a line `damage` when the store reports damage: a crash makes none.
pub(crate) fn check(arguments: &[String]) {
    let [store, directory] = arguments else { panic!("check STORE DIRECTORY") };
    on_store!(store.as_str(), drain(Path::new(directory))).expect("a store of this build");
}

fn drain<T: Subject>(directory: &Path) {
    // What the check itself writes is thrown away with the image.
    let queue = Builder::new(T::open(directory).unwrap()).durability(Durability::None).open().unwrap();
    let damage = queue.recovery().damage;
    if damage.is_empty() {
        print!("{}", oracle::drain(&queue).unwrap());
    } else {
        println!("damage {damage:?}");
    }
}
