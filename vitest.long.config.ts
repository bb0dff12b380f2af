import { defineConfig } from 'vitest/config';
import { longTests, plugins } from './vitest.config.ts';

/** What takes minutes: `npm run test:long`. */
export default defineConfig({
  plugins,
  test: {
    include: longTests,
    testTimeout: 600_000,
    hookTimeout: 60_000,
  },
});
