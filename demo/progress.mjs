// Where the work stands, on stderr: one line that renews itself on a terminal, a plain line now and then elsewhere.

export class Progress {
  #isTerminal = process.stderr.isTTY
  #last = 0

  /** @param {() => string} text Made only when it is shown. */
  show(text) {
    const now = performance.now()
    if (now - this.#last < (this.#isTerminal ? 50 : 1000)) return
    this.#last = now
    process.stderr.write(this.#isTerminal ? `\r\x1b[K${text()}` : `${text()}\n`)
  }

  /** Takes the line that renews itself away. */
  clear() {
    if (this.#isTerminal) process.stderr.write('\r\x1b[K')
  }

  /** @param {string} text A line that stays. */
  say(text) {
    process.stderr.write(this.#isTerminal ? `\r\x1b[K${text}\n` : `${text}\n`)
  }
}
