import type { Codec } from './codec.ts'
import type { StoredEntry } from './engine.ts'
import { decodeEntry, type Decoded } from './reserved.ts'

/** An entry looked at without reserving it. */
export class Entry<Out> {
  readonly id: number
  /** The stored payload. */
  readonly bytes: Uint8Array
  readonly #codec: Codec<never, Out>
  #decoded: Decoded<Out> | undefined

  /** Made by the queue. */
  constructor(codec: Codec<never, Out>, stored: StoredEntry) {
    this.id = stored.id
    this.bytes = stored.bytes
    this.#codec = codec
  }

  /**
   * The decoded value; decoded at the first access.
   * @throws {@link DecodeError} if the codec rejects the stored bytes
   */
  get value(): Out {
    const decoded = this.decode()
    if (decoded.ok) return decoded.value
    throw decoded.error
  }

  /** Like `value`, without an exception. */
  decode(): Decoded<Out> {
    this.#decoded ??= decodeEntry(this.#codec, this.id, this.bytes)
    return this.#decoded
  }
}
