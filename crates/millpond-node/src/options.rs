//! What a queue is opened with.

use std::path::Path;

use millpond::store::{LogOptions, LogStore, MemStore};
use millpond::{Builder, Durability, Failure, Queue};
use napi_derive::napi;

use crate::failure::NativeFailure;
use crate::number;

/// Options of `open`; the facade fills in its defaults.
#[napi(object)]
pub(crate) struct NativeOptions {
    /// `log` or `memory`.
    pub backend: String,
    /// The most unacked entries.
    pub capacity: f64,
    /// See [`durability`].
    pub durability: u32,
    /// The codec's name.
    pub codec: String,
    /// The largest segment of the log.
    pub segment_bytes: Option<f64>,
    /// Refuse damage.
    pub strict: bool,
}

/// How durabilities are counted at the boundary: 0 is the queue's own.
pub(crate) fn durability(number: u32) -> Option<Durability> {
    match number {
        1 => Some(Durability::Sync),
        2 => Some(Durability::Group),
        3 => Some(Durability::None),
        _ => None,
    }
}

/// Opens the queue: reads the disk, so not on the event loop's thread.
pub(crate) fn open(path: &str, options: &NativeOptions) -> Result<Queue, Box<NativeFailure>> {
    let builder = match options.backend.as_str() {
        "log" => {
            let mut log = LogOptions { strict: options.strict, ..LogOptions::default() };
            if let Some(bytes) = options.segment_bytes {
                log.segment_bytes = number::from_js(bytes);
            }
            Builder::new(LogStore::open_with(Path::new(path), log).map_err(|error| boxed(error.into()))?)
        }
        "memory" => Builder::new(MemStore::new()),
        other => {
            let message = format!("the backend '{other}' is not in this build");
            return Err(Box::new(NativeFailure::unsupported(message)));
        }
    };
    builder
        .capacity(number::from_js(options.capacity))
        .durability(durability(options.durability).unwrap_or(Durability::Group))
        .codec(options.codec.as_str())
        .open()
        .map_err(|error| boxed(error.into()))
}

fn boxed(failure: Failure) -> Box<NativeFailure> {
    Box::new(failure.into())
}
