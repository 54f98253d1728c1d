import type {
  Counts,
  Delivery,
  Encode,
  EnginePushOptions,
  EngineWaitOptions,
  InFlight,
  QueueEngine,
  RecoveryReport,
  Stats,
  StoredEntry,
} from '../engine.ts'
import { type NativeDelivery, unpackDeliveries, unpackEntries } from '../internal/delivery.ts'
import { Drain } from '../internal/drain.ts'
import {
  attempt,
  closedFailure,
  errorOf,
  failureOfThrown,
  isFailure,
  rejectAtAwait,
  type Failure,
} from '../internal/failure.ts'
import { hold, release } from '../internal/keep-alive.ts'
import {
  DURABILITY,
  EVENT,
  type NativeAckAnswer,
  type NativeBinding,
  type NativeOptions,
  type NativeQueue,
} from '../internal/native.ts'
import {
  byteLengthOf,
  concat,
  encoded,
  encodedBytes,
  PAYLOAD_BYTES_MAX,
  tooLarge,
  unshared,
  UTF8_BYTES_PER_UNIT,
} from '../internal/payload.ts'
import { failAll, PendingValue, settleNow, settleRun } from '../internal/pending.ts'
import { Scans } from '../internal/scans.ts'
import { BYPASS_BYTES, Stage, type Ticket } from '../internal/stage.ts'
import { TokenRing, type Pending, type Settler } from '../internal/token-ring.ts'
import { afterDeferred, atMostOneTurn } from '../internal/turn.ts'
import { Waiters } from '../internal/waiters.ts'
import { withdrawable } from '../internal/withdrawable.ts'
import type { Durability } from '../options.ts'

const ACKS_STAGED_MAX = 4096

/** Engine one: the addon in this process. */
export class EmbeddedEngine implements QueueEngine {
  readonly recovery: RecoveryReport
  readonly capacity: number
  readonly sync: NonNullable<QueueEngine['sync']>
  readonly #native: NativeQueue
  readonly #stage: Stage = new Stage()
  readonly #acks: NativeDelivery[] = []
  readonly #handles: Float64Array = new Float64Array(ACKS_STAGED_MAX * 2)
  readonly #ring: TokenRing = new TokenRing()
  readonly #scans: Scans = new Scans()
  readonly #waiters: Waiters
  readonly #stagePush: (resolve: Settler) => void
  readonly #crossLater: () => void
  #willCross = false
  #isIntakeClosed = false
  #isClosed = false
  #closing: Promise<void> | undefined
  #finish: ((failure: Failure | undefined) => void) | undefined
  #drain: Drain | undefined
  #lastCounts: Counts | undefined

  static open(binding: NativeBinding, path: string, options: NativeOptions): Promise<EmbeddedEngine> {
    return new Promise<EmbeddedEngine>((resolve) => {
      let engine: EmbeddedEngine | undefined
      hold(1)
      let answer: typeof resolve | undefined = resolve
      const listen = (kind: number, a: unknown, b: unknown, c: unknown): void => {
        if (kind !== EVENT.opened || answer === undefined) {
          if (engine !== undefined) engine.#onEvent(kind, a, b, c)
          if (kind === EVENT.finished) engine = answer = undefined
          return
        }
        release(1)
        if (isFailure(a)) {
          rejectAtAwait(answer, a)
          return
        }
        engine = new EmbeddedEngine(a as NativeQueue, options.capacity)
        answer(engine)
      }
      const thrown = attempt(() => binding.open(path, options, listen))
      if (!isFailure(thrown)) return
      release(1)
      rejectAtAwait(resolve, thrown)
    })
  }

  private constructor(native: NativeQueue, capacity: number) {
    this.#native = native
    this.capacity = capacity
    this.recovery = native.recovery()
    this.#waiters = new Waiters(native)
    // One executor and one callback for all pushes.
    const stage = this.#stage
    this.#stagePush = (resolve) => {
      stage.settlers[stage.count] = resolve
    }
    this.#crossLater = () => {
      this.#willCross = false
      this.#cross()
    }
    this.sync = {
      push: (encode, value) => this.#pushSync(encode, value),
      flush: () => this.#flushSync(),
    }
  }

  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  // ---- pushing

  push<In>(encode: Encode<In>, value: In, options?: EnginePushOptions): Promise<number> {
    if (options !== undefined) return this.#pushWith(encode, value, options)
    if (this.#isIntakeClosed) return this.#rejectClosed()
    let payload: Uint8Array | string
    try {
      payload = encoded(encode, value)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#put(payload, DURABILITY.inherit, this.#stagePush)
  }

  /** Copies the payload now. `executor` stores the settler at the stage's count. */
  #put(payload: Uint8Array | string, durability: number, executor: (resolve: Settler) => void): Promise<number> {
    const stage = this.#stage
    // The codec may have closed the queue.
    if (this.#isIntakeClosed) return this.#rejectClosed()
    if (stage.durability !== durability) {
      if (stage.count > 0) this.#cross()
      stage.durability = durability
    }
    try {
      if (typeof payload === 'string') {
        if (payload.length * UTF8_BYTES_PER_UNIT < BYPASS_BYTES) {
          stage.writeText(payload)
        } else {
          const bytes = Buffer.from(payload)
          if (bytes.byteLength > PAYLOAD_BYTES_MAX) throw tooLarge()
          if (bytes.byteLength >= BYPASS_BYTES) return this.#putLarge(bytes, executor)
          stage.write(bytes)
        }
      } else {
        if (byteLengthOf(payload) >= BYPASS_BYTES) return this.#putLarge(unshared(payload), executor)
        stage.write(payload)
      }
    } catch (error) {
      return Promise.reject(error)
    }
    const promise = new Promise<number>(executor as (resolve: (value: number | PromiseLike<number>) => void) => void)
    stage.count++
    if (stage.isFull) this.#cross()
    else if (!this.#willCross) this.#scheduleCrossing()
    return promise
  }

  #putLarge(bytes: Uint8Array, executor: (resolve: Settler) => void): Promise<number> {
    const stage = this.#stage
    this.#cross()
    const length = byteLengthOf(bytes)
    stage.lengths[0] = length
    const promise = new Promise<number>(executor as (resolve: (value: number | PromiseLike<number>) => void) => void)
    stage.count = 1
    this.#crossPushes(bytes, length)
    return promise
  }

  #pushWith<In>(encode: Encode<In>, value: In, options: EnginePushOptions): Promise<number> {
    const { signal, timeoutMs } = options
    if (this.#isIntakeClosed) return this.#rejectClosed()
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    let payload: Uint8Array | string
    try {
      payload = encoded(encode, value)
    } catch (error) {
      return Promise.reject(error)
    }
    const durability = options.durability === undefined ? DURABILITY.inherit : DURABILITY[options.durability]
    if (signal === undefined && timeoutMs === undefined) return this.#put(payload, durability, this.#stagePush)
    const ticket: Ticket = { index: 0, token: undefined, withdrawn: false }
    const withdraw = (): boolean => this.#withdraw(ticket, 1)
    return withdrawable<number>(options, withdraw, (settler) =>
      this.#put(payload, durability, () => {
        const stage = this.#stage
        ticket.index = stage.count
        stage.tickets.push(ticket)
        stage.settlers[stage.count] = settler
      }),
    )
  }

  pushMany<In>(encode: Encode<In>, values: readonly In[], options?: EnginePushOptions): Promise<number[]> {
    const signal = options?.signal
    if (this.#isIntakeClosed) return this.#rejectClosed()
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    if (values.length === 0) return Promise.resolve([])
    const count = values.length
    const lengths = new Uint32Array(count)
    let bytes: Uint8Array
    try {
      // Copied one by one: a codec may give the same buffer each time.
      bytes = concat(values, lengths, (value) => encodedBytes(encode, value))
    } catch (error) {
      return Promise.reject(error)
    }
    if (this.#isIntakeClosed) return this.#rejectClosed()
    const durability = options?.durability === undefined ? DURABILITY.inherit : DURABILITY[options.durability]
    this.#cross()
    const ticket: Ticket = { index: 0, token: undefined, withdrawn: false }
    const put = (resolve: (value: number[] | Promise<never>) => void): void => {
      // One token for each push; the first stands for all.
      const answer = attempt(() => this.#native.pushWhole(bytes, bytes.byteLength, lengths, count, durability))
      const toIds = (first: number): number[] => Array.from({ length: count }, (_, i) => first + i)
      ticket.token = this.#place(answer, (value) => -value, new PendingValue(count, resolve, toIds))
    }
    if (signal === undefined && options?.timeoutMs === undefined) return new Promise<number[]>(put)
    return withdrawable<number[]>(
      options ?? {},
      () => this.#withdraw(ticket, count),
      (settler) => put(settler),
    )
  }

  tryPush<In>(encode: Encode<In>, value: In, durability?: Durability): Promise<number | null> {
    if (this.#isIntakeClosed) return this.#rejectClosed()
    let bytes: Uint8Array
    try {
      bytes = encodedBytes(encode, value)
    } catch (error) {
      return Promise.reject(error)
    }
    if (this.#isIntakeClosed) return this.#rejectClosed()
    this.#cross()
    const asked = durability === undefined ? DURABILITY.inherit : DURABILITY[durability]
    const answer = attempt(() => this.#native.tryPush(bytes, asked))
    if (answer === null) return Promise.resolve(null)
    return new Promise<number>((resolve) => {
      this.#place(answer, (settled) => -settled, new PendingValue(1, resolve, (id) => id))
    })
  }

  #pushSync<In>(encode: Encode<In>, value: In): number {
    this.#throwIfIntakeClosed()
    const bytes = encodedBytes(encode, value)
    this.#throwIfIntakeClosed()
    this.#cross()
    const answer = attempt(() => this.#native.pushBlocking(bytes))
    if (isFailure(answer)) throw errorOf(answer)
    return answer
  }

  #flushSync(): void {
    if (this.#closing !== undefined) throw errorOf(closedFailure)
    this.#cross()
    const answer = attempt(() => this.#native.flushBlocking())
    if (answer !== null) throw errorOf(answer)
  }

  /** Takes a push back while it has no id. */
  #withdraw(ticket: Ticket, span: number): boolean {
    const token = ticket.token
    if (token === undefined) {
      // Staged: the crossing leaves it out.
      if (ticket.withdrawn) return false
      ticket.withdrawn = true
      return true
    }
    if (this.#isClosed || token < 0 || attempt(() => this.#native.withdraw(token)) !== true) return false
    if (this.#ring.take(token) !== undefined) release(span)
    return true
  }

  // ---- crossing

  #scheduleCrossing(): void {
    this.#willCross = true
    process.nextTick(this.#crossLater)
  }

  /** Hands everything staged to the addon: after this, calls to it are in program order. */
  #cross(): void {
    this.#crossStage()
    if (this.#acks.length > 0) this.#crossAcks()
  }

  /** For calls to which acks make no difference: what is being acked is in flight either way. */
  #crossStage(): void {
    const stage = this.#stage
    if (stage.count > 0) this.#crossPushes(stage.arena, stage.used)
  }

  #crossPushes(bytes: Uint8Array, used: number): void {
    const stage = this.#stage
    if (stage.tickets.length > 0 && bytes === stage.arena) {
      stage.compact()
      used = stage.used
    }
    const count = stage.count
    const { settlers, tickets } = stage
    stage.count = 0
    stage.used = 0
    if (count === 0) return
    let answer: number | Failure
    try {
      answer = this.#native.pushEach(bytes, used, stage.lengths, count, stage.durability)
    } catch (error) {
      answer = failureOfThrown(error)
    }
    if (tickets.length > 0) stage.tickets = []
    if (typeof answer !== 'number') {
      for (const ticket of tickets) ticket.token = -1
      for (const settler of settlers.splice(0)) rejectAtAwait(settler, answer)
    } else if (answer >= 0) {
      for (const ticket of tickets) ticket.token = answer + ticket.index
      const ring = this.#ring
      for (let i = 0; i < count; i++) ring.put(answer + i, settlers[i] as Settler)
      settlers.length = 0
      hold(count)
    } else {
      for (const ticket of tickets) ticket.token = -1
      settleNow(settlers.splice(0), -answer)
    }
  }

  /** What the addon answered to one operation: waits for its token, or settles it. Returns the token, or -1. */
  #place(answer: number | Failure, value: (answer: number) => number, pending: Pending): number {
    if (typeof answer !== 'number') {
      pending.fail((resolve) => rejectAtAwait(resolve, answer))
      return -1
    }
    if (answer >= 0) {
      this.#ring.put(answer, pending)
      hold(pending.span)
      return answer
    }
    const settled = value(answer)
    atMostOneTurn(() => {
      pending.settle(settled)
      this.#endDrainIfEmpty()
    })
    return -1
  }

  // ---- settling

  ack(delivery: Delivery, onFailed?: () => void): Promise<boolean> {
    if (delivery.isSettled) return Promise.resolve(false)
    if (this.#closing !== undefined) return this.#rejectClosed()
    const own = delivery as NativeDelivery
    const promise = new Promise<boolean>((resolve) => own.begin(resolve, onFailed))
    this.#acks.push(own)
    if (this.#acks.length >= ACKS_STAGED_MAX) this.#cross()
    else if (!this.#willCross) this.#scheduleCrossing()
    return promise
  }

  #crossAcks(): void {
    const acks = this.#acks.splice(0)
    const handles = this.#handles
    for (let i = 0; i < acks.length; i++) {
      const delivery = acks[i] as NativeDelivery
      handles[i * 2] = delivery.id
      handles[i * 2 + 1] = delivery.generation
    }
    let answer: number | NativeAckAnswer
    try {
      answer = this.#native.ack(handles, acks.length)
    } catch (error) {
      answer = { token: 0, refused: [], settled: true, failure: failureOfThrown(error) }
    }
    if (typeof answer === 'number') {
      this.#placeAcks(acks, answer)
      return
    }
    const refused = new Set(answer.refused)
    const accepted = acks.filter((delivery, i) => {
      if (refused.has(i)) delivery.refuse()
      return !refused.has(i)
    })
    const { failure } = answer
    if (failure !== undefined && failure !== null) {
      for (const delivery of accepted) delivery.fail((resolve) => rejectAtAwait(resolve, failure))
    } else {
      this.#placeAcks(accepted, answer.settled ? -1 : answer.token)
    }
  }

  #placeAcks(acks: NativeDelivery[], token: number): void {
    if (token >= 0) {
      for (let i = 0; i < acks.length; i++) this.#ring.put(token + i, acks[i] as NativeDelivery)
      hold(acks.length)
    } else if (acks.length > 0) {
      atMostOneTurn(() => {
        for (const delivery of acks) delivery.settle()
        this.#endDrainIfEmpty()
      })
    }
  }

  nack(delivery: Delivery): boolean {
    if (delivery.isSettled || this.#closing !== undefined) return false
    const { id, generation } = delivery as NativeDelivery
    this.#cross()
    delivery.detach()
    return attempt(() => this.#native.nack(id, generation)) === true
  }

  ackIds(ids: Float64Array): Promise<number> {
    if (this.#closing !== undefined) return this.#rejectClosed()
    if (ids.length === 0) return Promise.resolve(0)
    this.#cross()
    const answer = attempt(() => this.#native.ackIds(ids))
    return new Promise<number>((resolve) => {
      this.#place(answer, (settled) => -1 - settled, new PendingValue(1, resolve, (removed) => removed))
    })
  }

  nackId(id: number): boolean {
    if (this.#closing !== undefined) return false
    this.#cross()
    return attempt(() => this.#native.nackId(id)) === true
  }

  // ---- delivery

  take(max: number): NativeDelivery[] {
    if (this.#closing !== undefined) return []
    this.#crossStage()
    const answer = attempt(() => this.#native.tryTake(max))
    if (isFailure(answer)) throw errorOf(answer)
    return unpackDeliveries(answer)
  }

  wait(max: number, options?: EngineWaitOptions): Promise<NativeDelivery[]> {
    if (options?.signal?.aborted === true) return Promise.reject(options.signal.reason)
    if (this.#closing !== undefined) return Promise.resolve([])
    this.#crossStage()
    return this.#waiters.add(max, options)
  }

  // ---- looking

  scan(from: number, max: number): Promise<StoredEntry[]> {
    if (this.#closing !== undefined) return this.#rejectClosed()
    this.#cross()
    const token = attempt(() => this.#native.scan(from, max))
    return new Promise<StoredEntry[]>((resolve) => {
      if (typeof token !== 'number') {
        rejectAtAwait(resolve, token)
        return
      }
      this.#scans.add(token, resolve)
    })
  }

  counts(): Counts {
    if (this.#lastCounts !== undefined) return this.#lastCounts
    this.#cross()
    return { length: this.#native.length(), readyLength: this.#native.readyLength() }
  }

  inFlight(): InFlight[] {
    if (this.#closing !== undefined) return []
    this.#cross()
    return this.#native.inFlight()
  }

  stats(): Stats {
    this.#cross()
    return this.#native.stats()
  }

  // ---- closing

  close(drain: boolean | { readonly timeoutMs: number }): Promise<void> {
    if (drain === false || this.#closing !== undefined) return this.#close()
    if (this.#drain !== undefined) return this.#drain.promise
    this.#isIntakeClosed = true
    this.#crossAndThen(() => this.#native.closeIntake())
    const begun = new Drain(
      drain === true ? undefined : drain.timeoutMs,
      () => this.#close(),
      () => {
        this.#drain = undefined
      },
    )
    this.#drain = begun
    this.#endDrainIfEmpty()
    return begun.promise
  }

  #endDrainIfEmpty(): void {
    const drain = this.#drain
    if (drain === undefined || this.#closing !== undefined) return
    if (this.#ring.size > 0 || this.#acks.length > 0 || this.#native.length() > 0) return
    this.#drain = undefined
    drain.end(undefined)
  }

  #close(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing
    this.#isIntakeClosed = true
    this.#closing = new Promise<void>((resolve) => {
      hold(1)
      this.#finish = (failure) => {
        this.#finish = undefined
        release(1)
        // Last of all, also when what settled at once waits for the next turn.
        afterDeferred(() => (failure === undefined ? resolve() : rejectAtAwait(resolve, failure)))
      }
    })
    this.#waiters.close()
    this.#crossAndThen(() => this.#native.finish())
    const drain = this.#drain
    this.#drain = undefined
    drain?.end(undefined)
    return this.#closing
  }

  #crossAndThen(call: () => void): void {
    this.#cross()
    const thrown = attempt(call)
    if (isFailure(thrown)) this.#onFinished(thrown)
  }

  #onFinished(failure: Failure | undefined): void {
    this.#isClosed = true
    // What was in flight has gone back.
    const length = this.#native.length()
    this.#lastCounts = { length, readyLength: length }
    // Everything has settled by now; if not, nobody is left waiting.
    release(failAll(this.#ring, { ...closedFailure, outcome: 'unknown' }))
    this.#scans.fail(closedFailure)
    this.#finish?.(failure)
  }

  #rejectClosed(): Promise<never> {
    return Promise.reject(errorOf(closedFailure))
  }

  #throwIfIntakeClosed(): void {
    if (this.#isIntakeClosed) throw errorOf(closedFailure)
  }

  // ---- events

  #onEvent(kind: number, a: unknown, b: unknown, c: unknown): void {
    switch (kind) {
      case EVENT.settledOne:
        this.#settle(a as number, b as number, c as number, undefined)
        this.#endDrainIfEmpty()
        break
      case EVENT.settledMany: {
        const triples = a as Float64Array
        const failures = b as readonly Failure[]
        for (let i = 0; i + 2 < triples.length; i += 3) {
          this.#settle(triples[i] as number, triples[i + 1] as number, triples[i + 2] as number, failures)
        }
        this.#endDrainIfEmpty()
        break
      }
      case EVENT.delivered:
        if (this.#closing === undefined) this.#waiters.deliver(unpackDeliveries(a as ArrayBuffer))
        break
      case EVENT.deliverFailed:
        this.#waiters.fail(a as Failure)
        break
      case EVENT.scanned:
        this.#scans.settle(a as number, unpackEntries(b as ArrayBuffer))
        break
      case EVENT.scanFailed:
        this.#scans.settle(a as number, b as Failure)
        break
      case EVENT.finished:
        this.#onFinished(isFailure(a) ? a : undefined)
        break
      default:
    }
  }

  #settle(token: number, count: number, value: number, failures: readonly Failure[] | undefined): void {
    release(settleRun(this.#ring, token, count, value, value < 0 ? failures?.[-1 - value] : undefined))
  }
}
