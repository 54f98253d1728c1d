/**
 * What waits for its token to settle: a function resolves one push with its id; an object covers `span` tokens and gets
 * the value of the first.
 */
export type Settler = (value: number | Promise<never>) => void
export interface Pending {
  readonly span: number
  settle(value: number): void
  /** Rejects with what `reject` makes. */
  fail(reject: (resolve: (value: Promise<never>) => void) => void): void
}
export type Waiting = Settler | Pending

const SLOTS_MIN = 1024

/**
 * Waiting operations by token. Tokens are handed out in order and mostly settle in order, so a ring finds each in one
 * step. A push that waits for long while tokens go round makes room by moving out of the ring.
 */
export class TokenRing {
  #entries: (Waiting | undefined)[] = new Array<Waiting | undefined>(SLOTS_MIN).fill(undefined)
  #tokens: Float64Array = new Float64Array(SLOTS_MIN)
  #mask: number = SLOTS_MIN - 1
  #inRing = 0
  readonly #late: Map<number, Waiting> = new Map()

  get size(): number {
    return this.#inRing + this.#late.size
  }

  put(token: number, entry: Waiting): void {
    // The mask takes the low bits of any safe integer.
    while (this.#entries[token & this.#mask] !== undefined) this.#makeRoom(token & this.#mask)
    const slot = token & this.#mask
    this.#entries[slot] = entry
    this.#tokens[slot] = token
    this.#inRing++
  }

  take(token: number): Waiting | undefined {
    const slot = token & this.#mask
    const entry = this.#entries[slot]
    if (entry === undefined || this.#tokens[slot] !== token) return this.#takeLate(token)
    this.#entries[slot] = undefined
    this.#inRing--
    return entry
  }

  /** Takes everything, oldest token first. */
  drain(): Waiting[] {
    const left: [number, Waiting][] = [...this.#late]
    for (const [slot, entry] of this.#entries.entries()) {
      if (entry !== undefined) left.push([this.#tokens[slot] ?? 0, entry])
    }
    this.#entries.fill(undefined)
    this.#inRing = 0
    this.#late.clear()
    return left.toSorted((a, b) => a[0] - b[0]).map(([, entry]) => entry)
  }

  #takeLate(token: number): Waiting | undefined {
    if (this.#late.size === 0) return undefined
    const entry = this.#late.get(token)
    if (entry !== undefined) this.#late.delete(token)
    return entry
  }

  #makeRoom(slot: number): void {
    const entry = this.#entries[slot]
    if (this.#inRing * 2 > this.#entries.length || entry === undefined) {
      this.#grow()
      return
    }
    this.#late.set(this.#tokens[slot] ?? 0, entry)
    this.#entries[slot] = undefined
    this.#inRing--
  }

  #grow(): void {
    const entries = this.#entries
    const tokens = this.#tokens
    const length = entries.length * 2
    this.#entries = new Array<Waiting | undefined>(length).fill(undefined)
    this.#tokens = new Float64Array(length)
    this.#mask = length - 1
    for (const [slot, entry] of entries.entries()) {
      if (entry === undefined) continue
      const token = tokens[slot] ?? 0
      // Tokens that were apart in half the ring are apart in all of it.
      this.#entries[token & this.#mask] = entry
      this.#tokens[token & this.#mask] = token
    }
  }
}
