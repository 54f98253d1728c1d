//! The functions of the addon.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use millpond::ErrorCode;
use napi_derive::napi;

use crate::event::{Event, Listener, ListenerFunction};
use crate::failure::NativeFailure;
use crate::options::{self, NativeOptions};
use crate::queue::NativeQueue;

/// Opens a queue on a thread of its own; the first event is the queue or the failure.
#[napi(catch_unwind)]
pub(crate) fn open(path: String, options: NativeOptions, listener: ListenerFunction<'_>) -> napi::Result<()> {
    let listener = Arc::new(Listener::new(listener)?);
    let work = move || {
        let opened = panic::catch_unwind(AssertUnwindSafe(|| options::open(&path, &options)))
            .unwrap_or_else(|_| Err(Box::new(NativeFailure::internal("opening panicked".to_owned()))))
            .map(|queue| NativeQueue::new(&queue, &listener));
        listener.emit(Event::Opened(opened));
    };
    thread::Builder::new()
        .name("millpond-open".to_owned())
        .spawn(work)
        .map_err(|error| napi::Error::from_reason(format!("no thread to open with: {error}")))?;
    Ok(())
}

/// The core's version.
#[napi(catch_unwind)]
pub(crate) fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// One line of the table of error codes.
#[napi(object)]
pub(crate) struct NativeErrorCode {
    /// The code.
    pub code: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// When it is raised.
    pub when: String,
    /// What to do.
    pub remedy: String,
}

/// The table of error codes.
#[napi(catch_unwind)]
pub(crate) fn error_codes() -> Vec<NativeErrorCode> {
    ErrorCode::ALL
        .iter()
        .map(|code| NativeErrorCode {
            code: code.as_str().to_owned(),
            retryable: code.is_retryable(),
            when: code.when().to_owned(),
            remedy: code.remedy().to_owned(),
        })
        .collect()
}
