import { types } from 'node:util'
import type { Codec } from '../codec.ts'

/** What the {@link bytes} codec takes: exactly the bytes of the view or buffer at the moment of the call. */
export type BytesInput = ArrayBufferView | ArrayBuffer | SharedArrayBuffer

function bytesOf(value: unknown): Uint8Array {
  if (ArrayBuffer.isView(value)) {
    // Empty may also mean detached, or outside of a buffer that shrank. Both getters below throw a TypeError then.
    if (value.byteLength === 0 && types.isTypedArray(value)) Uint8Array.prototype.at.call(value, 0)
    return types.isUint8Array(value) ? value : new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  }
  // The constructor throws a TypeError for a detached buffer.
  if (types.isAnyArrayBuffer(value)) return new Uint8Array(value)
  throw new TypeError('the bytes codec takes an ArrayBufferView, an ArrayBuffer or a SharedArrayBuffer')
}

const codec: Codec<BytesInput, Uint8Array> = {
  name: 'bytes',
  encode: bytesOf,
  decode: (stored) => stored,
}

/** The codec that stores bytes as they are; an item's `value` is its `bytes`. */
export function bytes(): Codec<BytesInput, Uint8Array> {
  return codec
}
