import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { nodeHmac } from '../../../../shared/adapters/system/node-ports.ts';
import { convertFen, createAutoTopUp, turnOff, changeTopUp } from '../../../../shared/billing/auto-top-up.ts';
import { createQuotaItem, type QuotaItem } from '../../../../shared/billing/quota-item.ts';
import { autoTopUpWatch } from '../../../../shared/relay/alerts/auto-top-up-watch.ts';
import type { QuotaChange } from '../../../../shared/relay/ports/money-stores.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { TransportError } from '../../../../shared/upstreams/exchange.ts';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import { Scheduler } from '../../../simulation/scheduler.ts';
import { SeededRandom } from '../../../simulation/seeded-random.ts';
import { StripeDouble } from '../../../support/stripe-double.ts';
import { reference, StripeRig } from '../../../support/stripe-rig.ts';

const terms = { below: 2_000, amount: 5_000, monthly: 20_000 };
const nonce = 'a'.repeat(16);
const startMs = Date.UTC(2026, 10, 21);

/**
 * An account with a stored card whose calls spend, consumers of its table stream, Stripe with its events, and the grants that follow: in
 * virtual time, where every wait may let anything else come between, and stores and Stripe lose calls and replies.
 */
class World {
  readonly random: SeededRandom;
  readonly scheduler: Scheduler;
  readonly stripe = new StripeDouble();
  readonly hook = new StripeRig();
  item: QuotaItem = { ...createQuotaItem('acme'), granted: convertFen(3_000), available: convertFen(3_000) };
  applied = new Set<string>();
  faults: string[] = [];
  ids = 0;
  /** The account's row allows automatic top-ups. */
  mayTopUp = true;
  lossy: number;

  constructor(seed: number, lossy = 0.1) {
    this.random = new SeededRandom(seed);
    this.scheduler = new Scheduler(this.random, startMs);
    this.lossy = lossy;
    this.hook.nowMs = startMs;
    this.hook.random = () => this.random.next();
    if (this.hook.settings) this.hook.settings.rates['cny'] = '1';
    this.hook.topUps.disturb = () => this.hop();
    this.stripe.beforeCharge = (amount) => {
      const uncredited = this.stripe.charged.filter(({ id }) => !this.applied.has(id));
      const coming = uncredited.reduce((sum, each) => sum + each.amount, 0);
      if (this.balance + convertFen(coming) >= convertFen(terms.below))
        this.faults.push(`charged ${amount} above the threshold`);
    };
  }

  get balance(): bigint {
    return this.item.granted - this.item.spent;
  }

  /** The card is stored, and its first payment was credited. */
  turnOn(): void {
    const auto = changeTopUp(createAutoTopUp('acme'), { wanted: { ...terms, nonce } });
    this.hook.topUps.kept.set('acme', {
      ...auto,
      version: auto.version + 1,
      terms,
      wanted: undefined,
      card: { customer: 'cus_1', method: 'pm_good' },
    });
  }

  /** A store call that starts later and may be lost. */
  async hop(): Promise<void> {
    const delayMs = this.random.chance(0.2) ? this.random.integer(50, 300) : this.random.integer(0, 20);
    await new Promise<void>((resolve) => this.scheduler.after(delayMs, resolve));
    if (this.random.chance(this.lossy / 2)) throw new StoreUnavailable('lost');
  }

  change(write: (item: QuotaItem) => QuotaItem): QuotaChange {
    const before = this.item;
    this.item = write(before);
    return { item: 'acme', account: 'acme', before, after: this.item };
  }

  spend = (fen: number): QuotaChange =>
    this.change((item) => ({
      ...item,
      spent: item.spent + convertFen(fen),
      available: item.available - convertFen(fen),
    }));

  /** Writes ledger row and balance together, as the function `grants` does. */
  applyGrants(): QuotaChange[] {
    return [...this.hook.store.grants.values()]
      .filter(({ grant_id }) => !this.applied.has(grant_id))
      .map(({ grant_id, amount }) => {
        this.applied.add(grant_id);
        this.hook.topUps.credited.add(`acme ${grant_id}`);
        return this.change((item) => ({
          ...item,
          granted: item.granted + amount,
          available: item.available + amount,
        }));
      });
  }

  consumer() {
    return autoTopUpWatch({
      topUps: this.hook.topUps,
      accounts: {
        row: async () => ({ account: 'acme', mayTopUp: this.mayTopUp }),
        balance: async () => {
          await this.hop();
          return this.balance;
        },
      },
      settings: async () => ({
        ...defaultSettings,
        payments: {
          stripe: {
            ...this.hook.settings!,
            checkout: {
              secretKey: 'env:S',
              currency: 'cny',
              endpoint: 'https://stripe.test',
              autoTopUp: true,
              plans: [],
            },
          },
        },
      }),
      secrets: { read: async () => 'link secret' },
      hmac: nodeHmac,
      hex: () =>
        this.random
          .integer(0, 2 ** 40)
          .toString(16)
          .padStart(16, '0'),
      ids: { next: () => `n${(this.ids += 1)}` },
      clock: {
        now: () => this.scheduler.nowMs,
        sleep: (ms, signal) =>
          new Promise((resolve) => {
            signal?.addEventListener('abort', () => resolve());
            this.scheduler.after(ms, resolve);
          }),
      },
      log: { request: () => {}, event: () => {}, fault: () => {} },
      transport: {
        send: async ({ url, headers, body }) => {
          const lose = () => {
            if (this.random.chance(this.lossy)) throw new TransportError('reset', 'lost');
          };
          await this.hop().catch(() => {
            throw new TransportError('reset', 'lost');
          });
          lose();
          const reply = this.stripe.answer(
            URL.parse(url)?.pathname ?? '',
            headers['idempotency-key'] ?? '',
            body,
          );
          lose();
          const bytes = new TextEncoder().encode(JSON.stringify(reply.json));
          return { status: reply.status, headers: {}, body: [bytes] as unknown as AsyncIterable<Uint8Array> };
        },
      },
    });
  }

  /** Delivers Stripe's events until accepted, some twice, then applies the grants and passes their changes to the consumers. */
  async deliverEvents(take: (change: QuotaChange) => Promise<void>): Promise<void> {
    const sent = [...this.stripe.events, ...this.stripe.events.filter(() => this.random.chance(0.3))];
    for (const { type, object } of sent) {
      while ((await this.hook.send(type, object)) !== 200) await this.hop().catch(() => {});
      if (this.random.chance(0.5)) for (const change of this.applyGrants()) await take(change);
    }
    for (const change of this.applyGrants()) await take(change);
  }

  async run(work: () => Promise<void>): Promise<void> {
    const state = { isOver: false };
    const all = work().finally(() => (state.isOver = true));
    while (!state.isOver) await this.scheduler.run();
    await all;
  }
}

type Consumer = ReturnType<World['consumer']>;

/** Delivers like an event source mapping: until it succeeds, and perhaps once more. */
async function take(world: World, watch: Consumer, change: QuotaChange): Promise<void> {
  const deliveries = world.random.chance(0.2) ? 2 : 1;
  for (let done = 0; done < deliveries;) {
    await world.hop().catch(() => {});
    done += await watch.take(change).then(
      () => 1,
      () => 0,
    );
  }
}

/** Runs the hourly pass until it has succeeded several times. */
async function pass(world: World, watch: Consumer): Promise<void> {
  for (let done = 0; done < 3;) {
    await new Promise<void>((resolve) => world.scheduler.after(3_600_000, resolve));
    done += await watch.look('acme').then(
      () => 1,
      () => 0,
    );
  }
}

const sum = (amounts: readonly number[]): number => amounts.reduce((total, each) => total + each, 0);

test('each fall below the threshold is charged and credited once within the monthly limit, despite losses', async () => {
  let charges = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 3, maxLength: 16 }),
      fc.nat(),
      async (amounts, seed) => {
        const world = new World(seed);
        world.turnOn();
        const consumers = [world.consumer(), world.consumer(), world.consumer()];
        const any = (): Consumer => world.random.pick(consumers as [Consumer, ...Consumer[]]);
        await world.run(async () => {
          for (let part = 0; part < amounts.length; part += 4) {
            const changes = amounts.slice(part, part + 4).map(world.spend);
            const events = world.deliverEvents((change) => take(world, any(), change));
            await Promise.all([...changes.map((change) => take(world, any(), change)), events]);
            await world.deliverEvents((change) => take(world, any(), change));
          }
          // A finished charge may start the next one, up to the monthly limit.
          for (let rounds = 0; rounds < 5; rounds += 1) {
            await pass(world, any());
            await world.deliverEvents((change) => take(world, any(), change));
          }
        });
        const charged = world.stripe.charged.map(({ amount }) => amount);
        charges += charged.length;
        expect(world.faults).toEqual([]);
        expect(sum(charged)).toBeLessThanOrEqual(terms.monthly);
        expect(world.hook.granted).toHaveLength(charged.length);
        expect(world.item.granted).toBe(convertFen(3_000 + sum(charged)));
        const keys = new Set(world.stripe.asked.map(({ key }) => key));
        expect(keys.size).toBeGreaterThanOrEqual(charged.length);
        const room = terms.monthly - sum(charged) >= terms.amount;
        const auto = world.hook.topUps.kept.get('acme');
        if (room && auto?.pending === undefined)
          expect(world.balance).toBeGreaterThanOrEqual(convertFen(terms.below));
      },
    ),
    { numRuns: 80 },
  );
  expect(charges).toBeGreaterThan(50);
});

test('a hundred simultaneous calls across the threshold charge the card once', async () => {
  const world = new World(1, 0);
  world.turnOn();
  const changes = Array.from({ length: 100 }, () => world.spend(20));
  const consumers = [world.consumer(), world.consumer(), world.consumer()];
  await world.run(async () => {
    await Promise.all(changes.map((change, at) => take(world, consumers[at % 3]!, change)));
    await Promise.all(changes.map((change, at) => take(world, consumers[at % 2]!, change)));
  });
  expect(world.stripe.charged.map(({ amount }) => amount)).toEqual([5_000]);
  expect(world.stripe.asked).toHaveLength(1);
});

test('the monthly limit stops charges, is reported once, and starts afresh the next month', async () => {
  const world = new World(2, 0);
  world.turnOn();
  const watch = world.consumer();
  await world.run(async () => {
    for (let spends = 0; spends < 12; spends += 1) {
      await watch.take(world.spend(3_000));
      await world.deliverEvents((change) => watch.take(change));
    }
    expect(world.stripe.charged).toHaveLength(4);
    expect(world.hook.topUps.notices.map(({ type }) => type)).toEqual(['auto_top_up.limit']);
    await new Promise<void>((resolve) => world.scheduler.after(11 * 24 * 3_600_000, resolve));
    await watch.look('acme');
    expect(world.stripe.charged).toHaveLength(5);
  });
});

test.each([
  ['card_declined', 'declined'],
  ['authentication_required', 'authentication_required'],
])('%s turns automatic top-ups off and is reported once', async (code, reason) => {
  const world = new World(3, 0);
  world.turnOn();
  world.stripe.declines.set('pm_good', code);
  const watch = world.consumer();
  await world.run(async () => {
    await watch.take(world.spend(2_000));
    await watch.take(world.spend(100));
    await watch.look('acme');
  });
  expect(world.hook.topUps.notices.map(({ type, data }) => [type, data['reason']])).toEqual([
    ['auto_top_up.off', reason],
  ]);
  expect(world.stripe.asked).toHaveLength(1);
  expect(world.hook.topUps.kept.get('acme')?.card).toBeUndefined();
});

test.each([
  ['an error', 500],
  ['a success without a payment', 200],
])(
  'a charge answered by %s is retried with the same key for 23 hours, then top-ups are turned off',
  async (_, status) => {
    const world = new World(4, 0);
    world.turnOn();
    world.stripe.failing = status;
    const watch = world.consumer();
    await world.run(async () => {
      await watch.take(world.spend(2_000));
      for (let hours = 0; hours < 25; hours += 1) {
        await new Promise<void>((resolve) => world.scheduler.after(3_600_000, resolve));
        await watch.look('acme');
      }
    });
    expect(new Set(world.stripe.asked.map(({ key, form }) => `${key} ${form.toString()}`)).size).toBe(1);
    expect(world.stripe.asked.length).toBeGreaterThan(20);
    expect(world.hook.topUps.notices.map(({ data }) => data['reason'])).toEqual(['unconfirmed']);
  },
);

test('a charge that never reached Stripe is not repeated after the operator stops charges', async () => {
  const world = new World(7, 0);
  world.turnOn();
  world.stripe.failing = 500;
  const watch = world.consumer();
  await world.run(async () => {
    await watch.take(world.spend(2_000));
    world.stripe.failing = undefined;
    world.mayTopUp = false;
    for (let hours = 0; hours < 25; hours += 1) {
      await new Promise<void>((resolve) => world.scheduler.after(3_600_000, resolve));
      await watch.look('acme');
    }
  });
  expect(world.stripe.charged).toEqual([]);
  expect(world.hook.topUps.notices.map(({ data }) => data['reason'])).toEqual(['unconfirmed']);
});

test.each([
  ['refund.created', 'refunded', { status: 'succeeded' }],
  ['charge.dispute.created', 'disputed', { status: 'needs_response' }],
])(
  '%s takes the balance below the threshold and turns top-ups off, so the card is not charged',
  async (type, off, changes) => {
    const world = new World(6, 0);
    world.turnOn();
    const watch = world.consumer();
    await world.run(async () => {
      await watch.take(world.spend(2_000));
      await world.deliverEvents((change) => watch.take(change));
      const reversal = { id: 're_1', amount: 5_000, currency: 'cny', payment_intent: 'pi_1', ...changes };
      await world.hook.send(type, reversal);
      for (const change of world.applyGrants()) await watch.take(change);
      await watch.look('acme');
    });
    expect(world.balance).toBe(convertFen(1_000));
    expect(world.stripe.charged).toHaveLength(1);
    expect(world.hook.topUps.notices.map(({ data }) => data['reason'])).toEqual([off]);
  },
);

test('a payment enables top-ups only with the nonce of the last request, and a dispute disables them once', async () => {
  const { hook } = new World(5, 0);
  hook.topUps.disturb = async () => {};
  const wanted = changeTopUp(createAutoTopUp('acme'), { wanted: { ...terms, nonce } });
  const intent = (changes: object = {}) => ({
    id: 'pi_1',
    amount_received: 5_000,
    currency: 'cny',
    customer: 'cus_1',
    payment_method: 'pm_1',
    metadata: { relay_reference: reference({ currency: 'cny', minor: 5_000n, nonce }) },
    ...changes,
  });
  hook.topUps.kept.set('acme', wanted);
  const other = reference({ currency: 'cny', minor: 5_000n, nonce: 'b'.repeat(16) });
  const forged = reference({ currency: 'cny', minor: 5_000n, nonce }, 'another secret');
  for (const [id, relay_reference] of Object.entries({ pi_2: other, pi_3: forged }))
    expect(await hook.send('payment_intent.succeeded', intent({ id, metadata: { relay_reference } }))).toBe(
      200,
    );
  expect(hook.topUps.kept.get('acme')?.card).toBeUndefined();
  expect(hook.granted).toEqual(['acme pi_2 50']);

  for (let sent = 0; sent < 3; sent += 1) await hook.send('payment_intent.succeeded', intent());
  expect(hook.granted).toEqual(['acme pi_1 50', 'acme pi_2 50']);
  expect(hook.topUps.kept.get('acme')).toMatchObject({
    terms,
    card: { customer: 'cus_1', method: 'pm_1' },
    pending: { payment: 'pi_1' },
    version: 2,
  });

  const dispute = { id: 'dp_1', amount: 5_000, currency: 'cny', payment_intent: 'pi_1', status: 'lost' };
  await hook.send('charge.dispute.created', dispute);
  expect(hook.topUps.kept.get('acme')).toMatchObject({ off: 'disputed' });
  expect(hook.topUps.kept.get('acme')?.card).toBeUndefined();
  const again = changeTopUp(turnOff(hook.topUps.kept.get('acme')!), {
    wanted: { ...terms, nonce: 'c'.repeat(16) },
  });
  hook.topUps.kept.set('acme', { ...again, terms, card: { customer: 'cus_2', method: 'pm_2' } });
  await hook.send('charge.dispute.closed', dispute);
  expect(hook.topUps.kept.get('acme')?.card).toEqual({ customer: 'cus_2', method: 'pm_2' });
});
