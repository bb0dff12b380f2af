import { GetItemCommand, PutItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tablesOn } from '../../../support/sdk-tables.ts';
import { decodeQuota } from '../../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { createQuotaScan } from '../../../../shared/adapters/dynamodb/quotas/open-registry.ts';
import { createQuotaStore } from '../../../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { findImbalance, type OpenEntry, type QuotaItem } from '../../../../shared/billing/quota-item.ts';
import type { QuotaStore } from '../../../../shared/relay/ports/money-stores.ts';
import { createSweeper } from '../../../../shared/relay/jobs/sweeper.ts';
import type { SweepResult } from '../../../../shared/relay/ports/telemetry.ts';
import { attributesOf } from '../../../contract/quota-store-dynamo.ts';
import { FaultyWire, QuickClock } from '../../../contract/faulty-wire.ts';
import { entryOf, itemOf, now } from '../../../contract/quota-store-rig.ts';
import { emulatorClient, startEmulator, type Emulator } from '../../../support/emulator.ts';
import { noRegistry } from '../../../support/whole-table.ts';
import { recordedLog, type RecordedLog } from '../../adapters/telemetry/recorded-log.ts';
import { countedMetrics, type CountedMetrics } from './ledger-stream.ts';

const TableName = 'relay-quotas';
const graceSeconds = 120;

let emulator: Emulator;
let client: DynamoDBClient;
let log: RecordedLog;
let metrics: CountedMetrics;
let clock: QuickClock;
let account = '';
let accounts = 0;

beforeAll(async () => {
  emulator = await startEmulator();
  client = emulatorClient(emulator.endpoint);
});
afterAll(async () => {
  client.destroy();
  await emulator.stop();
});
beforeEach(() => {
  account = `account ${(accounts += 1)}`;
  log = recordedLog();
  metrics = countedMetrics();
  clock = new QuickClock();
});

const storeOn = (own: DynamoDBClient): QuotaStore =>
  createQuotaStore(tablesOn(DynamoDBDocumentClient.from(own)), 'relay');

function sweep(quotas: Pick<QuotaStore, 'close'> = storeOn(client)): Promise<SweepResult> {
  const scan = createQuotaScan(tablesOn(client), 'relay');
  const ports = { clock, random: { next: () => 0.5 }, registry: noRegistry, scan, quotas, metrics, log };
  return createSweeper(ports, graceSeconds)();
}

const overdue = (entry: Partial<OpenEntry> = {}): OpenEntry =>
  entryOf({ until: now - graceSeconds - 1, amount: 10n, input: 3n, ...entry });

async function put(given: Partial<QuotaItem>, name = account): Promise<void> {
  await client.send(new PutItemCommand({ TableName, Item: attributesOf(itemOf(name, given)) }));
}

async function item(name = account): Promise<QuotaItem> {
  const { Item = {} } = await client.send(new GetItemCommand({ TableName, Key: { account: { S: name } } }));
  const found = decodeQuota(Item);
  expect(findImbalance(found)).toBeUndefined();
  return found;
}

describe('the sweeper', () => {
  test('releases a background call that never began, and does not count it as crashed', async () => {
    await put({ available: 5n, granted: 15n, open: new Map([['call', overdue({ queued: true })]]) });
    expect(await sweep()).toMatchObject({ expired: 0 });
    expect(await item()).toMatchObject({ available: 15n, spent: 0n, last: { kind: 'released', charge: 0n } });
  });

  test('charges the input of a lost call, refunds the rest, and logs it', async () => {
    await put({ available: 5n, open: new Map([['lost', overdue()]]) });
    await sweep();
    expect(await item()).toMatchObject({
      available: 12n,
      spent: 3n,
      settled: 1,
      open: new Map(),
      last: { id: 'lost', kind: 'expired', charge: 3n, at: now },
    });
    const fields = { request_id: 'lost', account, kind: 'expired', charge: '0.000000003' };
    expect(log.events).toEqual([{ name: 'reservation_expired', fields }]);
  });

  test('ignores calls that may still settle', async () => {
    const running = entryOf({ until: now - graceSeconds, amount: 10n });
    await put({
      open: new Map([
        ['running', running],
        ['lost', overdue()],
      ]),
    });
    expect(await sweep()).toEqual({ open: 1, expired: 1 });
    expect([...(await item()).open.keys()]).toEqual(['running']);
    expect(await sweep()).toEqual({ open: 1, expired: 0 });
    expect(await item()).toMatchObject({ settled: 1, open: new Map([['running', running]]) });
  });

  test('reports an unreadable item and closes the reservations of all others', async () => {
    const names = ['a', 'b', 'c'].map((name) => `${account} ${name}`);
    for (const name of names) await put({ open: new Map([['lost', overdue()]]) }, name);
    const broken = { ...attributesOf(itemOf(account, {})), open: { M: { lost: { S: 'nonsense' } } } };
    await client.send(new PutItemCommand({ TableName, Item: broken }));
    await sweep();
    for (const name of names) expect((await item(name)).open.size).toBe(0);
    expect(metrics.counted).toEqual(['ReservationPoisoned']);
    const fields = { account, problem: 'quotas: open.flags is not text' };
    expect(log.events).toContainEqual({ name: 'reservation_poisoned', fields });
    await put({});
  });

  test('continues after a failed close and retries it the next time', async () => {
    await put({
      open: new Map([
        ['first', overdue()],
        ['second', overdue()],
      ]),
    });
    await using faulty = await FaultyWire.open(emulator.endpoint);
    const until = clock.now() + 2_000;
    faulty.otherwise = () => (clock.now() < until - 400 ? 'TransactionConflictException' : 'none');
    const [failed, closed] = ['first', 'second'];
    await sweep({
      close: (write) => (write.id === failed ? Promise.reject(new Error('odd')) : faulty.store.close(write)),
    });
    expect([...(await item()).open.keys()]).toEqual([failed]);
    const said = log.events.map(({ name, fields }) => `${name} ${String(fields['request_id'])}`);
    expect(said.toSorted()).toEqual([`reservation_expired ${closed}`, `sweep_failed ${failed}`]);
    await sweep();
    expect((await item()).open.size).toBe(0);
  });
});
