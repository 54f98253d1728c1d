// The payloads of the crash tests, as in crates/millpond-testkit/src/payload.rs: a nonce, and bytes that follow from it.

const MASK = (1n << 64n) - 1n

/** SplitMix64, as in crates/millpond-testkit/src/random.rs. */
export class Random {
  #state

  /** @param {bigint} seed */
  constructor(seed) {
    this.#state = seed
  }

  /** @returns {bigint} */
  next() {
    this.#state = (this.#state + 0x9e3779b97f4a7c15n) & MASK
    let mixed = this.#state
    mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & MASK
    return mixed ^ (mixed >> 31n)
  }

  /** @param {number} bound */
  below(bound) {
    return Number(this.next() % BigInt(bound))
  }
}

/**
 * @param {bigint} nonce
 * @returns {Buffer}
 */
export function payload(nonce) {
  const random = new Random(nonce)
  const length = random.below(8) === 0 ? random.below(4096) : random.below(200)
  const bytes = Buffer.alloc(8 * (1 + Math.ceil(length / 8)))
  bytes.writeBigUInt64LE(nonce)
  for (let at = 8; at < bytes.length; at += 8) bytes.writeBigUInt64LE(random.next(), at)
  return bytes
}

/**
 * The nonce of a payload, or null unless every byte is as it was pushed.
 * @param {Buffer} bytes
 * @returns {bigint | null}
 */
export function nonceOf(bytes) {
  if (bytes.length < 8) return null
  const nonce = bytes.readBigUInt64LE()
  return payload(nonce).equals(bytes) ? nonce : null
}
