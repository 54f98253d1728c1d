import { byteLengthOf } from './payload.ts'
import type { Settler } from './token-ring.ts'

/** A push that may be withdrawn: where it is, while it is on its way. */
export interface Ticket {
  /** Its place among the staged pushes, until it crosses. */
  index: number
  /** Its token, once it has crossed. */
  token: number | undefined
  withdrawn: boolean
}

/** The stage is crossed when it holds this many pushes or bytes. */
export const STAGED_PUSHES_MAX = 1024
export const STAGED_BYTES_MAX: number = 1 << 20
/** A payload of this size or more bypasses the stage. */
export const BYPASS_BYTES: number = 64 << 10

/** The pushes of one turn of the event loop: payloads lie one after another in the arena. */
export class Stage {
  // Room beyond the limit, so that a payload below the bypass always fits before the stage is crossed. A Buffer for its
  // UTF-8 writer; pages that are not used cost nothing.
  readonly arena: Buffer = Buffer.allocUnsafeSlow(STAGED_BYTES_MAX + BYPASS_BYTES)
  readonly lengths: Uint32Array = new Uint32Array(STAGED_PUSHES_MAX)
  readonly settlers: Settler[] = []
  tickets: Ticket[] = []
  count = 0
  used = 0
  /** The durability of everything staged, as the addon counts it. */
  durability = 0

  get isFull(): boolean {
    return this.count >= STAGED_PUSHES_MAX || this.used >= STAGED_BYTES_MAX
  }

  /** Copies the payload behind those already staged. */
  write(payload: Uint8Array): void {
    const length = byteLengthOf(payload)
    this.arena.set(payload, this.used)
    this.lengths[this.count] = length
    this.used += length
  }

  /** Writes `text` as UTF-8; its bytes must be known to fit. */
  writeText(text: string): void {
    const length = this.arena.write(text, this.used)
    this.lengths[this.count] = length
    this.used += length
  }

  /** Closes the gaps that withdrawn pushes left. */
  compact(): void {
    const withdrawn = new Set<number>()
    for (const ticket of this.tickets) if (ticket.withdrawn) withdrawn.add(ticket.index)
    if (withdrawn.size === 0) return
    let kept = 0
    let from = 0
    let to = 0
    const moved = new Map<number, number>()
    for (let i = 0; i < this.count; i++) {
      const length = this.lengths[i] ?? 0
      const settler = this.settlers[i]
      if (!withdrawn.has(i) && settler !== undefined) {
        this.arena.copyWithin(to, from, from + length)
        this.lengths[kept] = length
        this.settlers[kept] = settler
        moved.set(i, kept)
        kept++
        to += length
      }
      from += length
    }
    this.tickets = this.tickets.filter((ticket) => !ticket.withdrawn)
    for (const ticket of this.tickets) ticket.index = moved.get(ticket.index) ?? 0
    this.settlers.length = kept
    this.count = kept
    this.used = to
  }
}
