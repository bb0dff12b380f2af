/**
 * How readers see a metered account, whose calls are spread over counters and whose rows over partitions of the ledger.
 */
import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccountReader } from '../../shared/adapters/dynamodb/account-reader.ts';
import { createIdempotencyStore } from '../../shared/adapters/dynamodb/idempotency-store.ts';
import { createLedgerReader } from '../../shared/adapters/dynamodb/ledger-reader.ts';
import { createLedgerStore } from '../../shared/adapters/dynamodb/ledger-store.ts';
import { createQuotaStore } from '../../shared/adapters/dynamodb/quotas/quota-store.ts';
import { createRowPages } from '../../shared/adapters/dynamodb/row-pages.ts';
import { createTableCopies } from '../../shared/adapters/dynamodb/table-copies.ts';
import type { TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import {
  findCloseRow,
  grantPrefix,
  buildLateRow,
  formatLedgerPartition,
} from '../../shared/billing/ledger-row.ts';
import { createQuotaItem, type QuotaItem } from '../../shared/billing/quota-item.ts';
import { firstCounter } from '../../shared/billing/shares.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { tablesOn } from '../support/sdk-tables.ts';
import { entryOf } from './quota-store-rig.ts';

let emulator: Emulator;
let client: TableClient;
let documents: ReturnType<typeof emulatorClient>;
const nowMs = Date.parse('2026-11-21T09:43:00Z');
const endings = '0123456789abcdefghjkmnpqrstvwxyz';
const ids = Array.from(endings, (end, at) => timeText(nowMs + at * 1000) + end.padStart(16, '0'));
const newest = ids.toReversed();

/** Writes one call and its row in each of 32 counters; one call is charged more later. */
beforeAll(async () => {
  emulator = await startEmulator();
  documents = emulatorClient(emulator.endpoint);
  client = tablesOn(DynamoDBDocumentClient.from(documents));
  const quotas = createQuotaStore(client, 'relay');
  const ledger = createLedgerStore(client, 'relay', { next: () => 0.5 });
  const entry = entryOf({ metered: true });
  for (const [at, id] of ids.entries()) {
    const part = firstCounter + at * 60;
    await quotas.create('acme', part);
    const opened = await quotas.reserve({ account: 'acme', shard: part, id, entry });
    const closeRecord = { id, kind: 'settled', charge: 3n, at: Math.floor(nowMs / 1000) + at } as const;
    await quotas.close({ account: 'acme', shard: part, id, entry, releaseSlot: false, closeRecord });
    const before = opened.done ? opened.item : undefined;
    const after = before && { ...before, open: new Map(), last: closeRecord };
    const row = findCloseRow(before, after);
    if (row) await ledger.putCounted([row]);
  }
  const late = {
    account: 'acme',
    part: firstCounter,
    entry,
    closeRecord: { id: ids[5]!, kind: 'settled', charge: 9n, at: 1 },
  } as const;
  await quotas.chargeLate({ difference: 2n, row: buildLateRow(late, 2n) });
});
afterAll(async () => {
  documents.destroy();
  await emulator.stop();
});

const store = () =>
  ({ tables: client, target: { stack: 'relay' } }) as Parameters<typeof createLedgerReader>[0];
const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);

test('its balance adds up every counter', async () => {
  const all = { available: 0n, granted: 0n, spent: 98n, metered: 98n, settled: 33, open: new Map() };
  expect(await createAccountReader(client, 'relay').quota('acme')).toMatchObject(all);
  expect(await createLedgerReader(store()).quotas(['acme'])).toMatchObject([{ row: all }]);
});

test("its calls are listed newest first and page by page, from all partitions, under the account's own name", async () => {
  const reader = createAccountReader(client, 'relay');
  const first = await reader.requests('acme', grantPrefix, 11);
  expect(idsOf(first)).toEqual(newest.slice(0, 11));
  expect(new Set(first.map(formatLedgerPartition)).size).toBeGreaterThan(2);
  expect(new Set(first.map(({ account }) => account))).toEqual(new Set(['acme']));
  expect(idsOf(await reader.requests('acme', newest[10]!, 100))).toEqual(newest.slice(11));
  expect(await reader.late('acme')).toMatchObject([{ id: `late#${ids[5]}`, charge: 2n, metered: true }]);
  const pages = createRowPages(store());
  const page = await pages.requests('acme', undefined, 30);
  expect(page.next).toBe(newest[29]);
  expect((await pages.requests('acme', page.next, 30)).next).toBeUndefined();
});

test('operators find all of its rows by account and by id', async () => {
  const reader = createLedgerReader(store());
  const rows = (await Array.fromAsync(reader.ledger({ account: 'acme' }))).flat();
  expect(rows).toHaveLength(33);
  expect(await reader.request(ids[7]!)).toMatchObject({ row: { account: 'acme', id: ids[7], charge: 3n } });
  expect(new Set((await Array.fromAsync(reader.ledgerAccounts())).flat())).toEqual(new Set(['acme']));
});

test('restoring its balance moves the sums of its counters into the first item and empties them', async () => {
  const reader = createAccountReader(client, 'relay');
  const before = await reader.quota('acme');
  await documents.send(new DeleteItemCommand({ TableName: 'relay-quotas', Key: { account: { S: 'acme' } } }));
  const item = { ...createQuotaItem('acme'), spent: 98n, metered: 98n, settled: 33 };
  expect(await createTableCopies(store()).replaceQuota(item, undefined)).toBe(true);
  expect(await reader.quota('acme')).toMatchObject({ spent: 98n, metered: 98n, settled: 33, available: 0n });
  expect(before).toMatchObject({ spent: 98n, metered: 98n, settled: 33 });
  const empty = (part: QuotaItem) => part.shard === 0 || (part.spent === 0n && part.settled === 0);
  expect((await reader.quota('acme'))?.shards?.every(empty)).toBe(true);
});

test('a repeat of a settled call with its Idempotency-Key is recognised as completed', async () => {
  const idempotency = createIdempotencyStore(
    client,
    { now: () => nowMs, sleep: async () => undefined },
    'relay',
  );
  const claim = { owner: 'key', account: 'acme', idempotencyKey: 'k', body: {}, untilMs: nowMs - 1 };
  expect(await idempotency.claim({ ...claim, requestId: ids[9]! })).toEqual({ state: 'claimed' });
  expect(await idempotency.claim({ ...claim, requestId: 'other' })).toMatchObject({ state: 'completed' });
});
