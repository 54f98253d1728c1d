//! What a large backlog costs: opening, memory, descriptors, and every call beside the same call on an empty queue.
//!
//! `scale FOLDER [ITEMS]` prints figures and whether each meets its bar, and fails if one does not. It starts itself for
//! what needs a process of its own. Instructions are counted by valgrind, where there is one.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and ends where it fails"
)]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use millpond::store::{LogError, LogOptions, LogStore};
use millpond::{Builder, Durability, Queue};

const ITEMS: u64 = 10_000_000;
/// Bytes of a payload.
const ITEM: usize = 100;
/// Bytes of a group, about.
const GROUP: usize = 1024 * 1024;
/// Large items, and bytes of one.
const LARGE: (u64, usize) = (20_000, 100 * 1024);
/// Memory that an eager open may take.
const MEMORY: u64 = 512 * 1024 * 1024;
const ROUNDS: usize = 11;
/// Items that are taken behind the first.
const MORE: u64 = 100_000;
/// Items of one round.
const ROUND: u64 = 20_000;
const CYCLES: u64 = 1_000_000;
/// Items of a short queue.
const SHORT: u64 = 16;

fn open(path: &Path) -> Queue {
    let store = LogStore::open(path).expect("the log opens");
    Builder::new(store).capacity(1 << 40).durability(Durability::None).open().expect("the queue opens")
}

fn pages(field: usize) -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(field).unwrap().parse().unwrap()
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    pages(1) * 4096
}

fn descriptors() -> usize {
    // One of them is the listing's own.
    fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

fn fill(path: &Path, items: u64, size: usize) {
    let queue = open(path);
    let payload = vec![7; size];
    let group = vec![&payload[..]; 1000.min(GROUP / size)];
    for _ in 0..items / group.len() as u64 {
        queue.push_many(&group).unwrap();
    }
    assert_eq!(queue.len(), items);
}

/// Appends without end; somebody kills it.
fn append(path: &Path) {
    let queue = open(path);
    let payload = [7; ITEM];
    for done in 1_u64.. {
        queue.push(payload).unwrap();
        if done == 400_000 {
            println!("ready");
        }
    }
}

/// Opens and takes the first item; prints milliseconds, growth of memory after it and after `more`, descriptors.
fn first(path: &Path, more: u64) {
    let before = resident();
    let outside = descriptors();
    let start = Instant::now();
    let queue = open(path);
    let item = queue.reserve().unwrap().expect("there is a backlog");
    let took = start.elapsed();
    let after_first = resident().saturating_sub(before);
    assert!(item.ack().unwrap());
    let mut held = 0;
    for _ in 0..more {
        assert!(queue.reserve().unwrap().unwrap().ack().unwrap());
        held = held.max(descriptors() - outside);
    }
    let after_many = resident().saturating_sub(before);
    println!("{} {after_first} {after_many} {held} {}", took.as_secs_f64() * 1e3, queue.len());
}

/// Opens with every item in memory, which is more than there may be; prints what it would take, and what it took to say
/// so.
fn eager(path: &Path) {
    let before = resident();
    let options = LogOptions { eager: Some(MEMORY), ..LogOptions::default() };
    match LogStore::open_with(path, options) {
        Err(LogError::NeedsMemory { needed, .. }) => {
            println!("{needed} {}", resident().saturating_sub(before));
        }
        other => panic!("an eager open of too much: {:?}", other.map(|_| ())),
    }
}

/// Called where one part of a run ends; valgrind counts the instructions between two calls.
#[inline(never)]
fn scale_part_ends(part: u32) {
    black_box(part);
}

/// Nanoseconds of a push, a reserve and an ack, each `ROUND` times.
fn round(queue: &Queue) -> [f64; 3] {
    let payload = [7; ITEM];
    let mut items = Vec::with_capacity(usize::try_from(ROUND).unwrap());
    let mut took = [0.0; 3];
    let mut time = |part: usize, run: &mut dyn FnMut()| {
        scale_part_ends(u32::try_from(part).unwrap());
        let start = Instant::now();
        run();
        took[part] = start.elapsed().as_secs_f64() * 1e9 / f64::from(u32::try_from(ROUND).unwrap());
    };
    time(0, &mut || (0..ROUND).for_each(|_| assert!(queue.push(payload).unwrap() > 0)));
    time(1, &mut || items.extend((0..ROUND).map(|_| queue.reserve().unwrap().unwrap())));
    time(2, &mut || items.drain(..).for_each(|item| assert!(item.ack().unwrap())));
    scale_part_ends(3);
    took
}

/// Sizes of the files of a queue.
fn sizes(path: &Path) -> Vec<u64> {
    let sizes = fs::read_dir(path).unwrap().filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
    sizes.filter(|size| *size > 0).collect()
}

/// Nanoseconds of the first and of the last tenth, and the most files and bytes there were behind any of them.
fn cycles(path: &Path, count: u64) -> (f64, f64, usize, u64) {
    let queue = open(path);
    let payload = [7; ITEM];
    for _ in 0..SHORT {
        queue.push(payload).unwrap();
    }
    let slice = count / 10;
    let mut took = Vec::new();
    let (mut files, mut bytes) = (0, 0);
    for _ in 0..10 {
        scale_part_ends(4);
        let start = Instant::now();
        for _ in 0..slice {
            queue.push(payload).unwrap();
            assert!(queue.reserve().unwrap().unwrap().ack().unwrap());
        }
        took.push(start.elapsed().as_secs_f64() * 1e9);
        let sizes = sizes(path);
        files = files.max(sizes.len());
        bytes = bytes.max(sizes.iter().sum());
    }
    scale_part_ends(5);
    (took[0], took[9], files, bytes)
}

fn this() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn run(arguments: &[&str]) -> String {
    let output = Command::new(this()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Instructions between the marks of a run of this program under valgrind; `None` where there is none.
fn instructions(folder: &Path, arguments: &[&str]) -> Option<Vec<f64>> {
    let out = folder.join("callgrind");
    drop(fs::remove_dir_all(&out));
    fs::create_dir(&out).unwrap();
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-before=*scale_part_ends*", "--quiet"])
        .arg(format!("--callgrind-out-file={}/out", out.display()))
        .arg(this())
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut parts = Vec::new();
    for part in 1.. {
        let Ok(text) = fs::read_to_string(out.join(format!("out.{part}"))) else { break };
        let total =
            text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
        parts.push(total.unwrap().trim().parse().unwrap());
    }
    fs::remove_dir_all(&out).unwrap();
    Some(parts)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints one figure beside its bar.
struct Verdicts {
    missed: u32,
}

impl Verdicts {
    fn check(&mut self, what: &str, value: f64, unit: &str, bar: f64) {
        let met = value <= bar;
        self.missed += u32::from(!met);
        println!("{what}: {value:.2} {unit} (bar {bar} {unit}) {}", if met { "pass" } else { "MISS" });
    }
}

fn opening(verdicts: &mut Verdicts, when: &str, path: &Path, bar: f64, more: u64) {
    let figures = numbers(&run(&["first", path.to_str().unwrap(), &more.to_string()]));
    verdicts.check(&format!("{when}: open and first reserve"), figures[0], "ms", bar);
    verdicts.check(&format!("{when}: memory growth after the first"), figures[1] / 1_048_576.0, "MiB", 32.0);
    verdicts.check(
        &format!("{when}: memory growth after {more} more"),
        figures[2] / 1_048_576.0,
        "MiB",
        32.0,
    );
    verdicts.check(&format!("{when}: descriptors"), figures[3], "", 16.0);
    println!("{when}: {} items left", figures[4]);
}

/// O-25: a backlog of large items opens as fast as one of small ones, and eagerly it says what it would take.
fn large_items(verdicts: &mut Verdicts, folder: &Path) {
    let path = folder.join("large");
    let (items, size) = LARGE;
    run(&["fill", path.to_str().unwrap(), &items.to_string(), &size.to_string()]);
    opening(verdicts, "O-25, large items", &path, 1000.0, items / 2);
    too_much(verdicts, "O-25, large items", &path);
    fs::remove_dir_all(path).unwrap();
}

fn too_much(verdicts: &mut Verdicts, when: &str, path: &Path) {
    let figures = numbers(&run(&["eager", path.to_str().unwrap()]));
    println!("{when}: an eager open would take {:.0} MiB", figures[0] / 1_048_576.0);
    verdicts.check(&format!("{when}: memory growth of the refusal"), figures[1] / 1_048_576.0, "MiB", 100.0);
}

fn killed(path: &Path) {
    let mut child: Child =
        Command::new(this()).args(["append", path.to_str().unwrap()]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

fn beside_empty(verdicts: &mut Verdicts, folder: &Path, full: &Path) {
    let empty = folder.join("empty");
    let (small, large) = (open(&empty), open(full));
    let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        of_small.push(round(&small));
        of_large.push(round(&large));
    }
    drop((small, large));
    // The first round of each warms up.
    let of = |rounds: &[[f64; 3]], part: usize| median(rounds[1..].iter().map(|round| round[part]).collect());
    let counted =
        [&empty, &full.to_path_buf()].map(|path| instructions(folder, &["round", path.to_str().unwrap()]));
    for (part, name) in ["push", "reserve", "ack"].into_iter().enumerate() {
        let (small, large) = (of(&of_small, part), of(&of_large, part));
        println!("{name}: {small:.0} ns on an empty queue, {large:.0} ns on the backlog");
        verdicts.check(&format!("{name} at the backlog beside empty"), large / small, "x", 1.25);
        match &counted {
            [Some(small), Some(large)] if small.len() == large.len() && small.len() > 7 => {
                // The second round; the part before each mark is what the mark before it began.
                let (small, large) = (small[5 + part], large[5 + part]);
                let each = |count: f64| count / f64::from(u32::try_from(ROUND).unwrap());
                println!(
                    "{name}: {:.0} and {:.0} instructions, {:.2} x",
                    each(small),
                    each(large),
                    large / small
                );
            }
            _ => println!("{name}: instructions not counted, for want of valgrind"),
        }
    }
}

fn short_queue(verdicts: &mut Verdicts, folder: &Path) {
    let path = folder.join("short");
    let (first, last, files, bytes) = cycles(&path, CYCLES);
    println!("cycles: {:.0} ns each at first, {:.0} ns at last", first / 1e5, last / 1e5);
    println!("cycles: {bytes} bytes on disk at most");
    // The active segment, one that is drained, the spares, and the file of one more.
    verdicts.check("cycles: files at most", f64::from(u32::try_from(files).unwrap()), "", 6.0);
    let sizes = sizes(&path);
    println!("cycles: {} files, {} bytes after the close", sizes.len(), sizes.iter().sum::<u64>());
    let queue = open(&path);
    queue.push([7; ITEM]).unwrap();
    thread::sleep(Duration::from_secs(1));
    let store = queue.stats().store;
    let kib = f64::from(u32::try_from(store.disk_bytes / 1024).unwrap());
    verdicts.check("cycles: bytes on disk at rest", kib, "KiB", 4.0 * 64.0);
    println!("cycles: {} segments, {} bytes on disk with spares", store.segments, store.disk_bytes);
    verdicts.check(
        "cycles: segments beside the active one",
        f64::from(u32::try_from(store.segments - 1).unwrap()),
        "",
        1.0,
    );
    drop(queue);
    match instructions(folder, &["cycles", folder.join("counted").to_str().unwrap(), &CYCLES.to_string()]) {
        Some(parts) if parts.len() > 10 => {
            verdicts.check("cycles: instructions, last 100,000 beside first", parts[10] / parts[1], "x", 1.1);
        }
        _ => println!("cycles: instructions not counted, for want of valgrind"),
    }
}

fn all(folder: &Path, items: u64) -> ExitCode {
    let full = folder.join("full");
    let mut verdicts = Verdicts { missed: 0 };
    println!("{items} items of {ITEM} bytes");
    run(&["fill", full.to_str().unwrap(), &items.to_string(), &ITEM.to_string()]);
    opening(&mut verdicts, "after a clean close", &full, 100.0, MORE);
    killed(&full);
    opening(&mut verdicts, "after kill -9", &full, 3000.0, MORE);
    too_much(&mut verdicts, "O-25, small items", &full);
    large_items(&mut verdicts, folder);
    beside_empty(&mut verdicts, folder, &full);
    short_queue(&mut verdicts, folder);
    println!("{} missed", verdicts.missed);
    ExitCode::from(u8::from(verdicts.missed > 0))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words {
        ["fill", path, items, size] => fill(path.as_ref(), items.parse().unwrap(), size.parse().unwrap()),
        ["append", path] => append(path.as_ref()),
        ["first", path, more] => first(path.as_ref(), more.parse().unwrap()),
        ["eager", path] => eager(path.as_ref()),
        ["round", path] => {
            let queue = open(path.as_ref());
            for _ in 0..2 {
                round(&queue);
            }
        }
        ["cycles", path, count] => {
            cycles(path.as_ref(), count.parse().unwrap());
        }
        [folder] => return all(folder.as_ref(), ITEMS),
        [folder, items] => return all(folder.as_ref(), items.parse().unwrap()),
        _ => {
            println!("scale FOLDER [ITEMS]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
