import { types } from 'node:util'
import type { Codec } from '../codec.ts'
import { MillpondError } from '../errors.ts'

/** Options of {@link json}. */
export interface JsonOptions {
  /** Also refuse fields whose value is `undefined`, and keys that are symbols, instead of leaving them out. @default false */
  readonly strict?: boolean
}

/** Values nested deeper than this are refused. */
const DEPTH_MAX = 1_000

/** Why a value cannot be stored, and where it is; filled from the inside out. */
class Refusal {
  readonly reason: string
  readonly #path: string[] = []

  constructor(reason: string) {
    this.reason = reason
  }

  under(key: string | number): this {
    this.#path.push(
      typeof key === 'number' ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`,
    )
    return this
  }

  toString(): string {
    // A path of a thousand steps helps nobody.
    const steps = this.#path.toReversed()
    const path = steps.length > 32 ? `${steps.slice(0, 32).join('')}...` : steps.join('')
    return `$${path}: ${this.reason}`
  }
}

/** The result of a walk that met a `toJSON`: the value must be copied, so that each `toJSON` runs once. */
const COPY: unique symbol = Symbol('copy')
type Finding = Refusal | typeof COPY | undefined

const objectPrototype = Object.prototype

function refuseInstance(value: object): string {
  if (types.isMap(value)) return 'a Map would lose its entries'
  if (types.isSet(value)) return 'a Set would lose its members'
  if (types.isBoxedPrimitive(value)) return 'a boxed primitive would become a plain one'
  return 'an instance of a class without toJSON would lose its class'
}

/** Why this object cannot be stored by its own kind, if so; its fields are not looked at. */
function refuseKind(value: object): string | undefined {
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) {
    return 'binary data would become an object of numbers (use the bytes codec)'
  }
  return undefined
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === objectPrototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function'
}

function tooDeep(root: unknown): Refusal {
  const ancestors = new Set<object>()
  let current: unknown = root
  // Only a cycle or a very long chain gets here: follow one path down, the one that is deep.
  const isCircular = (value: unknown, depth: number): boolean => {
    if (typeof value !== 'object' || value === null) return false
    if (ancestors.has(value)) return true
    if (depth > DEPTH_MAX) return false
    ancestors.add(value)
    for (const key of Object.keys(value)) {
      if (isCircular((value as Record<string, unknown>)[key], depth + 1)) return true
    }
    ancestors.delete(value)
    return false
  }
  try {
    if (isCircular(current, 0)) return new Refusal('the value is circular')
  } catch {
    current = undefined
  }
  return new Refusal(`the value is nested deeper than ${DEPTH_MAX} levels`)
}

function scalarRefusal(value: unknown, inArray: boolean): Refusal | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      if (!Number.isFinite(value)) return new Refusal(`${value} is not in JSON`)
      return Object.is(value, -0) ? new Refusal('-0 would become 0') : undefined
    case 'undefined':
      return new Refusal(inArray ? 'undefined in an array would become null' : 'undefined is not in JSON')
    case 'bigint':
      return new Refusal('a BigInt is not in JSON')
    case 'symbol':
      return new Refusal('a symbol is not in JSON')
    default:
      return new Refusal('a function is not in JSON')
  }
}

class Walk {
  readonly #strict: boolean
  #root: unknown

  constructor(strict: boolean) {
    this.#strict = strict
  }

  /** The text of `value`; throws what cannot be stored faithfully as a {@link Refusal}. */
  encode(root: unknown): string {
    this.#root = root
    try {
      const finding = this.#check(root, 0)
      if (finding instanceof Refusal) throw finding
      const faithful = finding === COPY ? this.#copy(root, '', 0) : root
      return JSON.stringify(faithful)
    } finally {
      this.#root = undefined
    }
  }

  #check(value: unknown, depth: number): Finding {
    if (typeof value === 'string' || value === null) return undefined
    if (typeof value !== 'object') return scalarRefusal(value, false)
    if (depth > DEPTH_MAX) return tooDeep(this.#root)
    if (Array.isArray(value)) return hasToJson(value) ? COPY : this.#checkArray(value, depth)
    const kind = refuseKind(value)
    if (kind !== undefined) return new Refusal(kind)
    if (hasToJson(value)) return COPY
    if (!isPlain(value)) return new Refusal(refuseInstance(value))
    return this.#checkFields(value as Record<string, unknown>, depth)
  }

  #checkArray(array: readonly unknown[], depth: number): Finding {
    let result: Finding
    for (let i = 0; i < array.length; i++) {
      const element = array[i]
      if (typeof element === 'string') continue
      const finding = element === undefined ? scalarRefusal(undefined, true) : this.#check(element, depth + 1)
      if (finding === undefined) continue
      if (finding === COPY) result = COPY
      else return finding.under(i)
    }
    return result
  }

  #checkFields(object: Record<string, unknown>, depth: number): Finding {
    let result: Finding
    for (const key in object) {
      const field = object[key]
      if (typeof field === 'string') continue
      if (field === undefined && !this.#strict) continue
      const finding = this.#check(field, depth + 1)
      if (finding === undefined) continue
      if (finding === COPY) result = COPY
      else return finding.under(key)
    }
    if (this.#strict && Object.getOwnPropertySymbols(object).length > 0) {
      return new Refusal('a key that is a symbol is not in JSON')
    }
    return result
  }

  /** A copy in which every `toJSON` has been applied, once, and its result checked. */
  #copy(value: unknown, key: string, depth: number): unknown {
    if (typeof value !== 'object' || value === null) {
      const refusal = value === null ? undefined : scalarRefusal(value, false)
      if (refusal !== undefined) throw refusal
      return value
    }
    if (depth > DEPTH_MAX) throw tooDeep(this.#root)
    const kind = refuseKind(value)
    if (kind !== undefined) throw new Refusal(kind)
    if (hasToJson(value)) {
      if (types.isDate(value) && Number.isNaN(value.getTime())) throw new Refusal('an invalid Date would become null')
      const replaced: unknown = (value as { toJSON: (key: string) => unknown }).toJSON(key)
      return this.#copyPlain(replaced, depth)
    }
    return this.#copyPlain(value, depth)
  }

  #copyPlain(value: unknown, depth: number): unknown {
    if (typeof value !== 'object' || value === null) return this.#copy(value, '', depth)
    const kind = refuseKind(value)
    if (kind !== undefined) throw new Refusal(kind)
    if (Array.isArray(value)) {
      const copies: unknown[] = []
      for (let i = 0; i < value.length; i++) {
        const element: unknown = value[i]
        copies.push(
          this.#step(i, () => {
            if (element === undefined) throw scalarRefusal(element, true)
            return this.#copy(element, String(i), depth + 1)
          }),
        )
      }
      return copies
    }
    if (!isPlain(value)) throw new Refusal(refuseInstance(value))
    // Without a prototype `__proto__` is a key like any other.
    const copy = Object.create(null) as Record<string, unknown>
    for (const [key, field] of Object.entries(value) as [string, unknown][]) {
      if (field === undefined && !this.#strict) continue
      copy[key] = this.#step(key, () => this.#copy(field, key, depth + 1))
    }
    return copy
  }

  #step(key: string | number, copy: () => unknown): unknown {
    try {
      return copy()
    } catch (error) {
      throw error instanceof Refusal ? error.under(key) : error
    }
  }
}

function encodeWith(walk: Walk, value: unknown): string {
  try {
    return walk.encode(value)
  } catch (error) {
    if (error instanceof Refusal) {
      throw new Error(`JSON cannot store this value faithfully: ${error.toString()}`, { cause: error })
    }
    if (error instanceof RangeError && error.message === 'Invalid string length') {
      throw new MillpondError('MILLPOND_TOO_LARGE', 'the JSON text would be longer than a string can be')
    }
    throw new Error('JSON cannot store this value: a getter, a toJSON or the call stack gave way', { cause: error })
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The codec that stores values as JSON text, and refuses what JSON would change: `undefined` in arrays or as the whole
 * value, numbers that are not finite, `-0`, BigInt, symbols, functions, Map, Set, binary data, circular values, values
 * nested more than 1,000 deep, and instances of classes without `toJSON`.
 *
 * What changes all the same: a field that is `undefined` is absent afterwards (`{ strict: true }` refuses it), and
 * `toJSON` is applied, so that a `Date` comes back as its ISO string.
 */
export function json<T = unknown>(options?: JsonOptions): Codec<T> {
  if (options !== undefined && (typeof options !== 'object' || options === null)) {
    throw new TypeError('the options of json() must be an object')
  }
  const strict = options?.strict ?? false
  if (typeof strict !== 'boolean') throw new TypeError('strict must be a boolean')
  return {
    name: 'json',
    // A new walk for each value: a toJSON may push to a queue itself.
    encode: (value) => encodeWith(new Walk(strict), value),
    decode: (stored) => JSON.parse(decoder.decode(stored)) as T,
  }
}
