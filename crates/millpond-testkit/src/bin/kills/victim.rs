//! The process that is killed: producers and consumers on one queue, in Rust (`block-rig work`) or through the addon in
//! Node. It says every call and answer.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use millpond_testkit::journal::{Event, Placed};
use parking_lot::RwLock;

/// Answers after which a process that is not killed closes its queue.
const ANSWERS: u64 = 30;
const FOR_EVER: u64 = 1 << 40;
/// The longest a process may take; then it hangs.
const LIMIT: &str = "60";
/// The longest between two of its lines.
const PATIENCE: Duration = Duration::from_mins(1);

/// Taken for writing while a process is started, for reading while this one has a queue open: a child has the files of its
/// parent until it runs its program, and the lock of a queue among them.
pub(crate) static STARTING: RwLock<()> = RwLock::new(());

/// A process to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim<'a> {
    pub(crate) is_addon: bool,
    /// The fault that is planted in it.
    pub(crate) planted: Option<&'a str>,
    pub(crate) durability: &'a str,
    pub(crate) directory: &'a Path,
    pub(crate) first: u64,
    pub(crate) seed: u64,
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// After it has said so many lines,
    pub(crate) lines: u64,
    /// and so much later.
    pub(crate) pause: Duration,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) events: Vec<Event>,
    pub(crate) was_killed: bool,
    pub(crate) status: ExitStatus,
}

impl Victim<'_> {
    fn words(&self, answers: u64) -> io::Result<Vec<OsString>> {
        let mut words: Vec<OsString> = if self.is_addon {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../__test__/power-cut/work.mjs");
            vec!["node".into(), script.into()]
        } else {
            vec![std::env::current_exe()?.with_file_name("block-rig").into(), "work".into(), "log".into()]
        };
        words.push(self.directory.into());
        words.extend([self.durability, &self.first.to_string(), &self.seed.to_string()].map(Into::into));
        // There is no recording of a disk.
        words.extend([answers.to_string().as_str(), "close", "/dev/null"].map(Into::into));
        Ok(words)
    }

    /// Kills it then.
    pub(crate) fn kill_after(&self, moment: Moment) -> io::Result<Ended> {
        self.run(self.words(FOR_EVER)?, Some(moment))
    }

    /// Kills it when one of its threads makes this system call for the so many-th time.
    pub(crate) fn kill_at(&self, call: &str, number: u64) -> io::Result<Ended> {
        let inject = format!("inject={call}:signal=SIGKILL:when={number}");
        self.traced(Path::new("/dev/null"), &["-e", &format!("trace={call}"), "-e", &inject])
    }

    /// The names of the system calls of one that is not killed.
    pub(crate) fn calls(&self, trace: &Path) -> io::Result<BTreeSet<String>> {
        let ended = self.traced(trace, &[])?;
        if !ended.status.success() {
            return Err(io::Error::other(format!("the traced process failed: {}", ended.status)));
        }
        let text = fs::read_to_string(trace)?;
        let name = |line: &str| Some(line.split_once(' ')?.1.trim_start().split_once('(')?.0.to_owned());
        // Where the worker asks how long a recording is: no call of the queue.
        let is_its_own = |name: &String| name == "statx";
        let is_call = |name: &String| name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
        Ok(text.lines().filter_map(name).filter(|name| is_call(name) && !is_its_own(name)).collect())
    }

    fn traced(&self, trace: &Path, options: &[&str]) -> io::Result<Ended> {
        let mut words: Vec<OsString> =
            ["timeout", "--signal=KILL", LIMIT, "strace", "-f", "-q", "-o"].map(Into::into).into();
        words.push(trace.into());
        words.extend(options.iter().map(Into::into));
        words.extend(self.words(ANSWERS)?);
        self.run(words, None)
    }

    /// Runs a process to its end, which is at this moment at the latest.
    fn run(&self, mut words: Vec<OsString>, moment: Option<Moment>) -> io::Result<Ended> {
        let arguments = words.split_off(1);
        let mut command = Command::new(words.remove(0));
        command.env_remove("MILLPOND_PLANTED").envs(self.planted.map(|fault| ("MILLPOND_PLANTED", fault)));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = {
            let _starting = STARTING.write();
            command.spawn()?
        };
        let out = process.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let (said, heard) = mpsc::channel();
        let reader = thread::spawn(move || {
            let (mut out, mut lines) = (BufReader::new(out), Vec::new());
            loop {
                let mut line = String::new();
                // A last line without its end was cut by the kill.
                if out.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                    return Ok::<_, io::Error>(lines);
                }
                lines.push(line);
                // Nobody listens after the moment.
                let _ = said.send(());
            }
        });
        if let Some(Moment { lines, pause }) = moment {
            // It ends early when the process does.
            let _ = (0..lines).try_for_each(|_| heard.recv_timeout(PATIENCE));
            thread::sleep(pause);
            process.kill()?;
        }
        let status = process.wait()?;
        let lines = reader.join().map_err(|_| io::Error::other("a panic"))??;
        let events = lines.iter().filter_map(|line| line.trim_end().parse::<Placed>().ok());
        // timeout and strace end as the process did.
        let was_killed = status.signal() == Some(9) || status.code() == Some(128 + 9);
        Ok(Ended { events: events.map(|placed| placed.event).collect(), was_killed, status })
    }
}
