//! Failures as plain data; the facade makes the public error where it is awaited.

use millpond::{ErrorCode, Failure, Outcome};
use napi_derive::napi;

use crate::number;

/// A failure with its stable code.
#[napi(object)]
pub struct NativeFailure {
    /// The code, as in the core's table.
    pub code: String,
    /// `not-done` or `unknown`.
    pub outcome: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// A sentence for people.
    pub message: String,
    /// The entry concerned.
    pub id: Option<f64>,
    /// The operating system's error number.
    pub errno: Option<i32>,
    /// The file or directory concerned.
    pub path: Option<String>,
    /// The operation that the system refused.
    pub operation: Option<String>,
}

impl NativeFailure {
    fn new(code: ErrorCode, outcome: Outcome, message: String) -> Self {
        Self {
            code: code.as_str().to_owned(),
            outcome: outcome.as_str().to_owned(),
            retryable: code.is_retryable(),
            message,
            id: None,
            errno: None,
            path: None,
            operation: None,
        }
    }

    /// A feature that this build lacks.
    pub(crate) fn unsupported(message: String) -> Self {
        Self::new(ErrorCode::Unsupported, Outcome::NotDone, message)
    }

    /// A broken call of the facade, or no memory.
    pub(crate) fn internal(message: String) -> Self {
        Self::new(ErrorCode::Internal, Outcome::NotDone, message)
    }
}

impl From<&Failure> for NativeFailure {
    fn from(failure: &Failure) -> Self {
        let io = failure.io();
        Self {
            id: failure.id().map(number::to_js),
            errno: io.and_then(|io| io.errno),
            path: io.map(|io| io.path.display().to_string()),
            operation: io.map(|io| io.operation.to_owned()),
            ..Self::new(failure.code(), failure.outcome(), failure.message().to_owned())
        }
    }
}

impl From<Failure> for NativeFailure {
    fn from(failure: Failure) -> Self {
        Self::from(&failure)
    }
}
