//! A process that does what its words say on one queue, each with an answer on standard output, so that a test sees from
//! outside what a call does: to the files, to the kernel, after a failure.
//!
//! `script-worker STORE DIRECTORY sync|group|none WORD...`
//!
//! - `push` pushes 200 bytes: `pushed ID`
//! - `ack:ID` acks by id: `acked true|false`
//! - `produce:THREADSxEACH` pushes EACH times from each of THREADS threads: the answers of `push`
//! - `share:PUSHES` pushes so many times at once, without a thread for each: the answers of `push`
//! - `wait:MS` waits so long for an entry that does not come: `waiting`, then `waited MS MS` by the steady and by the wall
//!   clock
//! - `wait-tokio:MS` does the same by a future under tokio
//! - `read` reads every entry: `read COUNT`
//! - `reopen` opens the same directory again while the queue so far is still there, and goes on with that:
//!   `reopened LENGTH`
//! - `hold` answers `holding` and keeps the queue open until the process is killed
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
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime};

use millpond::{Builder, Durability, Failure, PushError, Queue, ReserveError, Reserved};
use millpond_testkit::on_store;
use millpond_testkit::subjects::Subject;

/// One answer with one write, so that a trace shows where it came.
fn say(answer: &str) {
    io::stdout().lock().write_all(format!("{answer}\n").as_bytes()).expect("the pipe is open");
}

fn tell(answer: Result<u64, PushError>) {
    match answer {
        Ok(id) => say(&format!("pushed {id}")),
        Err(error) => say(&format!("failed {}", error.code())),
    }
}

fn produce(queue: &Queue, threads: u64, each: u64) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..each).for_each(|_| tell(queue.push([7; 200]))));
        }
    });
}

/// Wakes the thread that waits for futures.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// So many pushes at once: nobody but the commit thread commits for them.
fn share(queue: &Queue, pushes: usize) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut waiting: Vec<_> = (0..pushes).map(|_| Box::pin(queue.push_async([7; 200]))).collect();
    while !waiting.is_empty() {
        waiting.retain_mut(|push| match push.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                tell(answer);
                false
            }
        });
        if !waiting.is_empty() {
            thread::park();
        }
    }
}

/// Waits, by this function, for an entry that does not come.
fn wait(reserve: impl FnOnce() -> Result<Option<Reserved>, ReserveError>) {
    let (steady, wall) = (Instant::now(), SystemTime::now());
    say("waiting");
    assert!(reserve().unwrap().is_none());
    let wall = match wall.elapsed() {
        Ok(forward) => i128::try_from(forward.as_millis()).unwrap(),
        Err(back) => -i128::try_from(back.duration().as_millis()).unwrap(),
    };
    say(&format!("waited {} {wall}", steady.elapsed().as_millis()));
}

fn milliseconds(argument: &str) -> Duration {
    Duration::from_millis(argument.parse().unwrap())
}

fn open<T: Subject>(directory: &Path, durability: Durability) -> Result<Queue, Failure> {
    Ok(Builder::new(T::open(directory)?).durability(durability).open()?)
}

fn run<T: Subject>(directory: &Path, durability: Durability, words: &[String]) {
    let mut queue = open::<T>(directory, durability).unwrap();
    let mut before = Vec::new();
    for word in words {
        say(&format!("call {word}"));
        let (word, argument) = word.split_once(':').unwrap_or((word, ""));
        match word {
            "push" => tell(queue.push([7; 200])),
            "wait" => wait(|| queue.reserve_timeout(milliseconds(argument))),
            #[cfg(feature = "tokio")]
            "wait-tokio" => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                wait(|| runtime.block_on(queue.reserve_timeout_async(milliseconds(argument))));
            }
            "share" => share(&queue, argument.parse().unwrap()),
            "produce" => {
                let (threads, each) = argument.split_once('x').unwrap();
                produce(&queue, threads.parse().unwrap(), each.parse().unwrap());
            }
            "ack" => match queue.ack(argument.parse().unwrap()) {
                Ok(removed) => say(&format!("acked {removed}")),
                Err(error) => say(&format!("failed {}", error.code())),
            },
            "read" => {
                let read: Result<Vec<_>, _> = queue.iter().collect();
                match read {
                    Ok(entries) => say(&format!("read {}", entries.len())),
                    Err(error) => say(&format!("failed {}", error.code())),
                }
            }
            "reopen" => match open::<T>(directory, durability) {
                Ok(opened) => {
                    say(&format!("reopened {}", opened.len()));
                    before.push(std::mem::replace(&mut queue, opened));
                }
                Err(error) => say(&format!("failed {}", error.code())),
            },
            "hold" => {
                say("holding");
                loop {
                    thread::park();
                }
            }
            "kill" => {
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
