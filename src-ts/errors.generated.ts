// Written by `cargo xtask codegen` from crates/millpond/src/code.rs. Do not edit.

/** Every error code: whether the same call may succeed later, when it is raised, what to do. */
export const errorTable = {
  MILLPOND_CLOSED: {
    retryable: false,
    when: 'The queue is closed, or closed while the call waited.',
    remedy: 'Stop; expected during shutdown.',
  },
  MILLPOND_FULL: {
    retryable: true,
    when: 'The queue holds as many unacked entries as its capacity, or too many bytes wait for room.',
    remedy: 'Wait for acks, or use `push`, which waits.',
  },
  MILLPOND_TIMEOUT: {
    retryable: true,
    when: 'The time given for waiting is over.',
    remedy: 'Back off or shed load.',
  },
  MILLPOND_TOO_LARGE: {
    retryable: false,
    when: 'The payload is larger than the limit.',
    remedy: 'Split it, or store a reference.',
  },
  MILLPOND_INVALID: {
    retryable: false,
    when: 'An option or argument has the right type but an impossible value.',
    remedy: 'Fix the call.',
  },
  MILLPOND_ENCODE: {
    retryable: false,
    when: 'The codec cannot store this value faithfully.',
    remedy: 'Change the value or the codec; nothing was stored.',
  },
  MILLPOND_DECODE: {
    retryable: false,
    when: 'The stored bytes are not valid for the codec.',
    remedy: 'Ack the item to skip it, or nack it; its bytes are readable.',
  },
  MILLPOND_LOCKED: {
    retryable: true,
    when: 'Another process or another handle owns the directory.',
    remedy: 'Close the other owner.',
  },
  MILLPOND_NEWER_FORMAT: {
    retryable: false,
    when: 'The directory was written by a newer version.',
    remedy: 'Upgrade the package; nothing was changed.',
  },
  MILLPOND_CODEC_MISMATCH: {
    retryable: false,
    when: 'The queue was written with another codec.',
    remedy: 'Open it with the codec the message names.',
  },
  MILLPOND_NOT_A_DIRECTORY: {
    retryable: false,
    when: 'The path is a file.',
    remedy: 'Name a directory, or a path that does not exist yet.',
  },
  MILLPOND_CORRUPT: {
    retryable: false,
    when: 'Stored bytes do not pass their checksum.',
    remedy: 'Open without `strict` to deliver everything that is intact.',
  },
  MILLPOND_NO_SPACE: {
    retryable: true,
    when: 'The device or the quota is full.',
    remedy: 'Free space; the same handle accepts again.',
  },
  MILLPOND_IO: {
    retryable: false,
    when: 'The operating system refused an operation.',
    remedy: 'Look at `errno`, `path` and `operation`.',
  },
  MILLPOND_POISONED: {
    retryable: false,
    when: "A write failed earlier in a way that leaves the disk's content unknown.",
    remedy: 'Close and open again: recovery finds out.',
  },
  MILLPOND_IDS_EXHAUSTED: {
    retryable: false,
    when: 'The next id would be above 2^53 - 1.',
    remedy: 'Start a new queue.',
  },
  MILLPOND_UNSUPPORTED: {
    retryable: false,
    when: 'This build or platform lacks the asked feature.',
    remedy: 'Install the build that has it.',
  },
  MILLPOND_INTERNAL: {
    retryable: false,
    when: 'A panic or a broken invariant was caught.',
    remedy: 'Report it; close and open again.',
  },
} as const

/** A stable error code. Strings are never reused. */
export type ErrorCode = keyof typeof errorTable
