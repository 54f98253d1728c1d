// Builds a program of the testkit and runs it: a rig that tries something and says with its exit code how it came out.
import { output, tell } from './command.mjs'
import { Failure, NotRun } from './failure.mjs'

/** What a rig ends with that cannot be tried on this machine. */
const notRun = 77

/**
 * Rejects with a {@link NotRun} that has the reason where it cannot be tried.
 * @param {string} name Of the program.
 * @param {readonly string[]} args
 * @param {string} cargo How cargo chooses packages and features.
 * @param {Record<string, string>} [env]
 * @returns {Promise<string>} What it printed.
 */
export async function runRig(name, args, cargo, env = {}) {
  const json = '--message-format=json-render-diagnostics'
  const built = await output('cargo', ['build', ...cargo.split(' '), '--bin', name, json])
  if (built === null) throw new Failure(`${name} cannot be built: run cargo build to see why`)
  const program = built
    .split('\n')
    .map((line) => JSON.parse(line))
    .find(({ executable, target }) => executable && target.name === name)?.executable
  if (program === undefined) throw new Failure(`cargo built no ${name}`)

  const { code, said } = await tell(program, args, { env })
  if (code === notRun) throw new NotRun(said.trim().replace(/^not run: /, ''))
  if (code !== 0) throw new Failure(`${name} ${args.join(' ')}: exit code ${code}`)
  return said
}
