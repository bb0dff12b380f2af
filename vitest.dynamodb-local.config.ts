import { defineConfig } from 'vitest/config';
import { plugins } from './vitest.config.ts';
import { slowTestMs } from './test/support/emulator.ts';

/** The contract suites on Amazon's DynamoDB Local, with `DYNAMODB_LOCAL` set: .github/workflows/dynamodb-local.yml. */
export default defineConfig({
  plugins,
  test: {
    include: ['test/contract/**/*.test.ts'],
    exclude: [
      // Amazon's program counts units unlike its service: 4 for a transaction of six writes, not 12.
      'test/contract/*-costs.test.ts',
      // Its waits are shorter than the answers of Amazon's program.
      'test/contract/store-faults.test.ts',
    ],
    // Java takes half the processors.
    maxWorkers: 2,
    isolate: false,
    testTimeout: slowTestMs,
    hookTimeout: slowTestMs,
  },
});
