/** The sweep finds open reservations by their registration in the emulator, without a table scan. */
import type { TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { PutItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createOpenRegistry,
  createQuotaScan,
} from '../../../../shared/adapters/dynamodb/quotas/open-registry.ts';
import { createQuotaStore } from '../../../../shared/adapters/dynamodb/quotas/quota-store.ts';
import type { QuotaItem } from '../../../../shared/billing/quota-item.ts';
import { openWatch, createSweeper } from '../../../../shared/relay/jobs/sweeper.ts';
import type {
  QuotaChange,
  Lookup,
  OpenRegistry,
  QuotaScan,
} from '../../../../shared/relay/ports/money-stores.ts';
import { attributesOf } from '../../../contract/quota-store-dynamo.ts';
import { QuickClock } from '../../../contract/faulty-wire.ts';
import { entryOf, itemOf, now } from '../../../contract/quota-store-rig.ts';
import { emulatorClient, emulatorTables, startEmulator, type Emulator } from '../../../support/emulator.ts';
import { recordedLog } from '../../adapters/telemetry/recorded-log.ts';
import { countedMetrics } from './ledger-stream.ts';

const graceSeconds = 120;
const lease = 60;

let emulator: Emulator;
let client: DynamoDBClient;
let tables: TableClient;
let clock: QuickClock;
let registered: Lookup[];
let registry: OpenRegistry;
let read: string[];
let pages: (string | undefined)[];
let scan: QuotaScan;
let watch: ReturnType<typeof openWatch>;

beforeEach(async () => {
  await emulator?.stop();
  emulator = await startEmulator();
  client = emulatorClient(emulator.endpoint);
  tables = emulatorTables(emulator.endpoint);
  clock = new QuickClock();
  [registered, read, pages] = [[], [], []];
  const stored = createOpenRegistry(tables, 'relay');
  registry = {
    ...stored,
    register: async (lookups) => {
      registered.push(...lookups);
      await stored.register(lookups);
    },
  };
  const table = createQuotaScan(tables, 'relay');
  scan = {
    read: (items) => {
      read.push(...items);
      return table.read(items);
    },
    open: (after) => {
      pages.push(after);
      return table.open(after);
    },
  };
  watch = openWatch({ clock, registry }, graceSeconds);
  // The first sweep scans the table, which is empty.
  await sweep();
  pages = [];
});
afterAll(async () => emulator.stop());

const pass = (seconds: number): void => void (clock.nowMs += seconds * 1000);
const seconds = (): number => clock.now() / 1000;

const quotas = () => createQuotaStore(tables, 'relay');
function sweep(more: { quotas?: ReturnType<typeof quotas> } = {}) {
  const ports = { clock, random: { next: () => 0.5 }, registry, scan, quotas: quotas(), ...more };
  return createSweeper({ ...ports, metrics: countedMetrics(), log: recordedLog() }, graceSeconds)();
}

const openUntil = (...untils: number[]): QuotaItem['open'] =>
  new Map(untils.map((until, at) => [`call ${at}`, entryOf({ until, amount: 10n, input: 3n })]));

/** Writes the item. Its stream record, with its image, comes when the test hands it to `watch`. */
async function put(account: string, open: QuotaItem['open']): Promise<QuotaChange & { after: QuotaItem }> {
  const after = itemOf(account, { open });
  await client.send(new PutItemCommand({ TableName: 'relay-quotas', Item: attributesOf(after) }));
  return { item: account, account, before: undefined, after };
}
async function openIn(account: string): Promise<number> {
  let size = 0;
  for await (const item of createQuotaScan(tables, 'relay').read([account])) size = item.read().open.size;
  return size;
}

describe('a sweep', () => {
  it('closes lost reservations, and reads neither the table nor items that are not due', async () => {
    await watch([await put('lost', openUntil(now + lease)), await put('later', openUntil(now + 900))]);
    pass(lease + graceSeconds);
    expect(await sweep()).toEqual({ open: 1, expired: 0 });
    pass(6);
    expect(await sweep()).toEqual({ open: 0, expired: 1 });
    expect(await openIn('lost')).toBe(0);
    expect(await openIn('later')).toBe(1);
    expect(read).not.toContain('later');
    expect(pages).toEqual([]);
  });

  it('retries a close that failed', async () => {
    await watch([await put('odd', openUntil(now + lease))]);
    pass(lease + graceSeconds + 1);
    const store = { ...quotas(), close: () => Promise.reject(new Error('odd')) };
    expect(await sweep({ quotas: store })).toEqual({ open: 1, expired: 0 });
    pass(60);
    expect(await sweep()).toEqual({ open: 0, expired: 1 });
  });

  it('checks a reservation again that was renewed between its read and its close', async () => {
    await watch([await put('raced', openUntil(now + lease))]);
    pass(lease + graceSeconds + 1);
    const store = quotas();
    const close: typeof store.close = async (write) => {
      await put('raced', openUntil(seconds() + lease));
      return store.close(write);
    };
    expect(await sweep({ quotas: { ...store, close } })).toEqual({ open: 1, expired: 0 });
    pass(lease + graceSeconds + 1);
    expect(await sweep()).toEqual({ open: 0, expired: 1 });
  });

  it('with a fast clock loses no registration for a time that it has already passed', async () => {
    await watch([await put('busy', openUntil(now + lease))]);
    const aheadSeconds = 120;
    pass(lease + graceSeconds + 30);
    // Takes the registration early, with the entry, but the watch still relies on it.
    expect(await sweep()).toEqual({ open: 0, expired: 1 });
    pass(-aheadSeconds);
    await watch([await put('busy', openUntil(now + lease + 1))]);
    pass(aheadSeconds);
    expect(await sweep()).toEqual({ open: 0, expired: 1 });
  });

  it('scans the table every hour, in case a registration was lost', async () => {
    await put('unregistered', openUntil(now + lease));
    pass(59 * 60);
    expect(await sweep()).toEqual({ open: 0, expired: 0 });
    pass(60);
    expect(await sweep()).toEqual({ open: 0, expired: 1 });
    expect(pages).toEqual([undefined]);
  });

  it('resumes a long scan where the previous sweep stopped', async () => {
    pass(3600);
    const table = scan;
    const names = Array.from({ length: 45 }, (_, at) => `page ${at}`);
    scan = {
      ...table,
      open: async (after) => {
        pages.push(after);
        return { quotas: [], next: names[after === undefined ? 0 : names.indexOf(after) + 1] };
      },
    };
    for (let sweeps = 0; sweeps < 4; sweeps += 1) await sweep();
    expect(pages).toEqual([undefined, ...names]);
  });
});

describe('a registration', () => {
  it('is written once for a busy item until its time has come', async () => {
    for (let second = 0; second < lease + graceSeconds; second += 1) {
      await watch([
        {
          item: 'busy',
          account: 'busy',
          before: undefined,
          after: itemOf('busy', { open: openUntil(seconds() + lease) }),
        },
      ]);
      pass(1);
    }
    expect(registered.map(({ atSeconds }) => atSeconds)).toEqual([now + lease, now + 175 + lease]);
  });

  it('is written again for a reservation that ends before all others', async () => {
    const image = (...untils: number[]) => ({
      item: 'two',
      account: 'two',
      before: undefined,
      after: itemOf('two', { open: openUntil(...untils) }),
    });
    await watch([image(now + 600)]);
    await watch([image(now + 600, now + 30)]);
    expect(registered.map(({ atSeconds }) => atSeconds)).toEqual([now + 600, now + 30]);
  });
});
