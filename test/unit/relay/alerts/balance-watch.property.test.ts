import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createQuotaItem, type QuotaItem } from '../../../../shared/billing/quota-item.ts';
import { balanceWatch } from '../../../../shared/relay/alerts/balance-watch.ts';
import type { AlertAccounts, AlertStore } from '../../../../shared/relay/ports/alerts.ts';
import type { QuotaChange } from '../../../../shared/relay/ports/money-stores.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { MemoryAlertStores } from '../../../support/memory-alert-stores.ts';
import { SeededRandom } from '../../../simulation/seeded-random.ts';
import { Scheduler } from '../../../simulation/scheduler.ts';

const limit = 1_000n;
const parts = 3;

/** An account with three shards and a moving balance, and consumers of its stream that interleave at every wait. */
class World {
  readonly random: SeededRandom;
  readonly scheduler: Scheduler;
  readonly stores = new MemoryAlertStores();
  readonly items: QuotaItem[];
  /** How often the sum fell below the limit. */
  falls = 0;
  ids = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.scheduler = new Scheduler(this.random, 0);
    this.items = Array.from({ length: parts }, (_, part) => ({
      ...createQuotaItem(part === 0 ? 'acme' : `acme#${part}`),
      granted: part === 0 ? 1_200n : 0n,
      available: 400n,
    }));
  }

  get balance(): bigint {
    return this.items.reduce((sum, { granted, spent }) => sum + granted - spent, 0n);
  }

  /** One write to one shard: a charge that it covers, or a top-up. */
  write(amount: number): QuotaChange {
    const was = this.balance;
    const part = this.random.integer(0, parts - 1);
    const before = this.items[part] ?? createQuotaItem('acme');
    const change = BigInt(amount) < -before.available ? -before.available : BigInt(amount);
    const after = { ...before, available: before.available + change };
    if (change < 0n) after.spent -= change;
    else after.granted += change;
    this.items[part] = after;
    if (was >= limit && this.balance < limit) this.falls += 1;
    return { item: before.account, account: before.account, before, after };
  }

  /** Starts the work later; its reply may be lost before or after the work is done. */
  async network<T>(work: () => Promise<T>): Promise<T> {
    await this.turn();
    if (this.random.chance(0.05)) throw new StoreUnavailable('lost before');
    const reply = await work();
    await this.turn();
    if (this.random.chance(0.05)) throw new StoreUnavailable('lost after');
    return reply;
  }

  turn(): Promise<void> {
    // Mostly quick, sometimes slow enough for a whole check by another consumer in between.
    const delayMs = this.random.chance(0.2) ? this.random.integer(50, 300) : this.random.integer(0, 20);
    return new Promise((resolve) => this.scheduler.after(delayMs, resolve));
  }

  consumer() {
    const marks: AlertStore = {
      marks: (causes) => this.network(() => this.stores.marks(causes)),
      raise: (raised) => this.network(() => this.stores.raise(raised)),
      clear: (cause, seen) => this.network(() => this.stores.clear(cause, seen)),
    };
    const accounts: Pick<AlertAccounts, 'row' | 'alertBelow' | 'balance'> = {
      row: () => this.network(async () => ({ account: 'acme', alertBelow: limit })),
      alertBelow: async () => limit,
      balance: () => this.network(async () => this.balance),
    };
    const clock = { now: () => this.scheduler.nowMs };
    return balanceWatch({ marks, accounts, clock, ids: { next: () => `n${(this.ids += 1)}` } });
  }
}

type Consumer = ReturnType<World['consumer']>;

/** Delivers like an event source mapping: until it succeeds, and perhaps once more. */
async function deliver(world: World, watch: Consumer, change: QuotaChange): Promise<void> {
  let left = world.random.chance(0.2) ? 2 : 1;
  while (left > 0) {
    await world.turn();
    const isTaken = await watch.take(change).then(
      () => true,
      () => false,
    );
    if (isTaken) left -= 1;
  }
}

const amounts = fc.array(fc.constantFrom(-300, -150, -7, 10, 300, 700), {
  minLength: 2,
  maxLength: 12,
});

test('consumers that keep up report each fall of the balance once, whatever is repeated or lost', async () => {
  await fc.assert(
    fc.asyncProperty(amounts, fc.nat(), async (writes, seed) => {
      const world = new World(seed);
      const watch = world.consumer();
      const work = (async () => {
        for (const amount of writes) await deliver(world, watch, world.write(amount));
        await watch.look('acme').catch(() => deliver(world, watch, world.write(0)));
      })();
      await world.scheduler.run();
      await work;
      expect(world.stores.put).toHaveLength(world.falls);
      expect(world.stores.kept.get('balance#acme')?.open ?? false).toBe(world.balance < limit);
    }),
    { numRuns: 150 },
  );
});

test('parallel, late and reordered consumers report no fall twice, and the mark ends at the balance', async () => {
  await fc.assert(
    fc.asyncProperty(amounts, fc.nat(), async (writes, seed) => {
      const world = new World(seed);
      const consumers: [Consumer, ...Consumer[]] = [world.consumer()];
      while (consumers.length < 3 && world.random.chance(0.5)) consumers.push(world.consumer());
      const work = (async () => {
        const deliveries: Promise<void>[] = [];
        for (const amount of writes) {
          const change = world.write(amount);
          deliveries.push(deliver(world, world.random.pick(consumers), change));
          if (world.random.chance(0.3)) deliveries.push(deliver(world, world.random.pick(consumers), change));
          for (let turns = world.random.integer(0, 6); turns > 0; turns -= 1) await world.turn();
        }
        await Promise.all(deliveries);
      })();
      await world.scheduler.run();
      await work;
      expect(world.stores.put.length).toBeLessThanOrEqual(world.falls);
      expect(world.stores.kept.get('balance#acme')?.open ?? false).toBe(world.balance < limit);
    }),
    { numRuns: 600 },
  );
});
