// The floor: write + fdatasync into a zero-filled file, in a process of its own (crates/xtask/src/raw_loop.rs).
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** @typedef {{ bytes: number, syncs: number, seconds: number, p50Micros: number }} Lap */

export class RawLoop {
  #child
  #answers

  /**
   * @param {string} program
   * @param {string} file Is made, and removed at the end.
   */
  constructor(program, file) {
    this.#child = spawn(program, ['raw-loop', file], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  /**
   * @param {number} bytes Written by each sync.
   * @param {number} seconds
   * @returns {Promise<Lap>}
   */
  async run(bytes, seconds) {
    this.#child.stdin.write(`${bytes} ${seconds}\n`)
    const answer = await this.#answers.next()
    if (answer.done === true) throw new Error('the raw loop ended')
    return JSON.parse(answer.value)
  }

  /** @returns {Promise<void>} */
  close() {
    this.#child.stdin.end()
    return new Promise((resolve) => this.#child.once('close', () => resolve()))
  }
}
