//! The paths whose instructions callgrind counts, one a process: `hot-paths NAME DIRECTORY`; without arguments it prints
//! the names. `just instructions` runs it.
//!
//! One thread, the same bytes each time, no time, no random choice: the same program on the same processor executes the
//! same instructions. Counted is what this thread does inside of [`counted`]; the log's own thread for files made ahead
//! and the kernel are not.
#![expect(clippy::print_stdout, reason = "a command line program prints its answer")]

use std::error::Error;
use std::hint::black_box;
use std::path::Path;

use millpond::key;
use millpond::store::{LogStore, MemStore, Op, Store};
use millpond::{Builder, Durability, Queue, Reserved};
use millpond_bench::{CAPACITY, PAYLOAD};

type Outcome = Result<(), Box<dyn Error>>;

/// Calls before the counted ones: the first push takes a lease of ids and makes the first files.
const WARM_UP: usize = 16;
/// Counted calls. All fit the log's first segment: when the next one is ready depends on another thread.
const CALLS: usize = 96;
/// Entries of a call that takes many.
const MANY: usize = 32;
/// Entries of the log that is opened.
const STORED: usize = 4096;

/// A path: its name, how many operations its count is divided by, and what runs it.
struct Counted {
    name: &'static str,
    operations: usize,
    run: fn(&Path) -> Outcome,
}

const PATHS: [Counted; 15] = [
    Counted { name: "mem/push-none", operations: CALLS, run: |_| pushes(&mem(Durability::None)?) },
    Counted { name: "mem/push-group", operations: CALLS, run: |_| pushes(&mem(Durability::Group)?) },
    Counted { name: "mem/push-many", operations: CALLS, run: |_| pushes_many(&mem(Durability::None)?) },
    Counted { name: "mem/reserve", operations: CALLS, run: |_| reserves(&mem(Durability::None)?) },
    Counted { name: "mem/ack", operations: CALLS, run: |_| acks(&mem(Durability::None)?) },
    Counted { name: "mem/cycle", operations: CALLS, run: |_| cycles(&mem(Durability::None)?) },
    Counted { name: "mem/get", operations: CALLS, run: |_| gets(&mem(Durability::None)?) },
    Counted { name: "log/push-none", operations: CALLS, run: |dir| pushes(&log(dir, Durability::None)?) },
    Counted { name: "log/push-group", operations: CALLS, run: |dir| pushes(&log(dir, Durability::Group)?) },
    Counted {
        name: "log/push-many",
        operations: CALLS,
        run: |dir| pushes_many(&log(dir, Durability::None)?),
    },
    Counted { name: "log/reserve", operations: CALLS, run: |dir| reserves(&log(dir, Durability::None)?) },
    Counted { name: "log/ack", operations: CALLS, run: |dir| acks(&log(dir, Durability::None)?) },
    Counted { name: "log/cycle", operations: CALLS, run: |dir| cycles(&log(dir, Durability::None)?) },
    Counted { name: "log/append-frame", operations: CALLS, run: appends },
    Counted { name: "log/scan-frame", operations: STORED, run: scans },
];

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, directory] = arguments.as_slice() else {
        for path in &PATHS {
            println!("{} {}", path.name, path.operations);
        }
        return Ok(());
    };
    let path = PATHS.iter().find(|path| path.name == name).ok_or("no such path")?;
    (path.run)(Path::new(directory))
}

/// callgrind counts from the entry of this function to its return.
#[inline(never)]
fn counted(body: &mut dyn FnMut() -> Outcome) -> Outcome {
    black_box(body())
}

fn mem(durability: Durability) -> Result<Queue, Box<dyn Error>> {
    Ok(Builder::new(MemStore::new()).capacity(CAPACITY).durability(durability).open()?)
}

fn log(directory: &Path, durability: Durability) -> Result<Queue, Box<dyn Error>> {
    Ok(Builder::new(LogStore::open(directory)?).capacity(CAPACITY).durability(durability).open()?)
}

fn fill(queue: &Queue, entries: usize) -> Outcome {
    for _ in 0..entries {
        queue.push(PAYLOAD)?;
    }
    Ok(())
}

fn take(queue: &Queue) -> Result<Reserved, Box<dyn Error>> {
    Ok(queue.reserve()?.ok_or("an entry is missing")?)
}

fn pushes(queue: &Queue) -> Outcome {
    fill(queue, WARM_UP)?;
    counted(&mut || fill(queue, CALLS))
}

fn pushes_many(queue: &Queue) -> Outcome {
    fill(queue, WARM_UP)?;
    let row = [PAYLOAD; MANY];
    counted(&mut || {
        for _ in 0..CALLS / MANY {
            black_box(queue.push_many(&row)?);
        }
        Ok(())
    })
}

fn reserves(queue: &Queue) -> Outcome {
    fill(queue, WARM_UP + CALLS)?;
    let mut items = Vec::with_capacity(WARM_UP + CALLS);
    for _ in 0..WARM_UP {
        items.push(take(queue)?);
    }
    counted(&mut || {
        for _ in 0..CALLS {
            items.push(take(queue)?);
        }
        Ok(())
    })
}

fn acks(queue: &Queue) -> Outcome {
    fill(queue, WARM_UP + CALLS)?;
    let mut items = queue.reserve_many(WARM_UP + CALLS)?.into_iter();
    for item in items.by_ref().take(WARM_UP) {
        item.ack()?;
    }
    counted(&mut || {
        for item in items.by_ref() {
            item.ack()?;
        }
        Ok(())
    })
}

fn cycles(queue: &Queue) -> Outcome {
    let cycle = |times: usize| -> Outcome {
        for _ in 0..times {
            queue.push(PAYLOAD)?;
            take(queue)?.ack()?;
        }
        Ok(())
    };
    cycle(WARM_UP)?;
    counted(&mut || cycle(CALLS))
}

fn gets(queue: &Queue) -> Outcome {
    fill(queue, CALLS)?;
    counted(&mut || {
        for id in 1..=CALLS as u64 {
            black_box(queue.get(id)?.ok_or("an entry is missing")?);
        }
        Ok(())
    })
}

/// The log alone: commits of many entries, without an fsync.
fn appends(directory: &Path) -> Outcome {
    let store = LogStore::open(directory)?;
    let keys: Vec<[u8; 9]> = (1..=(CALLS + MANY) as u64).map(key::entry).collect();
    let commits: Vec<Vec<Op<'_>>> =
        keys.chunks(MANY).map(|keys| keys.iter().map(|key| Op::Put(key, &PAYLOAD)).collect()).collect();
    let (first, rest) = commits.split_first().ok_or("no commit")?;
    store.commit(first, false)?;
    counted(&mut || {
        for commit in rest {
            store.commit(commit, false)?;
        }
        Ok(())
    })
}

/// The log alone: opening it, which reads and checks every frame.
fn scans(directory: &Path) -> Outcome {
    let queue = log(directory, Durability::None)?;
    // As one commit, which gets a segment of its own size.
    queue.push_many(&vec![PAYLOAD; STORED])?;
    // Unclosed, how much was made ahead when the files were left would be counted too.
    queue.finish()?;
    counted(&mut || {
        let store = LogStore::open(directory)?;
        let stored = store.summary()?.count;
        if stored == STORED as u64 { Ok(()) } else { Err(format!("{stored} entries found").into()) }
    })
}
