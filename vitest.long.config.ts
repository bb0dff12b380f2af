import { defineConfig } from 'vitest/config';
import { longTests } from './vitest.config.ts';

/** What takes minutes: `npm run test:long`. */
export default defineConfig({
  test: {
    include: longTests,
    testTimeout: 600_000,
    hookTimeout: 60_000,
  },
});
