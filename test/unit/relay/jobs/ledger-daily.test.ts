/** The ledger's rows, the sums of `daily` and the budgets of keys: all or none, each row once. */
import { PutItemCommand, ScanCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dailySumOf } from '../../../../shared/adapters/dynamodb/daily-sums.ts';
import { createLedgerStore, decodeLedgerRow } from '../../../../shared/adapters/dynamodb/ledger-store.ts';
import {
  addFigures,
  sumDaily,
  formatDailyKey,
  type DailySum,
} from '../../../../shared/billing/daily-figures.ts';
import { removeBucket } from '../../../../shared/billing/daily-keys.ts';
import { createQuotaItem, type CloseRecord, type OpenEntry } from '../../../../shared/billing/quota-item.ts';
import { createLedgerProjector } from '../../../../shared/relay/jobs/ledger-projector.ts';
import type { QuotaChange } from '../../../../shared/relay/ports/money-stores.ts';
import { compareCodeUnits } from '../../../../shared/wire/json.ts';
import { timeText } from '../../../../shared/wire/ids.ts';
import { FaultyWire, QuickClock } from '../../../contract/faulty-wire.ts';
import { entryOf } from '../../../contract/quota-store-rig.ts';
import { emulatorClient, emulatorTables, startEmulator, type Emulator } from '../../../support/emulator.ts';
import { recordedLog } from '../../adapters/telemetry/recorded-log.ts';
import { countedMetrics } from './ledger-stream.ts';
import { type TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';

let emulator: Emulator;
let client: DynamoDBClient;
let tables: TableClient;
let calls = 0;

beforeAll(async () => {
  emulator = await startEmulator();
  client = emulatorClient(emulator.endpoint);
  tables = emulatorTables(emulator.endpoint);
});
afterAll(async () => {
  client.destroy();
  await emulator.stop();
});

const ports = () => ({
  clock: new QuickClock(),
  random: { next: () => 0.5 },
  metrics: countedMetrics(),
  log: recordedLog(),
});
const project = (changes: QuotaChange[]) => projectOn(changes, tables);
const projectOn = (changes: QuotaChange[], tables: TableClient) =>
  createLedgerProjector({ ...ports(), ledger: createLedgerStore(tables, 'relay') })(changes);

/** A write that closed a new call. */
function closing(
  account: string,
  { entry = {}, ...record }: Partial<CloseRecord> & { entry?: Partial<OpenEntry> } = {},
): QuotaChange {
  calls += 1;
  const id = record.id ?? timeText(Date.parse('2026-11-21T10:00:00Z') + calls).padEnd(26, '0');
  const last = { id, kind: 'settled', charge: 3n, at: 1_763_700_000, ...record } as const;
  const after = { ...createQuotaItem(account), available: -last.charge, spent: last.charge, last };
  return {
    item: account,
    account,
    before: { ...after, spent: 0n, open: new Map([[id, entryOf({ amount: 0n, ...entry })]]) },
    after,
  };
}

async function all(table: string) {
  const { Items = [] } = await client.send(new ScanCommand({ TableName: `relay-${table}` }));
  return Items;
}
const rows = async () => (await all('ledger')).map(decodeLedgerRow);

/** The sums that differ from the ledger rows, and the missing ones. */
async function wrongSums(): Promise<string[]> {
  // Sums by minute are not exact, and some are broken on purpose; `spread` names buckets.
  const exact = (await all('daily')).filter(({ id }) => !/^(minutes#|spread$)/.test(id?.S ?? ''));
  const buckets = exact.map(dailySumOf).map(({ key, figures }) => ({ key: removeBucket(key), figures }));
  const found = new Set(
    [...Map.groupBy(buckets, ({ key }) => formatDailyKey(key)).values()].map((some) =>
      textOf(some.reduce((a, b) => ({ key: a.key, figures: addFigures(a.figures, b.figures) }))),
    ),
  );
  const wanted = new Set(sumDaily(await rows()).map(textOf));
  return [
    ...[...found].filter((text) => !wanted.has(text)),
    ...[...wanted].filter((text) => !found.has(text)),
  ];
}
const textOf = ({ key, figures: { counts, amounts } }: DailySum): string =>
  [
    key.id,
    key.period,
    ...[counts, amounts].flatMap((of) => Object.entries(of).map(String).toSorted(compareCodeUnits)),
  ].join(' ');

const served = {
  channel: 'openai',
  upstream_model: 'm-2026',
  first_content_ms: 300,
  bought: 10n ** 18n + 1n,
};

describe('the daily sums', () => {
  it('match the ledger rows, even of more changes than one transaction takes', async () => {
    const batch = Array.from({ length: 90 }, (_, at) => closing(`busy ${at % 30}`, at % 2 ? served : {}));
    expect(await project(batch)).toEqual(batch.map(() => undefined));
    expect(await rows()).toHaveLength(90);
    expect(await wrongSums()).toEqual([]);
  });

  it('count a repeated record once, alone, in a batch, or next to new ones', async () => {
    const first = closing('again', served);
    const batch = [first, closing('again', served), first];
    await project([first]);
    await project(batch);
    await project(batch.toReversed());
    await project([...batch, closing('again', served)]);
    expect(await wrongSums()).toEqual([]);
  });

  it('count a call once if its id is cancelled before or after it', async () => {
    const settled = closing('stones', served);
    const id = settled.after?.last?.id ?? '';
    const stone = closing('stones', { id, kind: 'cancelled', charge: 0n, entry: { tombstone: true } });
    const early = closing('stones');
    const earlyStone = closing('stones', { id: early.after?.last?.id ?? '', kind: 'cancelled', charge: 0n });
    await project([earlyStone, stone]);
    await project([stone, settled, early]);
    await project([earlyStone, settled]);
    expect(await wrongSums()).toEqual([]);
  });
});

describe('the sums by minute', () => {
  it('fail no row when the store rejects them, and the failure is logged', async () => {
    const spoiled = {
      id: { S: 'minutes#2026-11-21' },
      period: { S: 'minute#2026-11-21T10:06' },
      calls: { S: 'many' },
    };
    await client.send(new PutItemCommand({ TableName: 'relay-daily', Item: spoiled }));
    const { log, ...others } = ports();
    const ledger = createLedgerStore(tables, 'relay');
    const at = Date.parse('2026-11-21T10:06:30Z') / 1000;
    const outcomes = await createLedgerProjector({ ...others, log, ledger })([closing('minutely', { at })]);
    expect(outcomes).toEqual([undefined]);
    expect(log.events).toEqual([
      { name: 'minutes_not_counted', fields: { rows: 1, why: 'ValidationException' } },
    ]);
    expect(await wrongSums()).toEqual([]);
  });

  it('cover only the last ten minutes of an outage', async () => {
    const begin = Date.parse('2026-11-21T11:00:00Z') / 1000;
    await project(Array.from({ length: 30 }, (_, minute) => closing('late', { at: begin + minute * 60 })));
    const minutes = (await all('daily')).filter(({ period }) =>
      period?.S?.startsWith('minute#2026-11-21T11'),
    );
    expect(minutes).toHaveLength(10);
  });
});

describe('a batch of changes', () => {
  it('is retried from the first row that the failing store did not take', async () => {
    await using shaky = await FaultyWire.open(emulator.endpoint);
    const batch = Array.from({ length: 120 }, (_, at) => closing(`long ${at}`));
    // The second lane names its bucket before its first transaction.
    let sent = 0;
    shaky.otherwise = () => ((sent += 1) > 4 ? 'unsent' : 'none');
    const outcomes = await projectOn(batch, shaky.tables);
    const failedAt = outcomes.findIndex((outcome) => outcome !== undefined);
    const failed = outcomes.filter((outcome) => outcome?.name === 'StoreUnavailable');
    expect((await rows()).filter(({ account }) => account.startsWith('long'))).toHaveLength(
      batch.length - failed.length,
    );
    expect(failed.length).toBeLessThan(batch.length);
    expect(await wrongSums()).toEqual([]);
    await project(batch.slice(failedAt));
    expect(await wrongSums()).toEqual([]);
  });

  it('keeps the row and reports it when a sum holds no number', async () => {
    const change = closing('spoiled');
    const spoiled = {
      id: { S: 'account#spoiled' },
      period: { S: 'day#2026-11-21#m' },
      calls: { S: 'many' },
    };
    await client.send(new PutItemCommand({ TableName: 'relay-daily', Item: spoiled }));
    const outcomes = await project([change, closing('good')]);
    expect(outcomes.map((outcome) => outcome?.message)).toEqual([
      'daily: the sums do not take the row, which is in the ledger',
      undefined,
    ]);
    expect((await rows()).filter(({ account }) => account === 'spoiled')).toHaveLength(1);
  });
});

describe('a key’s budget', () => {
  const used = async (key: string) =>
    (await all('runtime'))
      .filter(({ id }) => id?.S === `budget#${key}#2026-11`)
      .map(({ used: sum, running }) => [sum?.N, running?.N]);

  it('is refunded once for what a call did not spend, even if its record repeats', async () => {
    const entry = { amount: 10n, key: 'saver', budget: '2026-11' };
    const change = closing('budgeted', { charge: 3n, entry });
    const other = closing('budgeted', { charge: 0n, kind: 'released', entry });
    await project([change, change, other]);
    await project([other, change]);
    // -7 and -10: the holds themselves were added when the calls began.
    expect(await used('saver')).toEqual([['-17', '-2']]);
  });
});
