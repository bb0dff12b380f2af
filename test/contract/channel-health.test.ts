import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentClient } from '../support/sdk-tables.ts';
import { createChannelHealth } from '../../shared/adapters/dynamodb/runtime-source.ts';
import { formatKey, readHealthImage } from '../../shared/adapters/dynamodb/health-items.ts';
import type { ChannelHealth, HealthEntry } from '../../shared/relay/ports/runtime-stores.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { itemBytes } from '../support/item-bytes.ts';
import { MemoryHealth, type SharedItem } from '../support/memory-health.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { hotClient } from '../unit/adapters/dynamodb/store.ts';

/** The contract of channel health stores, for the in-memory store and the real one. */
const clock = new VirtualClock();
const nowMs = clock.now();
let emulator: Emulator;
let client: ReturnType<typeof documentClient>;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  client = documentClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
});
afterAll(() => emulator.stop());

const rest = (seconds: number): HealthEntry => ({ kind: 'failing', untilMs: nowMs + seconds * 1000 });

interface Kind {
  /** Returns a new environment that has read the item. */
  environment(): Promise<ChannelHealth>;
  item(): Promise<Record<string, unknown>>;
  put(item: Record<string, string | number>): Promise<void>;
}

function inMemory(): Kind {
  const shared: SharedItem = { now: {} };
  return {
    environment: () => Promise.resolve(new MemoryHealth(clock, shared)),
    item: () => Promise.resolve(shared.now),
    put: (item) => Promise.resolve(void (shared.now = item)),
  };
}

function inDynamo(): Kind {
  const Key = { id: 'cooldowns' };
  const read = async () => (await client.send(new GetCommand({ TableName: 'relay-runtime', Key }))).Item;
  return {
    environment: async () => {
      const item = await read();
      return createChannelHealth({
        client: hotClient(),
        clock,
        stack: 'relay',
        view: () => ({ item, readAtMs: nowMs - 1 }),
      });
    },
    item: async () => (await read()) ?? {},
    put: async (item) => {
      const attributes = Object.entries(item).map(([name, value]) => [
        name,
        typeof value === 'number' ? { N: String(value) } : { S: value },
      ]);
      const Item = { id: { S: 'cooldowns' }, ...Object.fromEntries(attributes) };
      await client.send(new PutItemCommand({ TableName: 'relay-runtime', Item }));
    },
  };
}

describe.each([
  ['memory', inMemory],
  ['dynamodb', inDynamo],
])('channel health in %s', (_name, make) => {
  const fresh = async (item: Record<string, string | number> = {}): Promise<Kind> => {
    const kind = make();
    await kind.put(item);
    return kind;
  };

  it('reads back every kind of entry, in this environment and in others', async () => {
    const kind = await fresh();
    const entries: HealthEntry[] = [
      { kind: 'rate_limit', untilMs: nowMs + 1, statedUntilMs: nowMs + 86_400_000_000 },
      { kind: 'credentials', untilMs: nowMs + 2, probeUntilMs: nowMs + 3 },
      { kind: 'failing', untilMs: nowMs + 4, statedUntilMs: nowMs + 5, probeUntilMs: nowMs + 6 },
      { kind: 'failing', untilMs: nowMs + 5, probeUntilMs: nowMs + 6, failedBy: '00ab' },
      { kind: 'failures', count: 1, accounts: ['00ab'], lastMs: nowMs + 7 },
      { kind: 'failures', count: 2, accounts: ['00ab', 'zzzz'], lastMs: nowMs + 8 },
    ];
    const own = await kind.environment();
    for (const [key, entry] of entries.entries()) expect(await own.change(key, () => entry)).toBe(true);
    expect([...(await own.entries()).values()]).toHaveLength(entries.length);
    const other = await (await kind.environment()).entries();
    expect(entries.map((_, key) => other.get(key))).toEqual(entries);
    for (const key of entries.keys()) await own.change(key, () => undefined);
    expect((await (await kind.environment()).entries()).size).toBe(0);
  });

  it('does not write when nothing changes, not even to a missing item', async () => {
    const kind = await fresh({});
    const own = await kind.environment();
    expect(await own.change(1, (entry) => entry)).toBe(false);
    expect(await own.change(1, () => undefined)).toBe(false);
    expect((await own.entries()).size).toBe(0);
  });

  it('passes the concurrent write of another environment to a change, and loses neither', async () => {
    const kind = await fresh();
    const [one, two] = [await kind.environment(), await kind.environment()];
    await one.change(7, () => ({ kind: 'failures', count: 1, accounts: ['aaaa'], lastMs: nowMs }));
    const seen: (HealthEntry | undefined)[] = [];
    await two.change(7, (entry) => {
      seen.push(entry);
      return rest(30);
    });
    expect(seen).toMatchObject([undefined, { kind: 'failures' }]);
    await one.change(8, () => rest(30));
    await two.change(9, () => rest(30));
    expect([...(await (await kind.environment()).entries()).keys()].toSorted((a, b) => a - b)).toEqual([
      7, 8, 9,
    ]);
  });

  it('grants an exclusive claim to only one of several environments', async () => {
    const kind = await fresh();
    await (await kind.environment()).change(3, () => rest(-1));
    const environments = await Promise.all([1, 2, 3, 4].map(() => kind.environment()));
    const claims = environments.map((environment) =>
      environment.change(3, (entry) =>
        entry && entry.kind !== 'failures' && entry.probeUntilMs === undefined
          ? { ...entry, probeUntilMs: nowMs + 1 }
          : entry,
      ),
    );
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
  });

  it('fits 503 resting candidates into one read unit, and keeps those with the longest cooldown', async () => {
    const most: SharedItem = { now: {} };
    const rested = (key: number): HealthEntry => rest(((key * 37) % 503) + 60);
    const filled = new MemoryHealth(clock, most);
    for (let key = 0; key < 463; key += 1) await filled.change(key, () => rested(key));
    const kind = await fresh(most.now);
    const own = await kind.environment();
    for (let key = 463; key < 503; key += 1) await own.change(key, () => rested(key));
    const item = await kind.item();
    expect(itemBytes({ ...item, id: 'cooldowns' })).toBeLessThanOrEqual(4096);
    const { entries } = readHealthImage(item);
    expect(entries.size).toBeGreaterThan(200);
    const ends = [...entries.values()].map((entry) => ('untilMs' in entry ? entry.untilMs : 0));
    expect(Math.min(...ends)).toBe(nowMs + (503 - entries.size + 60) * 1000);
  });

  it("drops expired entries with the next write, and keeps entries that it can't read", async () => {
    const later = 'Znotes';
    const kind = await fresh({ [formatKey(5)]: 'F1', [formatKey(6)]: later });
    await (await kind.environment()).change(1, () => rest(30));
    const item = await kind.item();
    expect(item[formatKey(5)]).toBeUndefined();
    expect(item[formatKey(6)]).toBe(later);
  });
});
