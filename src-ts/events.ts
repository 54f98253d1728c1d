/** Something is wrong that no call can report. */
export interface QueueWarning {
  readonly name: 'LeakedReservation'
  readonly message: string
  /** The entry concerned. */
  readonly id: number
}

/** The events of a queue, with what their listeners get. */
export interface QueueEvents {
  readonly warning: [warning: QueueWarning]
  readonly close: []
}

export type QueueListener<Event extends keyof QueueEvents> = (...args: QueueEvents[Event]) => void

type Sets = { readonly [Event in keyof QueueEvents]: Set<QueueListener<Event>> }

/** Listeners by event. One that throws is reported as an uncaught exception and disturbs nobody. */
export class Listeners {
  readonly #byEvent: Sets = { warning: new Set(), close: new Set() }

  add<Event extends keyof QueueEvents>(event: Event, listener: QueueListener<Event>): void {
    this.#of(event).add(listener)
  }

  remove<Event extends keyof QueueEvents>(event: Event, listener: QueueListener<Event>): void {
    this.#of(event).delete(listener)
  }

  emit<Event extends keyof QueueEvents>(event: Event, ...args: QueueEvents[Event]): void {
    for (const listener of this.#of(event)) {
      try {
        listener(...args)
      } catch (error) {
        process.nextTick(() => {
          throw error
        })
      }
    }
  }

  #of<Event extends keyof QueueEvents>(event: Event): Sets[Event] {
    if (!Object.hasOwn(this.#byEvent, event)) throw new TypeError(`there is no event '${event}'`)
    return this.#byEvent[event]
  }
}
