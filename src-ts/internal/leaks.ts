import type { Delivery } from '../engine.ts'

/** Returns what a dropped handle held; must not reference the handle. */
export interface LeakOwner {
  onLeak(delivery: Delivery): void
}

interface Held {
  readonly owner: LeakOwner
  readonly delivery: Delivery
}

const registry = new FinalizationRegistry<Held>(({ owner, delivery }) => owner.onLeak(delivery))

interface Young {
  readonly handle: object
  readonly owner: LeakOwner
  readonly delivery: Delivery
}

let young: Young[] = []
const registered: WeakSet<Delivery> = new WeakSet()

/**
 * Watches for a handle that is dropped without being settled. Most handles are settled in the turn of the event loop in
 * which they were delivered and never reach the registry.
 */
export function watch(handle: object, owner: LeakOwner, delivery: Delivery): void {
  if (young.push({ handle, owner, delivery }) === 1) setImmediate(registerYoung)
}

function registerYoung(): void {
  const candidates = young
  young = []
  for (const { handle, owner, delivery } of candidates) {
    if (delivery.isSettled) continue
    registered.add(delivery)
    registry.register(handle, { owner, delivery }, delivery)
  }
}

export function unwatch(delivery: Delivery): void {
  if (registered.delete(delivery)) registry.unregister(delivery)
}
