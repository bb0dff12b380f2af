import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LearnedFact } from '../../shared/upstreams/quirks.ts';
import { documentClient, tablesOn } from '../support/sdk-tables.ts';
import {
  createLearnedFacts,
  createLearnedFactsReader,
  type ItemView,
} from '../../shared/adapters/dynamodb/runtime-source.ts';
import type { LearnedFacts } from '../../shared/relay/ports/runtime-stores.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { MemoryLearnedFacts } from '../support/memory-learned-facts.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { hotClient, localAccess } from '../unit/adapters/dynamodb/store.ts';

/** The contract of learned facts, for the in-memory store and the real ones. */
const clock = new VirtualClock();
const hour = 3_600_000;
let emulator: Emulator;
let client: ReturnType<typeof documentClient>;
let item: Record<string, unknown> | undefined;
let readAtMs = -Infinity;

/** Reads the item as a new environment does. */
async function read(): Promise<void> {
  const { Item } = await client.send(new GetCommand({ TableName: 'relay-runtime', Key: { id: 'learned' } }));
  item = Item;
}

const environment = (view: () => ItemView = () => ({ item, readAtMs })): LearnedFacts =>
  createLearnedFacts({ client: hotClient(), clock, stack: 'relay', view });
const factOf = (more: Partial<LearnedFact> = {}): LearnedFact => ({
  fact: 'keeps_state',
  channel: 'main',
  model: 'vendor/m:1',
  untilMs: clock.now() + hour,
  ...more,
});
const named = (facts: LearnedFacts, channel = 'main') => facts.of({ channel, model: 'vendor/m:1' });

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  client = documentClient(localAccess);
});
afterAll(async () => {
  client.destroy();
  await emulator.stop();
});

describe.each(['memory', 'dynamodb'])('learned facts in %s', (kind) => {
  const facts = (): LearnedFacts => (kind === 'memory' ? new MemoryLearnedFacts(clock) : environment());

  it('are known at once to the environment that learned them, until they expire', async () => {
    const here = facts();
    const fact = factOf({ channel: `first-${kind}` });
    await here.learn(fact);
    expect(named(here, fact.channel)).toEqual([fact]);
    expect(named(here, 'other')).toEqual([]);
    await clock.run(clock.sleep(hour));
    expect(named(here, fact.channel)).toEqual([]);
  });

  it('are extended, but never shortened', async () => {
    const here = facts();
    const fact = factOf({ channel: `second-${kind}`, fact: 'speaks:other' });
    await here.learn(fact);
    await here.learn({ ...fact, untilMs: fact.untilMs + hour });
    expect(named(here, fact.channel)).toMatchObject([{ untilMs: fact.untilMs + hour }]);
  });

  it('keep only the newest fact about each rule', async () => {
    const here = facts();
    const told: LearnedFact['fact'][] = [
      'efforts:low',
      'efforts:low+high',
      'efforts:',
      'sampling:none',
      'efforts:low',
    ];
    for (const fact of told) {
      await clock.run(clock.sleep(1));
      await here.learn(factOf({ channel: `third-${kind}`, fact }));
    }
    const known = named(here, `third-${kind}`).map(({ fact }) => fact);
    expect(known.toSorted()).toEqual(['efforts:low', 'sampling:none']);
  });

  it('are settled for 8 s by what the environment observed', () => {
    const here = facts();
    const served = { channel: 'main', model: 'm' };
    expect(here.isSettled(served, clock.now())).toBe(false);
    here.settle(served);
    expect(here.isSettled(served, clock.now())).toBe(true);
    expect(here.isSettled({ ...served, model: 'n' }, clock.now())).toBe(false);
    expect(here.isSettled(served, clock.now() + 8_000)).toBe(true);
    expect(here.isSettled(served, clock.now() + 8_001)).toBe(false);
  });
});

describe('the item of learned facts', () => {
  it.each(['refuses_limit:16384', 'wants_back:thought_signature', 'efforts:low+medium+high+xhigh'] as const)(
    'passes facts to other environments and to the publisher: %s',
    async (kind) => {
      const fact = factOf({ channel: `told-${kind}`, fact: kind });
      await environment().learn(fact);
      await read();
      expect(named(environment(), `told-${kind}`)).toEqual([fact]);
      const reader = createLearnedFactsReader({ client: tablesOn(client), clock, stack: 'relay' });
      expect(await reader.all()).toContainEqual(fact);
    },
  );

  it('drops expired facts with the next write', async () => {
    await environment().learn(factOf({ channel: 'ends', untilMs: clock.now() + 1 }));
    await clock.run(clock.sleep(1));
    await read();
    expect(item).toHaveProperty(['keeps_state|ends|vendor/m:1']);
    await environment().learn(factOf({ channel: 'next' }));
    await read();
    expect(item).not.toHaveProperty(['keeps_state|ends|vendor/m:1']);
    expect(item).toHaveProperty(['keeps_state|next|vendor/m:1']);
  });

  it('holds one fact per rule, however often it changes', async () => {
    const channel = 'turncoat';
    for (const fact of ['efforts:low', 'efforts:high', 'efforts:low+high', 'stop:false'] as const) {
      await clock.run(clock.sleep(1));
      await environment().learn(factOf({ channel, fact }));
      await read();
    }
    const held = Object.keys(item ?? {}).filter((name) => name.includes(channel));
    expect(held.toSorted()).toEqual([
      `efforts:low+high|${channel}|vendor/m:1`,
      `stop:false|${channel}|vendor/m:1`,
    ]);
    expect(named(environment(), channel)).toHaveLength(2);
  });

  it('stores at most 200 facts; the learner still remembers one more', async () => {
    const full = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`keeps_state|c${i}|m`, clock.now() + hour]),
    );
    const here = environment(() => ({ item: full, readAtMs }));
    await here.learn(factOf({ channel: 'too-many' }));
    expect(named(here, 'too-many')).toHaveLength(1);
    await read();
    expect(item).not.toHaveProperty(['keeps_state|too-many|vendor/m:1']);
  });

  it('reserves room for facts from refusals, however many words vendors use', async () => {
    const half = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`finish_word:w${i}+1|c${i}|*`, clock.now() + hour]),
    );
    const here = environment(() => ({ item: half, readAtMs }));
    await here.learn(factOf({ channel: 'wordy', model: '*', fact: 'finish_word:new+1' }));
    await here.learn(factOf({ channel: 'wordy', fact: 'sampling:none' }));
    await read();
    expect(Object.keys(item ?? {}).filter((name) => name.includes('wordy'))).toEqual([
      'sampling:none|wordy|vendor/m:1',
    ]);
  });

  it('keeps the newest count of a word', async () => {
    const here = environment();
    for (const count of [1, 2, 4] as const) {
      await clock.run(clock.sleep(1));
      const fact = `finish_word:brand_new+${count}` as const;
      await here.learn(factOf({ channel: 'said', model: '*', fact, untilMs: clock.now() + hour }));
      await read();
    }
    const known = environment().of({ channel: 'said', model: '*' });
    expect(known.map(({ fact }) => fact)).toEqual(['finish_word:brand_new+4']);
  });

  it('settles every question if it was read after the request arrived', () => {
    readAtMs = clock.now();
    expect(environment().isSettled({ channel: 'any', model: 'm' }, clock.now())).toBe(true);
    expect(environment().isSettled({ channel: 'any', model: 'm' }, clock.now() + 1)).toBe(false);
  });

  it('keeps a model settled while it is read again within 8 s', async () => {
    const served = { channel: 'any', model: 'm' };
    const here = environment();
    here.settle(served);
    await clock.run(clock.sleep(20_000));
    readAtMs = clock.now() - 8_000;
    expect(here.isSettled(served, clock.now())).toBe(true);
    expect(environment().isSettled(served, clock.now())).toBe(false);
    expect(here.isSettled(served, clock.now() + 1)).toBe(false);
  });

  it('ignores attributes that are not facts', () => {
    const strange = { id: 'learned', 'keeps_state|a': 1, 'other|a|m': 1, 'keeps_state|a|m': 'soon' };
    const here = environment(() => ({ item: strange, readAtMs }));
    expect(here.of({ channel: 'a', model: 'm' })).toEqual([]);
  });
});
