export type { Codec } from './codec.ts'
export { bytes, type BytesInput } from './codecs/bytes.ts'
export { json, type JsonOptions } from './codecs/json.ts'
export type { Damage, InFlight, RecoveryReport, Stats, StoreStats } from './engine.ts'
export { Entry } from './entry.ts'
export {
  DecodeError,
  errorTable,
  isMillpondError,
  MillpondError,
  type ErrorCode,
  type ErrorOutcome,
  type MillpondErrorDetails,
  type MillpondErrorOf,
} from './errors.ts'
export type { QueueEvents, QueueListener, QueueWarning } from './events.ts'
export type {
  Backend,
  CloseOptions,
  Durability,
  PushOptions,
  QueueOptions,
  ReserveOptions,
  TryPushOptions,
} from './options.ts'
export { Queue } from './queue.ts'
export { Reserved, type Decoded } from './reserved.ts'
