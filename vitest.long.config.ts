import { defineConfig } from 'vitest/config';

/** What takes minutes: `npm run test:long`. */
export default defineConfig({
  test: {
    include: ['test/long/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 60_000,
  },
});
