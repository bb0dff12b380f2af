import type { Mutants } from './mutant.ts';

/** Of ports on real technology: tables, signatures, entries, secrets and the log. */
export const adapters: Mutants = {
  'a request of a role is signed without its query and path': {
    file: 'shared/adapters/aws/aws-signature.ts',
    find: 'const request = { method, host, path, query, headers, body, credentials, atMs: clock.now() };',
    replace:
      "const request = { method, host, path: '/', query, headers, body, credentials, atMs: clock.now() };",
    noticed: 'test/unit/adapters/transport/request-signer.test.ts',
    by: /arrives with a signature of the role/,
  },
  'a close record loses its last value': {
    file: 'shared/adapters/dynamodb/quotas/quota-items.ts',
    find: "(value) => value.S !== '') + 1)",
    replace: "(value) => value.S !== ''))",
    noticed: 'test/contract/quota-store-property.test.ts',
    by: /return and hold the same after any writes/,
  },
  'a configuration is not looked for again for a minute': {
    file: 'shared/adapters/dynamodb/runtime-source.ts',
    find: 'if (now - config.checkedAt >= freshMs && now - failedAt >= retryAfterMs) await refresh();',
    replace: 'if (now - config.checkedAt >= 60_000 && now - failedAt >= retryAfterMs) await refresh();',
    noticed: 'test/unit/adapters/dynamodb/dynamo-config-source.test.ts',
    by: /is read in one batch, and a new snapshot in a second one/,
  },
  'a first read of the configuration that fails is the only one': {
    file: 'shared/adapters/dynamodb/runtime-source.ts',
    find: 'const isTransient = cause === undefined || cause instanceof StoreUnavailable;',
    replace: 'const isTransient = false;',
    noticed: 'test/unit/adapters/dynamodb/dynamo-config-source.test.ts',
    by: /is read again at a cold start until the store answers/,
  },
  'a throttled store of secrets is asked once': {
    file: 'shared/adapters/secrets/secret-store.ts',
    find: 'if (error instanceof SecretUnusable || clock.now() + waitMs >= untilMs) throw error;',
    replace: 'throw error;',
    noticed: 'test/contract/store-faults.test.ts',
    by: /delay a cold start/,
  },
  'a refused key is remembered as long as one that works': {
    file: 'shared/adapters/dynamodb/key-store.ts',
    find: '(isUsable(lookup, clock.now()) ? foundLifetimeMs : refusedLifetimeMs)',
    replace: 'isUsable(lookup, clock.now()) || true ? foundLifetimeMs : refusedLifetimeMs',
    noticed: 'test/unit/adapters/dynamodb/dynamo-key-store.test.ts',
    by: /looks for an unknown key again after 5 seconds/,
  },
  'an answer in one piece leaves without its text': {
    file: 'shared/adapters/entry/lambda-handlers.ts',
    find: 'stream.write(wholeText);',
    replace: "stream.write('');",
    noticed: 'test/unit/adapters/lambda/streamed-body.test.ts',
    by: /a text/,
  },
  'a mark that a row has already is written again': {
    file: 'shared/adapters/dynamodb/row-tables.ts',
    find: 'some(({ found, wanted }) => found !== wanted)',
    replace: 'some(({ wanted }) => wanted !== null)',
    noticed: 'test/unit/adapters/table-streams/config-stream-handler.test.ts',
    by: /does not write to a row that already has its mark/,
  },
  'a failed call is none for the availability': {
    file: 'shared/adapters/telemetry/log.ts',
    find: '{ CallFailed: Number(isFailure) }',
    replace: '{ CallFailed: 0 }',
    noticed: 'test/unit/adapters/telemetry/log-metrics.test.ts',
    by: /for the availability of/,
  },
};
