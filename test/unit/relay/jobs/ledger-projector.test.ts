import type { TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { PutItemCommand, QueryCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { invocation } from '../../adapters/lambda/url-event.ts';
import { createLedgerStore } from '../../../../shared/adapters/dynamodb/ledger-store.ts';
import { createQuotaStore } from '../../../../shared/adapters/dynamodb/quotas/quota-store.ts';
import {
  createTableStreamBatchHandler,
  type TableStreamHandler,
  readQuotaRecord,
} from '../../../../shared/adapters/entry/table-streams.ts';
import type { CloseRecord, OpenEntry } from '../../../../shared/billing/quota-item.ts';
import { createLedgerProjector } from '../../../../shared/relay/jobs/ledger-projector.ts';
import type { QuotaStore } from '../../../../shared/relay/ports/money-stores.ts';
import { attributesOf } from '../../../contract/quota-store-dynamo.ts';
import { FaultyWire, QuickClock } from '../../../contract/faulty-wire.ts';
import {
  closeOf,
  entryOf,
  itemOf,
  reserveOf,
  slot,
  type ReserveWish,
} from '../../../contract/quota-store-rig.ts';
import { emulatorClient, emulatorTables, startEmulator, type Emulator } from '../../../support/emulator.ts';
import { recordedLog, type RecordedLog } from '../../adapters/telemetry/recorded-log.ts';
import {
  countedMetrics,
  eventOf,
  openStream,
  type CountedMetrics,
  type TableStream,
} from './ledger-stream.ts';

let emulator: Emulator;
let client: DynamoDBClient;
let tables: TableClient;
let quotas: QuotaStore;
let stream: TableStream;
let log: RecordedLog;
let metrics: CountedMetrics;
let account = '';
let accounts = 0;

beforeAll(async () => {
  emulator = await startEmulator();
  client = emulatorClient(emulator.endpoint);
  tables = emulatorTables(emulator.endpoint);
  quotas = createQuotaStore(tables, 'relay');
  stream = await openStream(emulator.endpoint, 'relay-quotas');
});
afterAll(async () => {
  client.destroy();
  await emulator.stop();
});
beforeEach(async () => {
  account = `account ${(accounts += 1)}`;
  log = recordedLog();
  metrics = countedMetrics();
  await put({ available: 10n ** 20n + 5n });
});

const put = (given: Parameters<typeof itemOf>[1]) =>
  client.send(new PutItemCommand({ TableName: 'relay-quotas', Item: attributesOf(itemOf(account, given)) }));

function handlerOn(tables: TableClient, laterMs = 0): TableStreamHandler {
  const clock = new QuickClock();
  clock.nowMs += laterMs;
  const ports = { clock, random: { next: () => 0.5 }, log, metrics };
  const takeAll = createLedgerProjector({ ledger: createLedgerStore(tables, 'relay'), ...ports });
  const poisoned = { event: 'ledger_poisoned', metric: 'LedgerPoisoned' } as const;
  return createTableStreamBatchHandler(readQuotaRecord, { takeAll, poisonReport: poisoned, log, metrics });
}

const project = (records: DynamoDBRecord[], laterMs?: number) =>
  handlerOn(tables, laterMs)(eventOf(records), invocation());
const nothingFailed = { batchItemFailures: [] };

/** The account's ledger as the table holds it: numbers as DynamoDB keeps them. */
async function rows(): Promise<Record<string, unknown>[]> {
  const command = new QueryCommand({
    TableName: 'relay-ledger',
    KeyConditionExpression: 'account = :account',
    ExpressionAttributeValues: { ':account': { S: account } },
  });
  const { Items = [] } = await client.send(command);
  return Items.map((item) =>
    Object.fromEntries(Object.entries(item).map(([name, { S, N, BOOL }]) => [name, S ?? N ?? BOOL])),
  );
}

async function reserve(id: string, wish: ReserveWish = {}): Promise<OpenEntry> {
  const write = reserveOf(account, { id, ...wish });
  await quotas.reserve(write);
  return write.entry;
}

async function close(
  id: string,
  closeRecord: Partial<CloseRecord> = {},
  wish: ReserveWish = {},
): Promise<void> {
  const entry = await reserve(id, wish);
  const write = closeOf(account, { id, entry });
  await quotas.close({ ...write, closeRecord: { ...write.closeRecord, ...closeRecord } });
}

describe('the ledger', () => {
  test('has one row for each close, with exact amounts in yuan', async () => {
    const cache = { cached_tokens: 6, cache_write_tokens: 4 };
    const said = { endpoint: 'chat', prompt_tokens: 12, completion_tokens: 0, ...cache, end: 'completed' };
    await close('call1', { charge: 10n ** 20n + 1n, ...said, estimated: true }, { amount: 2_500_000_000n });
    await close('call2', { kind: 'released' }, { slot: slot(5) });
    await close('call3', { kind: 'expired', charge: 1n }, { slot: slot(5) });
    expect(await project(await stream.next())).toEqual(nothingFailed);
    const common = {
      account,
      at: '2025-11-21T04:40:00Z',
      model: 'm',
      key: '0123456789ab',
      price: '1:tokens:0.001:0.002',
    };
    const settled = { kind: 'settled', endpoint: 'chat', estimated: true, end: 'completed' };
    const cached = { cached_tokens: '6', cache_write_tokens: '4' };
    const counts = { prompt_tokens: '12', completion_tokens: '0', ...cached };
    const amounts = { charge: '100000000000.000000001', reserved: '2.5' };
    expect(await rows()).toEqual([
      { ...common, ...settled, ...counts, ...amounts, id: 'call1' },
      { ...common, id: 'call2', kind: 'released', charge: '0', reserved: '0' },
      {
        ...common,
        id: 'call3',
        kind: 'expired',
        charge: '0.000000001',
        reserved: '0',
        plan_slot: slot(5).key,
      },
    ]);
    expect(log.events).toEqual([]);
  });

  test.each([false, true])(
    'keeps the row of a settled call whose id is reused and cancelled later (backwards: %s)',
    async (backwards) => {
      await close('call', { charge: 7n });
      const stone = entryOf({ tombstone: true });
      await quotas.tombstone({ account, id: 'call', entry: stone });
      await quotas.close(closeOf(account, { entry: stone, kind: 'cancelled' }));
      const records = await stream.next();
      for (const record of backwards ? records.toReversed() : records) await project([record]);
      expect(await rows()).toMatchObject([{ id: 'call', kind: 'settled', charge: '0.000000007' }]);
    },
  );
});

describe('the check of every image', () => {
  test('reports accounts that do not balance, and keeps their rows', async () => {
    await put({ available: 5n, granted: 1_000_000_004n });
    await close('call');
    await project(await stream.next());
    expect(metrics.counted).toEqual(['ConservationBroken', 'ConservationBroken', 'ConservationBroken']);
    expect(log.events.at(-1)).toEqual({
      name: 'conservation_broken',
      fields: { account, last_id: 'call', why: 'off by -0.999999999 yuan' },
    });
    expect(await rows()).toHaveLength(1);
  });

  test('rejects a row whose charge differs from the deduction, and writes it after 15 minutes', async () => {
    await close('call', { charge: 7n });
    const records = await stream.next();
    for (const { dynamodb } of records) {
      const { last, ...image } = dynamodb?.NewImage ?? {};
      if (!dynamodb || !last) continue;
      // A bad version may write milliseconds into the item, so only the stream knows the time.
      const inMilliseconds = last.L?.with(3, { N: `${last.L[3]?.N}000` }) ?? [];
      dynamodb.NewImage = { ...image, last: { L: inMilliseconds }, spent: { N: '8' } };
      dynamodb.ApproximateCreationDateTime = new QuickClock().now() / 1000;
    }
    await expect(project(records, 899_000)).rejects.toThrow('charges 0.000000007 yuan, and 0.000000008');
    expect(await rows()).toEqual([]);
    expect(metrics.counted).toContain('ConservationBroken');
    expect(await project(records, 900_000)).toEqual(nothingFailed);
    expect(await rows()).toMatchObject([{ id: 'call', charge: '0.000000007' }]);
  });
});

describe('a stream record', () => {
  test.each<[string, (record: DynamoDBRecord) => void, string]>([
    [
      'with an amount that is not a number',
      ({ dynamodb }) => Object.assign(dynamodb?.NewImage ?? {}, { available: { S: 'much' } }),
      'quotas: available is not a whole number',
    ],
    [
      'of a close with another close record',
      ({ dynamodb }) => dynamodb?.NewImage?.['last']?.L?.splice(0, 1, { S: 'other' }),
      'a close without its close record',
    ],
    ['without a key', ({ dynamodb }) => delete dynamodb?.Keys, 'quotas: a record without its key'],
  ])('%s is reported once and blocks no later record', async (_, spoil, problem) => {
    await close('call1', { charge: 1n });
    await close('call2', { charge: 2n });
    const records = await stream.next();
    const bad = records.find(({ dynamodb }) => dynamodb?.NewImage?.['last']?.L?.[0]?.S === 'call1');
    if (bad) spoil(bad);
    expect(await project(records)).toEqual(nothingFailed);
    expect((await rows()).map(({ id }) => id)).toEqual(['call2']);
    expect(metrics.counted).toEqual(['LedgerPoisoned']);
    const sequence = bad?.dynamodb?.SequenceNumber;
    expect(log.events).toMatchObject([{ name: 'ledger_poisoned', fields: { sequence, problem } }]);
  });

  test('that the store did not take is delivered again with all later ones', async () => {
    for (const id of ['call1', 'call2', 'call3']) await close(id);
    const records = await stream.next();
    await using away = await FaultyWire.open('http://127.0.0.1:1');
    away.otherwise = () => 'unsent';
    const firstClose = records.find(({ dynamodb }) => dynamodb?.NewImage?.['last']);
    expect(await handlerOn(away.tables)(eventOf(records), invocation())).toEqual({
      batchItemFailures: [{ itemIdentifier: firstClose?.dynamodb?.SequenceNumber }],
    });
    expect(metrics.counted).toEqual([]);
    expect(log.faults.length).toBeGreaterThan(0);
    await project(records);
    expect(await rows()).toHaveLength(3);
  });
});
