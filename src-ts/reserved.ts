import { DecodeError } from './errors.ts'
import type { Codec } from './codec.ts'
import type { Delivery } from './engine.ts'

/** What decoding gave: never an exception. */
export type Decoded<Out> =
  | { readonly ok: true; readonly value: Out }
  | { readonly ok: false; readonly error: DecodeError }

/** Decodes an entry's bytes. */
export function decodeEntry<Out>(codec: Codec<never, Out>, id: number, bytes: Uint8Array): Decoded<Out> {
  try {
    return { ok: true, value: codec.decode(bytes) }
  } catch (error) {
    return { ok: false, error: new DecodeError(id, error) }
  }
}

/** What a handle needs of its queue. */
export interface Owner<Out> {
  readonly codec: Codec<never, Out>
  /** The handle needs no care until the ack fails. */
  ack(delivery: Delivery, handle: object): Promise<boolean>
  nack(delivery: Delivery): boolean
  /** The handle needs no care any more. */
  forget(delivery: Delivery): void
}

/**
 * An entry that was delivered and is in flight: settle it with `ack()` or `nack()`. Leaving a `using` block settles it
 * with `nack()` unless that has happened. A handle that is dropped without settling is returned when it is collected,
 * with a warning; do not rely on it.
 */
export class Reserved<Out> implements Disposable, AsyncDisposable {
  readonly #owner: Owner<Out>
  readonly #delivery: Delivery
  #decoded: Decoded<Out> | undefined

  /** Made by the queue. */
  constructor(owner: Owner<Out>, delivery: Delivery) {
    this.#owner = owner
    this.#delivery = delivery
  }

  get id(): number {
    return this.#delivery.id
  }

  /** How often the entry was delivered since the queue was opened; 1 at first. */
  get deliveries(): number {
    return this.#delivery.deliveries
  }

  /** Whether the handle was settled, or an ack is under way. */
  get settled(): boolean {
    return this.#delivery.isSettled
  }

  /**
   * The decoded value; decoded at the first access.
   * @throws {@link DecodeError} if the codec rejects the stored bytes; the handle works all the same
   */
  get value(): Out {
    const decoded = this.decode()
    if (decoded.ok) return decoded.value
    throw decoded.error
  }

  /** The stored payload, in memory of its own. */
  get bytes(): Uint8Array {
    return this.#delivery.bytes()
  }

  /** Like `value`, without an exception. */
  decode(): Decoded<Out> {
    this.#decoded ??= decodeEntry(this.#owner.codec, this.id, this.#delivery.bytes())
    return this.#decoded
  }

  /**
   * Removes the entry; resolves when that is durable: `true`, or `false` if the handle was settled already. After a
   * failure the entry is still in flight on this handle.
   * @throws MILLPOND_CLOSED, and what a failed write gives: MILLPOND_NO_SPACE, MILLPOND_IO, MILLPOND_POISONED
   */
  ack(): Promise<boolean> {
    return this.#owner.ack(this.#delivery, this)
  }

  /** Returns the entry to its own place in the queue. False if the handle was settled already. */
  nack(): boolean {
    const delivery = this.#delivery
    if (delivery.isSettled) return false
    this.#owner.forget(delivery)
    return this.#owner.nack(delivery)
  }

  /** Ends this handle's care and returns the id; the entry stays in flight until it is settled by its id. */
  detach(): number {
    const delivery = this.#delivery
    if (!delivery.isSettled) {
      this.#owner.forget(delivery)
      delivery.detach()
    }
    return delivery.id
  }

  [Symbol.dispose](): void {
    try {
      this.nack()
    } catch {
      // Disposal never throws.
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]()
    return Promise.resolve()
  }
}
