import type { Delivery } from '../engine.ts'
import type { Pending } from './token-ring.ts'

/** Figures before the payloads in a packed delivery: id, generation, deliveries, length. */
const DELIVERY_FIGURES = 4
/** Figures before the payloads in packed entries: id, length. */
const ENTRY_FIGURES = 2

type State = 'in-flight' | 'acking' | 'settled'

/** A delivery of the addon: id and generation name the reservation. */
export class NativeDelivery implements Delivery, Pending {
  readonly id: number
  readonly generation: number
  readonly deliveries: number
  readonly span = 1
  #payload: Uint8Array
  #isOwn = false
  #state: State = 'in-flight'
  #resolve: ((value: boolean | Promise<never>) => void) | undefined
  #onFailed: (() => void) | undefined

  constructor(id: number, generation: number, deliveries: number, payload: Uint8Array) {
    this.id = id
    this.generation = generation
    this.deliveries = deliveries
    this.#payload = payload
  }

  get isSettled(): boolean {
    return this.#state !== 'in-flight'
  }

  bytes(): Uint8Array {
    if (!this.#isOwn) {
      this.#payload = this.#payload.slice()
      this.#isOwn = true
    }
    return this.#payload
  }

  detach(): void {
    this.#state = 'settled'
  }

  /** An ack is under way; `resolve` gets its answer, and `onFailed` is called if the entry stays in flight. */
  begin(resolve: (value: boolean | Promise<never>) => void, onFailed?: () => void): void {
    this.#state = 'acking'
    this.#onFailed = onFailed
    this.#resolve = resolve
  }

  settle(): void {
    this.#end(true)
  }

  /** The core says that the reservation was settled before. */
  refuse(): void {
    this.#end(false)
  }

  fail(reject: (resolve: (value: Promise<never>) => void) => void): void {
    const resolve = this.#resolve
    this.#resolve = undefined
    const onFailed = this.#onFailed
    this.#onFailed = undefined
    // After a failed ack the entry is still in flight on this handle.
    this.#state = 'in-flight'
    onFailed?.()
    if (resolve !== undefined) reject(resolve)
  }

  #end(answer: boolean): void {
    const resolve = this.#resolve
    this.#resolve = undefined
    this.#onFailed = undefined
    this.#state = 'settled'
    resolve?.(answer)
  }
}

/** Packed: the count, then the figures of each, then the payloads one after another. */
export function unpackDeliveries(packed: ArrayBuffer): NativeDelivery[] {
  const figures = new Float64Array(packed, 0, packed.byteLength >> 3)
  const count = figures[0] ?? 0
  const deliveries: NativeDelivery[] = []
  let offset = 8 * (1 + count * DELIVERY_FIGURES)
  for (let i = 0, at = 1; i < count; i++, at += DELIVERY_FIGURES) {
    const length = figures[at + 3] ?? 0
    const payload = new Uint8Array(packed, offset, length)
    deliveries.push(new NativeDelivery(figures[at] ?? 0, figures[at + 1] ?? 0, figures[at + 2] ?? 0, payload))
    offset += length
  }
  return deliveries
}

export function unpackEntries(packed: ArrayBuffer): { id: number; bytes: Uint8Array }[] {
  const figures = new Float64Array(packed, 0, packed.byteLength >> 3)
  const count = figures[0] ?? 0
  const entries: { id: number; bytes: Uint8Array }[] = []
  let offset = 8 * (1 + count * ENTRY_FIGURES)
  for (let i = 0, at = 1; i < count; i++, at += ENTRY_FIGURES) {
    const length = figures[at + 1] ?? 0
    entries.push({ id: figures[at] ?? 0, bytes: new Uint8Array(packed.slice(offset, offset + length)) })
    offset += length
  }
  return entries
}
