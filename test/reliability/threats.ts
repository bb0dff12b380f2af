import type { Removal } from './removal.ts';

/** Guards against hostile callers, channels and rows. */
export const threatRemovals: readonly Removal[] = [
  {
    rows: ['S2'],
    file: 'shared/relay/call/access.ts',
    find: 'throw unusableKey(`key_${lookup.missing}`)',
    replace: "throw invalidKey('This key is not known.', `key_${lookup.missing}`)",
    test: 'test/unit/relay/pipeline.test.ts',
    name: 'tells unknown, disabled and expired keys apart in the log alone',
  },
  {
    rows: ['S3', 'S4'],
    file: 'shared/relay/call/access.ts',
    find: 'if (key === undefined || !isSecretKey(key))',
    replace: 'if (key === undefined)',
    test: 'test/unit/relay/pipeline.test.ts',
    name: 'looks nothing up for a malformed key',
  },
];
