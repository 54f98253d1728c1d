// `npm start`: set-up, then the demonstration.
import { parse, usage } from '../demo/options.mjs'
import { demonstrate } from '../demo/supervisor.mjs'
import { root } from './command.mjs'
import { runMain } from './failure.mjs'
import { setUp } from './setup.mjs'

await runMain(async () => {
  const options = parse(process.argv.slice(2), root)
  if (options === 'help') {
    process.stdout.write(usage)
    return 0
  }
  await setUp({ tests: false })
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupt.abort())
  return demonstrate(options, root, interrupt.signal)
})
