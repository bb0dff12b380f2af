import type { DynamoDBRecord } from 'aws-lambda';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createConfigStreamHandler } from '../../../../shared/adapters/entry/table-streams.ts';
import type { TableName } from '../../../../shared/tables/table-names.ts';
import { createAccountRows } from '../../../../shared/adapters/dynamodb/account-reader.ts';
import { createRowMarks } from '../../../../shared/adapters/dynamodb/row-tables.ts';
import { createEmptySnapshot } from '../../../../shared/config/snapshot.ts';
import { createRowMarker } from '../../../../shared/relay/jobs/config-publisher.ts';
import { MarksLost } from '../../../../shared/relay/ports/config-store.ts';
import { startEmulator, type Emulator } from '../../../support/emulator.ts';
import { deleteRow, readRow } from '../../relay/jobs/config-rig.ts';
import { recordedLog } from '../telemetry/recorded-log.ts';
import { countedClient, type CountedClient } from '../dynamodb/store.ts';
import { tablesOn } from '../../../support/sdk-tables.ts';

let emulator: Emulator;
let store: CountedClient;
let compiles: number;
let badRows: number[];
let failed: number;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
});
afterAll(() => emulator.stop());
beforeEach(() => {
  store = countedClient();
  compiles = 0;
  badRows = [];
  failed = 0;
});

const pointer = { version: 1, format: 1, parts: 1, copies: 1, rowParts: 1, digest: '', publishedAt: 1 };
const served = { ...createEmptySnapshot(1), models: ['m'] };

const handle = (event: object) =>
  createConfigStreamHandler({
    stack: 'relay',
    publish: async () => {
      compiles += 1;
    },
    markRows: createRowMarker({
      marks: createRowMarks({ client: tablesOn(store.client), stack: 'relay', log: recordedLog() }),
      metrics: {
        badRows: (count) => void badRows.push(count),
        failed: () => {
          failed += 1;
        },
      },
      snapshots: { newest: async () => pointer, snapshot: async () => served },
      accounts: createAccountRows(tablesOn(store.client), 'relay'),
      local: false,
    }),
  })(event as Parameters<ReturnType<typeof createConfigStreamHandler>>[0]);

const record = (table: TableName, keys: object, image?: object): DynamoDBRecord => ({
  eventSourceARN: `arn:aws:dynamodb:us-east-1:000000000000:table/relay-${table}/stream/2026`,
  dynamodb: { Keys: keys as never, ...(image && { NewImage: image as never }) },
});
const hash = 'a'.repeat(64);
const keyRecord = (attributes?: object) =>
  record(
    'keys',
    { hash: { S: hash } },
    attributes && { hash: { S: hash }, account: { S: 'a' }, ...attributes },
  );

describe('an event of a table that operators edit', () => {
  test('compiles everything once, however many configuration records it has', async () => {
    await handle({
      Records: [record('channels', { id: { S: 'a' } }), record('charges', { id: { N: '1' } })],
    });
    expect(compiles).toBe(1);
    await handle({
      Records: [keyRecord({}), record('accounts', { account: { S: 'a' } }, { account: { S: 'a' } })],
    });
    expect(compiles).toBe(1);
    expect(badRows).toEqual([]);
  });

  test('marks an invalid key and account, and removes the marks later', async () => {
    const image = {
      models: { SS: ['m'] },
      rpm: { N: '0' },
      enabled: { BOOL: true },
      store: { NULL: true },
      expires_at: { BS: ['AQ=='] },
      official: { M: { a: { L: [{ B: 'AQ==' }] } } },
    };
    await store.put('keys', { hash, account: 'a', rpm: 0 });
    await store.put('accounts', { account: 'a', plan: 1 });
    await handle({
      Records: [
        keyRecord(image),
        record('accounts', { account: { S: 'a' } }, { account: { S: 'a' }, plan: { N: '1' } }),
      ],
    });
    const key = await readRow(store, 'keys', hash);
    expect(key?.['_problem']).toBe(
      'official: found a map, expected true or false; expires_at: found a set, expected an ISO 8601 time with a time zone, ' +
        'such as 2026-12-31T00:00:00Z; rpm: found 0, expected a whole number of 1 or more; until it is fixed, the key is rejected',
    );
    expect((await readRow(store, 'accounts', 'a'))?.['_problem']).toBe(
      'plan: found 1, expected a map {level, since, until}; until it is fixed, the account has no plan and no limits',
    );
    expect(badRows).toEqual([2]);

    await store.put('accounts', { account: 'a' });
    await handle({ Records: [keyRecord({ _problem: { S: String(key?.['_problem']) } })] });
    expect(await readRow(store, 'keys', hash)).not.toHaveProperty('_problem');
  });

  test('does not write to a row that already has its mark or needs none', async () => {
    const marked = {
      models: { L: [] },
      _warning: {
        S: 'models: empty, so this key cannot call any model (remove the attribute to allow all)',
      },
    };
    await store.put('accounts', { account: 'a' });
    store.calls.length = 0;
    await handle({ Records: [keyRecord(marked)] });
    await handle({ Records: [keyRecord({})] });
    expect(store.calls.filter((call) => !call.startsWith('BatchGet'))).toEqual([]);
  });

  test('validates the newest of several images of a row, and never recreates a deleted row', async () => {
    await store.put('keys', { hash, account: 'a' });
    store.calls.length = 0;
    await handle({ Records: [keyRecord({ rpm: { N: '0' } }), keyRecord({})] });
    await handle({ Records: [keyRecord({ rpm: { N: '0' } }), keyRecord()] });
    expect(store.calls.filter((call) => !call.startsWith('BatchGet'))).toEqual([]);
    await deleteRow(store, 'keys', hash);
    await handle({ Records: [keyRecord({ rpm: { N: '0' } })] });
    expect(await readRow(store, 'keys', hash)).toBeUndefined();
  });

  test('fails when the store rejects a mark temporarily, so that it is delivered again, and counts that', async () => {
    const throttled = Object.assign(new Error('throttled'), {
      name: 'ThrottlingException',
      $metadata: { httpStatusCode: 400 },
    });
    store.client.middlewareStack.add(() => () => Promise.reject(throttled), { step: 'initialize' });
    await expect(handle({ Records: [keyRecord({ rpm: { N: '0' } })] })).rejects.toBeInstanceOf(MarksLost);
    expect(failed).toBe(1);
  });
});
