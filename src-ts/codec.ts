/**
 * How values become bytes and back. `In` is what `push` takes, `Out` what a delivery gives.
 *
 * `encode` must refuse what it cannot store faithfully by throwing: nothing is stored then, and the error reaches the
 * caller as `MILLPOND_ENCODE` (a `TypeError` is passed on as it is). A string result is stored as UTF-8. The bytes are
 * copied before `encode`'s caller returns.
 */
export interface Codec<In, Out = In> {
  /** Kept in the queue: opening it with a codec of another name is refused. */
  readonly name: string
  encode(value: In): Uint8Array | string
  /** `bytes` may be kept, but not changed. */
  decode(bytes: Uint8Array): Out
}
