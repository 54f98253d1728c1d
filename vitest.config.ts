import { defineConfig, type ViteUserConfig } from 'vitest/config'

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['__test__/**/*.test.ts'],
    pool: 'forks',
    execArgv: ['--expose-gc'],
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
  },
})

// vitest wants a default export.
export default config
