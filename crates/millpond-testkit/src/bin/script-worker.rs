//! A process that does what its words say on one queue, each with an answer on standard output, so that a test sees from
//! outside what a call does: to the files, to the kernel, after a failure.
//!
//! `script-worker STORE DIRECTORY sync|group|none WORD...`
//!
//! - `push` pushes 200 bytes: `pushed ID`
//! - `ack:ID` acks by id: `acked true|false`
//! - `kill` ends the process as kill -9 does
//!
//! A call that fails answers `failed CODE`, and the process goes on.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a failure ends the process, which fails the test"
)]

use std::io::{self, Write};
use std::path::Path;

use millpond::{Builder, Durability};
use millpond_testkit::on_store;
use millpond_testkit::subjects::Subject;

/// One answer with one write, so that a trace shows where it came.
fn say(answer: &str) {
    io::stdout().lock().write_all(format!("{answer}\n").as_bytes()).expect("the pipe is open");
}

fn run<T: Subject>(directory: &Path, durability: Durability, words: &[String]) {
    let queue = Builder::new(T::open(directory).unwrap()).durability(durability).open().unwrap();
    for word in words {
        say(&format!("call {word}"));
        match word.split_once(':') {
            Some(("ack", id)) => match queue.ack(id.parse().unwrap()) {
                Ok(removed) => say(&format!("acked {removed}")),
                Err(error) => say(&format!("failed {}", error.code())),
            },
            None if word == "push" => match queue.push([7; 200]) {
                Ok(id) => say(&format!("pushed {id}")),
                Err(error) => say(&format!("failed {}", error.code())),
            },
            None if word == "kill" => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
            }
            _ => panic!("no such word: {word}"),
        }
    }
    say(&format!("length {}", queue.len()));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, directory, durability, words @ ..] = arguments.as_slice() else {
        panic!("script-worker STORE DIRECTORY DURABILITY WORD...");
    };
    let durability = match durability.as_str() {
        "sync" => Durability::Sync,
        "group" => Durability::Group,
        _ => Durability::None,
    };
    on_store!(store.as_str(), run(Path::new(directory), durability, words)).expect("a store of this build");
}
