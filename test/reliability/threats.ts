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
  {
    rows: ['S8'],
    file: 'shared/relay/serving.ts',
    find: '      await checkContents(asked, caller);\n',
    replace: '',
    test: 'test/unit/relay/call/content-urls.test.ts',
    name: 'is checked wherever it stands, and never quoted',
  },
  {
    rows: ['S19'],
    file: 'shared/relay/money/reservation-request.ts',
    find: ' ?? accountConcurrency ?? half',
    replace: '',
    test: 'test/unit/relay/limits.test.ts',
    name: 'has free calls counted among them, but not with count_free off',
  },
  {
    rows: ['S27'],
    file: 'shared/relay/dispatch/attempt.ts',
    find: '{ ...request.headers, [hopHeader]: entry.hops }',
    replace: 'request.headers',
    test: 'test/unit/relay/loops.test.ts',
    name: 'is sent which relays the call passed',
  },
  {
    rows: ['S27'],
    file: 'shared/adapters/http-entry/http-entry.ts',
    find: '!returns && hops',
    replace: 'hops',
    test: 'test/unit/adapters/http-entry/http-entry.test.ts',
    name: 'is refused when it comes back',
  },
  {
    rows: ['S27'],
    file: 'shared/relay/dispatch/attempt.ts',
    find: 'host === entry.host',
    replace: 'host === undefined',
    test: 'test/unit/relay/loops.test.ts',
    name: 'leaves the call to the next channel',
  },
];
