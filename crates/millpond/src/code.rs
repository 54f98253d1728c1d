//! Stable error codes: one table for Rust, the addon and TypeScript.
//!
//! `cargo xtask codegen` writes `src-ts/errors.generated.ts` and `docs/errors.md` from this table.

use std::fmt;

/// Whether the operation that failed may have happened all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing was stored, removed or delivered.
    NotDone,
    /// The failure came after writing had begun: it may or may not be on disk. A push that is repeated may be
    /// delivered twice, an ack that failed may be delivered again.
    Unknown,
}

impl Outcome {
    /// The literal of this outcome, the same in TypeScript.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::NotDone => "not-done",
            Outcome::Unknown => "unknown",
        }
    }
}

macro_rules! codes {
    ($($variant:ident, $text:literal, $retryable:literal, $when:literal, $remedy:literal;)*) => {
        /// A stable error code. Strings are never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $when] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The code's string, the same in Rust, in the addon and in TypeScript.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $text,)* }
            }

            /// Whether the same call may succeed later without a change by the caller.
            pub fn is_retryable(self) -> bool {
                match self { $(ErrorCode::$variant => $retryable,)* }
            }

            /// When the code is raised.
            pub fn when(self) -> &'static str {
                match self { $(ErrorCode::$variant => $when,)* }
            }

            /// What the caller should do.
            pub fn remedy(self) -> &'static str {
                match self { $(ErrorCode::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    Closed, "MILLPOND_CLOSED", false,
        "The queue is closed, or closed while the call waited.", "Stop; expected during shutdown.";
    Full, "MILLPOND_FULL", true,
        "The queue holds as many unacked entries as its capacity, or too many bytes wait for room.", "Wait for acks, or use `push`, which waits.";
    Timeout, "MILLPOND_TIMEOUT", true,
        "The time given for waiting is over.", "Back off or shed load.";
    TooLarge, "MILLPOND_TOO_LARGE", false,
        "The payload is larger than the limit.", "Split it, or store a reference.";
    Invalid, "MILLPOND_INVALID", false,
        "An option or argument has the right type but an impossible value.", "Fix the call.";
    Encode, "MILLPOND_ENCODE", false,
        "The codec cannot store this value faithfully.", "Change the value or the codec; nothing was stored.";
    Decode, "MILLPOND_DECODE", false,
        "The stored bytes are not valid for the codec.", "Ack the item to skip it, or nack it; its bytes are readable.";
    Locked, "MILLPOND_LOCKED", true,
        "Another process or another handle owns the directory.", "Close the other owner.";
    NewerFormat, "MILLPOND_NEWER_FORMAT", false,
        "The directory was written by a newer version.", "Upgrade the package; nothing was changed.";
    CodecMismatch, "MILLPOND_CODEC_MISMATCH", false,
        "The queue was written with another codec.", "Open it with the codec the message names.";
    NotADirectory, "MILLPOND_NOT_A_DIRECTORY", false,
        "The path is a file.", "Name a directory, or a path that does not exist yet.";
    Corrupt, "MILLPOND_CORRUPT", false,
        "Stored bytes do not pass their checksum.", "Open without `strict` to deliver everything that is intact.";
    NoSpace, "MILLPOND_NO_SPACE", true,
        "The device or the quota is full.", "Free space; the same handle accepts again.";
    Io, "MILLPOND_IO", false,
        "The operating system refused an operation.", "Look at `errno`, `path` and `operation`.";
    Poisoned, "MILLPOND_POISONED", false,
        "A write failed earlier in a way that leaves the disk's content unknown.", "Close and open again: recovery finds out.";
    IdsExhausted, "MILLPOND_IDS_EXHAUSTED", false,
        "The next id would be above 2^53 - 1.", "Start a new queue.";
    Unsupported, "MILLPOND_UNSUPPORTED", false,
        "This build or platform lacks the asked feature.", "Install the build that has it.";
    Internal, "MILLPOND_INTERNAL", false,
        "A panic or a broken invariant was caught.", "Report it; close and open again.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
