//! The processes that open what a crash left: a new one for each image, or for the addon one Node for all images of a
//! thread, since it takes longer to start than to open.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use millpond_testkit::block_device::program;
use millpond_testkit::oracle::Drained;

use crate::subject::Subject;

/// Opens images.
pub(crate) struct Checker<'a> {
    subject: &'a Subject,
    server: Option<Server>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(subject: &'a Subject) -> Self {
        Self { subject, server: None }
    }

    /// What is in the queue in `directory`; the text of what went wrong when it does not open.
    pub(crate) fn look(&mut self, directory: &Path) -> io::Result<Result<Drained, String>> {
        if !self.subject.is_addon() {
            let output = program::output(self.subject.checker()?.arg(directory))?;
            let said = String::from_utf8_lossy(&output.stdout);
            return Ok(match said.parse() {
                Ok(drained) if output.status.success() => Ok(drained),
                _ => {
                    let error = String::from_utf8_lossy(&output.stderr);
                    Err(format!("it does not open: {}: {}{}", output.status, said.trim(), error.trim()))
                }
            });
        }
        let server = match &mut self.server {
            Some(server) => server,
            None => self.server.insert(Server::start(self.subject)?),
        };
        let said = server.ask(directory)?;
        if let Ok(drained) = said.parse() {
            return Ok(Ok(drained));
        }
        // It may hold files of the image: a new one for the next.
        self.server = None;
        Ok(Err(format!("it does not open: {}", said.trim())))
    }
}

/// A process that opens one directory after the other.
struct Server {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Server {
    fn start(subject: &Subject) -> io::Result<Self> {
        let mut process = subject.checker()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(to), Some(from)) => Ok(Self { process, to, from: BufReader::new(from) }),
            _ => Err(io::Error::other("no pipes")),
        }
    }

    /// The lines of one answer, up to its last, or to the end of the process.
    fn ask(&mut self, directory: &Path) -> io::Result<String> {
        self.to.write_all(format!("{}\n", directory.display()).as_bytes())?;
        let mut said = String::new();
        loop {
            let start = said.len();
            let length = self.from.read_line(&mut said)?;
            if length == 0 || said[start..].starts_with("end") || said[start..].starts_with("damage") {
                return Ok(said);
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
