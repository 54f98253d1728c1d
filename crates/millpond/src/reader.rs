//! The reader thread: it reads for ports, so that an event loop never waits for the disk.
//!
//! No item is taken ahead of a call: each sweep fills exactly the demand that is registered at that moment.

use crate::code::{ErrorCode, Outcome};
use crate::completion::{Entry, PortSink, guard};
use crate::delivery::Items;
use crate::error::{Failure, PushError};
use crate::limits::{SWEEP_BYTES_MAX, SWEEP_ENTRIES_MAX};
use crate::state::{Demand, Scan, Shared, State};
use crate::sync::{Arc, MutexGuard, ThreadBuilder};

enum Job {
    Sweep { port: Arc<PortSink>, count: usize },
    Scan(Scan),
    End,
}

impl Shared {
    /// Starts the reader thread if it does not run yet.
    fn start_reader(self: &Arc<Self>, state: &mut MutexGuard<'_, State>) -> Result<(), Failure> {
        if state.threads.reader.is_none() {
            let shared = Arc::clone(self);
            let thread = ThreadBuilder::new().name("millpond-read".to_owned());
            let handle = thread.spawn(move || shared.run_reader()).map_err(|error| {
                Failure::new(
                    ErrorCode::Io,
                    Outcome::NotDone,
                    format!("the reader thread did not start: {error}"),
                )
            })?;
            state.threads.reader = Some(handle);
        }
        Ok(())
    }

    /// Changes how many items `port` waits for.
    pub(crate) fn demand(self: &Arc<Self>, port: &Arc<PortSink>, change: i64) {
        let mut state = self.state.lock();
        if state.finishing {
            return;
        }
        // A withdrawal needs no reader, and must not be answered.
        let started = if change > 0 { self.start_reader(&mut state) } else { Ok(()) };
        // Like a failed read, a failed start uses up one of the demand; the rest stays for the next start.
        state.add_demand(port, change - i64::from(started.is_err()));
        match started {
            Ok(()) if state.may_be_ready() && state.demands.iter().any(|demand| demand.wanted > 0) => {
                self.read.notify_one();
            }
            Ok(()) => {}
            Err(failure) => {
                drop(state);
                guard(|| port.sink.delivered(Err(failure)));
            }
        }
    }

    /// Asks for entries from id `from` on; the answer comes through [`Sink::scanned`](crate::Sink::scanned).
    pub(crate) fn scan(self: &Arc<Self>, port: &Arc<PortSink>, from: u64, max: usize) -> u64 {
        let mut state = self.state.lock();
        let token = state.next_token;
        state.next_token += 1;
        let started =
            if state.finishing { Err(PushError::Closed.into()) } else { self.start_reader(&mut state) };
        match started {
            Ok(()) => {
                state.scans.push_back(Scan { port: Arc::clone(port), token, from, max });
                self.read.notify_one();
            }
            Err(failure) => {
                drop(state);
                guard(|| port.sink.scanned(token, Err(failure)));
            }
        }
        token
    }

    fn run_reader(self: &Arc<Self>) {
        loop {
            match self.next_job() {
                Job::End => return,
                Job::Scan(scan) => {
                    let entries = self.read_scan(scan.from, scan.max);
                    guard(|| scan.port.sink.scanned(scan.token, entries));
                }
                Job::Sweep { port, count } => self.sweep(&port, count),
            }
        }
    }

    fn next_job(&self) -> Job {
        let mut state = self.state.lock();
        loop {
            if let Some(scan) = state.scans.pop_front() {
                return Job::Scan(scan);
            }
            if state.finishing && state.finished.is_some() {
                return Job::End;
            }
            if !state.finishing
                && state.may_be_ready()
                && let Some(place) = state.demands.iter().position(|demand| demand.wanted > 0)
            {
                // To the end of the list, so that ports take turns.
                let mut demand = state.demands.remove(place);
                let count = usize::try_from(demand.wanted).unwrap_or(0).min(SWEEP_ENTRIES_MAX);
                demand.wanted -= i64::try_from(count).unwrap_or(0);
                let port = Arc::clone(&demand.port);
                state.demands.push(demand);
                return Job::Sweep { port, count };
            }
            self.read.wait(&mut state);
        }
    }

    fn sweep(self: &Arc<Self>, port: &Arc<PortSink>, count: usize) {
        let taken = self.take(count).map(Items::into_vec);
        let used = match &taken {
            Ok(items) => items.len(),
            Err(_) => 1,
        };
        let unused = i64::try_from(count.saturating_sub(used)).unwrap_or(0);
        self.state.lock().add_demand(port, unused);
        if used > 0 {
            guard(|| port.sink.delivered(taken));
        }
    }

    fn read_scan(&self, from: u64, max: usize) -> Result<Vec<Entry>, Failure> {
        let mut entries = Vec::new();
        let (mut from, mut bytes) = (from, 0);
        while entries.len() < max && bytes < SWEEP_BYTES_MAX {
            let Some(entry) = self.entry_from(from)? else { break };
            bytes += entry.payload.len();
            from = entry.id.saturating_add(1);
            entries.push(entry);
        }
        Ok(entries)
    }
}

impl State {
    fn add_demand(&mut self, port: &Arc<PortSink>, change: i64) {
        match self.demands.iter_mut().find(|demand| Arc::ptr_eq(&demand.port, port)) {
            Some(demand) => demand.wanted += change,
            None => self.demands.push(Demand { port: Arc::clone(port), wanted: change }),
        }
    }
}
