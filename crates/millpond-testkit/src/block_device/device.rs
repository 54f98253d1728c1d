//! The daemon that serves an image as a disk, records what reaches it, and fails requests on demand.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest the daemon may take to start, to answer, or to end.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(2);

/// A disk that is served; ends when it goes.
#[derive(Debug)]
pub struct Device {
    daemon: Child,
    monitor: BufReader<UnixStream>,
    disk: PathBuf,
    recording: PathBuf,
    is_faulty: bool,
}

/// Requests that fail with EIO.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The next flush.
    Flush,
    /// The next write that touches this sector, for each of these sectors.
    Writes(Vec<u64>),
}

impl Device {
    /// Serves `image`; other files of the device go into `folder`.
    ///
    /// # Errors
    /// When the daemon does not start.
    pub fn start(image: &Path, folder: &Path) -> io::Result<Self> {
        let [disk, recording, socket] = ["disk", "recording", "monitor"].map(|name| folder.join(name));
        File::create(&disk)?;
        File::create(&recording)?;
        // "content" is what faults are put in front of, while it runs.
        let daemon = Command::new("qemu-storage-daemon")
            .arg("--chardev")
            .arg(format!("socket,id=monitor,path={},server=on,wait=off", socket.display()))
            .args(["--monitor", "chardev=monitor"])
            .arg("--blockdev")
            .arg(format!("driver=file,node-name=image,filename={}", image.display()))
            .args(["--blockdev", "driver=raw,node-name=content,file=image"])
            .arg("--blockdev")
            .arg(format!("driver=file,node-name=recording,filename={}", recording.display()))
            .arg("--blockdev")
            .arg("driver=blklogwrites,node-name=recorded,file=content,log=recording,log-sector-size=512")
            .arg("--export")
            .arg(format!("type=fuse,id=disk,node-name=recorded,mountpoint={},writable=on", disk.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let until = Instant::now() + PATIENCE;
        let mut starting = Starting(Some(daemon));
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(_) if Instant::now() < until && starting.lives()? => thread::sleep(POLL),
                Err(error) => return Err(error),
            }
        };
        let bytes = fs::metadata(image)?.len();
        // The export is mounted over the empty file.
        while fs::metadata(&disk)?.len() != bytes {
            if Instant::now() > until || !starting.lives()? {
                return Err(io::Error::other("qemu-storage-daemon does not serve the image"));
            }
            thread::sleep(POLL);
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        let daemon = starting.0.take().ok_or_else(|| io::Error::other("no daemon"))?;
        let monitor = BufReader::new(stream);
        let mut device = Self { daemon, monitor, disk, recording, is_faulty: false };
        device.execute("{\"execute\":\"qmp_capabilities\"}")?;
        Ok(device)
    }

    /// The file that is the disk.
    pub fn disk(&self) -> &Path {
        &self.disk
    }

    /// The file with the recording.
    pub fn recording(&self) -> &Path {
        &self.recording
    }

    /// Makes requests fail from now on, once each.
    ///
    /// # Errors
    /// When the daemon refuses.
    pub fn fail(&mut self, fault: &Fault) -> io::Result<()> {
        self.mend()?;
        let mut rules = String::new();
        match fault {
            Fault::Flush => rules.push_str(r#"{"event":"none","iotype":"flush","errno":5,"once":true}"#),
            Fault::Writes(sectors) => {
                for sector in sectors {
                    let comma = if rules.is_empty() { "" } else { "," };
                    write!(
                        rules,
                        r#"{comma}{{"event":"none","iotype":"write","sector":{sector},"errno":5,"once":true}}"#
                    )
                    .map_err(io::Error::other)?;
                }
            }
        }
        self.execute(&format!(
            r#"{{"execute":"blockdev-add","arguments":{{"driver":"blkdebug","node-name":"faulty","image":"image","inject-error":[{rules}]}}}}"#
        ))?;
        self.is_faulty = true;
        self.read_through("faulty")
    }

    /// Takes all faults away.
    ///
    /// # Errors
    /// When the daemon refuses.
    pub fn mend(&mut self) -> io::Result<()> {
        if !self.is_faulty {
            return Ok(());
        }
        self.read_through("image")?;
        self.execute(r#"{"execute":"blockdev-del","arguments":{"node-name":"faulty"}}"#)?;
        self.is_faulty = false;
        Ok(())
    }

    fn read_through(&mut self, node: &str) -> io::Result<()> {
        self.execute(&format!(
            r#"{{"execute":"blockdev-reopen","arguments":{{"options":[{{"driver":"raw","node-name":"content","file":"{node}"}}]}}}}"#
        ))
    }

    fn execute(&mut self, command: &str) -> io::Result<()> {
        let stream = self.monitor.get_mut();
        stream.write_all(command.as_bytes())?;
        stream.write_all(b"\n")?;
        loop {
            let mut line = String::new();
            if self.monitor.read_line(&mut line)? == 0 {
                return Err(io::Error::other("qemu-storage-daemon ended"));
            }
            if line.starts_with(r#"{"return""#) {
                return Ok(());
            }
            if line.starts_with(r#"{"error""#) {
                return Err(io::Error::other(line));
            }
            // The greeting, or an event.
        }
    }

    /// Ends the daemon, so that image and recording are complete. Nothing may be mounted from the disk any more.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn stop(mut self) -> io::Result<()> {
        drop(self.execute(r#"{"execute":"quit"}"#));
        let until = Instant::now() + PATIENCE;
        while self.daemon.try_wait()?.is_none() {
            if Instant::now() > until {
                return Err(io::Error::other("qemu-storage-daemon does not end"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        end(&mut self.daemon);
    }
}

/// A daemon that does not serve yet.
struct Starting(Option<Child>);

impl Starting {
    fn lives(&mut self) -> io::Result<bool> {
        Ok(match &mut self.0 {
            Some(daemon) => daemon.try_wait()?.is_none(),
            None => false,
        })
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.0 {
            end(daemon);
        }
    }
}

fn end(daemon: &mut Child) {
    drop(daemon.kill());
    drop(daemon.wait());
}
