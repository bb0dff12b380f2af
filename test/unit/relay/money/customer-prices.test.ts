/** Reservations, charges and prices of customers with prices of their own. The amounts are by hand, from docs/billing.md. */
import { describe, expect, it } from 'vitest';
import { AccountRow } from '../../../../shared/config/rows/account-row.ts';
import { customerPrices } from '../../../../shared/config/rows/price-terms.ts';
import { readSetting } from '../../../../shared/config/setting-rows.ts';
import { aliasRig, helloCosts } from '../../../support/alias-rig.ts';
import { BillingRig, byTokens, small, smallNeed, yuan } from '../../../support/billing-rig.ts';
import { demoKey, hello, keyRow } from '../../../support/core-rig.ts';

const milli = 1_000_000n;
/** `hello` has 7 tokens of input and 2 of output: 11 thousandths of a yuan at the price of everybody. */
const helloCost = 11n * milli;

type Row = Record<string, unknown>;
const keysOf = (row: Row) => ({
  [demoKey]: { row: keyRow(), account: AccountRow.parse({ account: 'acme', ...row }) },
});
const priceGroups = { resellers: customerPrices.parse([{ models: ['*'], factor: 0.9 }]) };
const rigOf = (row: Row, charge: Row = {}) =>
  new BillingRig({
    charges: [{ ...byTokens, service_tiers: { flex: 0.5, priority: 2 }, ...charge }],
    keys: keysOf(row),
    settings: { priceGroups },
  });

interface Asked {
  tier?: string;
  charge?: Row;
}

/** Returns the charge of a call and the price in its ledger row. */
async function called(row: Row, { tier, charge = {} }: Asked) {
  const body = { ...small, ...(tier && { service_tier: tier }) };
  const [rig, open] = [rigOf(row, charge), rigOf(row, charge)].map((each) =>
    each.granted(yuan).upstream({ steps: hello }),
  );
  open?.store.always('dropped', 'close');
  await Promise.all([rig?.call(body), open?.call(body)]);
  return { spent: rig?.item?.spent, price: rig?.item?.last?.price ?? open?.open[0]?.price };
}

const byCall = { type: 'times-billing', input: 0, output: 0.05, service_tiers: undefined };

describe('a call of a customer with its own prices', () => {
  it.each<[string, Row, Asked, bigint, string]>([
    ['by its factor', { prices: [{ models: ['m'], factor: 0.8 }] }, {}, 8_800_000n, '1:tokens:1:2:x0.8'],
    ['by the factor of its group', { price_group: 'resellers' }, {}, 9_900_000n, '1:tokens:1:2:x0.9'],
    [
      'by its own entry before its group’s',
      { price_group: 'resellers', prices: [{ models: ['x', 'm*'], factor: 1.25 }] },
      {},
      13_750_000n,
      '1:tokens:1:2:x1.25',
    ],
    [
      'by its group if no own entry names the model',
      { price_group: 'resellers', prices: [{ models: ['n'], factor: 5 }] },
      {},
      9_900_000n,
      '1:tokens:1:2:x0.9',
    ],
    ['the usual price in a missing group', { price_group: 'gone' }, {}, helloCost, '1:tokens:1:2'],
    [
      'by its factor times the service tier’s',
      { prices: [{ models: ['*'], factor: 0.8 }] },
      { tier: 'flex' },
      4_400_000n,
      '1:tokens:1:2:x0.4',
    ],
    [
      'by its own prices in its own tier',
      { prices: [{ models: ['*'], input: 3, output: 1, service_tiers: { flex: 0.1 } }] },
      { tier: 'flex' },
      2_300_000n,
      '1:tokens:3:1:x0.1',
    ],
    [
      'by its own prices, which have none of the rule’s tiers',
      { prices: [{ models: ['*'], input: 3, output: 1 }] },
      { tier: 'priority' },
      23n * milli,
      '1:tokens:3:1',
    ],
    [
      'by the factor of a price per call',
      { prices: [{ models: ['*'], factor: 0.8 }] },
      { charge: byCall },
      40n * milli,
      '1:call:0.05:x0.8',
    ],
    [
      'per call, while others pay by tokens',
      { prices: [{ models: ['*'], type: 'times-billing', output: 0.02 }] },
      {},
      20n * milli,
      '1:call:0.02',
    ],
  ])('is charged %s', async (_how, row, more, charge, text) => {
    const { spent, price } = await called(row, more);
    expect(spent).toBe(charge);
    expect(price).toBe(text);
  });

  it('reserves by the customer’s price, so a balance that covers it is enough', async () => {
    const row = { prices: [{ models: ['m'], factor: 0.5 }] };
    const held = rigOf(row)
      .granted(smallNeed / 2n)
      .upstream({ steps: hello });
    held.store.always('dropped', 'close');
    expect((await held.call(small)).status).toBe(200);
    expect(held.open.map(({ amount }) => amount)).toEqual([smallNeed / 2n]);
    const dear = rigOf({ prices: [{ models: ['m'], factor: 2 }] })
      .granted(smallNeed)
      .upstream({ steps: hello });
    expect((await dear.call(small)).status).toBe(429);
  });

  it('needs no balance for a model that is free for this customer, even if others pay for it', async () => {
    const free = rigOf({ prices: [{ models: ['m'], type: 'non-billing' }] }).upstream({ steps: hello });
    expect((await free.call(small)).status).toBe(200);
    const charge = { type: 'non-billing', input: 0, output: 0, service_tiers: undefined };
    const others = rigOf({ price_group: 'gone' }, charge).upstream({ steps: hello });
    expect((await others.call(small)).status).toBe(200);
    const paying = rigOf({ prices: [{ models: ['m'], input: 1, output: 1 }] }, charge).upstream({
      steps: hello,
    });
    expect((await paying.call(small)).status).toBe(429);
  });

  it('to an alias costs the customer’s price of the model that answers', async () => {
    const rig = aliasRig({ keys: keysOf({ prices: [{ models: ['large'], factor: 0.5 }] }) })
      .granted(1_000n * yuan)
      .upstream({ status: 500 }, { steps: hello });
    await rig.call({ ...small, model: 'best' });
    expect(rig.item?.spent).toBe(helloCosts.large / 2n);
    expect(rig.item?.last).toMatchObject({ model: 'large', price: '2:tokens:10:20:x0.5' });
  });
});

describe('a dated customer price', () => {
  const startMs = Date.UTC(2026, 10, 21);
  const at = (ms: number) => new Date(startMs + ms).toISOString();
  const minuteMs = 60_000;
  /** Twice the price in the second minute, in a group that has another price before and after. */
  const raised = [
    { models: ['m'], factor: 2, from: at(minuteMs), until: at(2 * minuteMs) },
    { models: ['*'], factor: 0.5 },
  ];
  const groups = { priceGroups: { resellers: customerPrices.parse(raised) } };
  const rigWith = () =>
    new BillingRig({ keys: keysOf({ price_group: 'resellers' }), settings: groups }).granted(1_000n * yuan);

  it('applies to calls that begin between its start and end, however long they run', async () => {
    const rig = rigWith();
    const spentAt = async (ms: number, ...steps: typeof hello): Promise<bigint> => {
      const before = rig.item?.spent ?? 0n;
      await rig.clock.run(rig.clock.sleep(startMs + ms - rig.clock.now()));
      rig.upstream({ steps: [...steps, ...hello] });
      await rig.call(small);
      return (rig.item?.spent ?? 0n) - before;
    };
    expect(await spentAt(minuteMs - 1, 5_000)).toBe(helloCost / 2n);
    expect(await spentAt(minuteMs + 10_000)).toBe(helloCost * 2n);
    expect(await spentAt(2 * minuteMs - 1, 5_000)).toBe(helloCost * 2n);
    expect(await spentAt(2 * minuteMs + 10_000)).toBe(helloCost / 2n);
  });

  it('reserves by the price at the call’s start only', async () => {
    const rig = new BillingRig({ keys: keysOf({ price_group: 'resellers' }), settings: groups });
    expect(
      (
        await rig
          .granted(smallNeed / 2n)
          .upstream({ steps: hello })
          .call(small)
      ).status,
    ).toBe(200);
  });
});

describe('customer prices', () => {
  const read = (prices: unknown) => AccountRow.safeParse({ account: 'acme', prices }).success;
  it.each<[unknown, boolean]>([
    [[{ models: ['m'], factor: 0.000_001 }], true],
    [[{ models: ['m'], input: 0, output: 0 }], true],
    [[{ models: ['m'], type: 'non-billing' }], true],
    [[{ models: ['m'], type: 'non-billing', output: 1 }], false],
    [[{ models: ['m'], type: 'times-billing', output: 1 }], true],
    [[{ models: ['m'], type: 'times-billing', input: 1, output: 1 }], false],
    [[{ models: ['m'], type: 'token-billing', factor: 2 }], false],
    [[{ models: ['m'], factor: 2, input: 1, output: 1 }], false],
    [[{ models: ['m'], input: 1 }], false],
    [[{ models: ['m'] }], false],
    [[{ models: [], factor: 1 }], false],
    [[{ models: ['m'], factor: 0.000_000_1 }], false],
    [[{ models: ['m'], factor: 101 }], false],
    [[{ models: ['m'], factor: 1, note: 'x' }], false],
    [[{ models: ['m'], factor: 2, from: '2026-12-07T00:00:00+08:00', until: '2026-12-08' }], true],
    [[{ models: ['m'], factor: 2, from: '2026-12-07', until: '2026-12-07T08:00:00+08:00' }], false],
    [[{ models: ['m'], factor: 2, from: '2026-12-07T00:00' }], false],
    [[{ models: ['m'], from: '2026-12-07' }], false],
    [Array.from({ length: 10_000 }, () => ({ models: ['m'], factor: 2, from: '2026-12-07' })), false],
    [{ m: 2 }, false],
    [[], false],
  ])('%j are valid in a row: %s', (prices, isRight) => {
    expect(read(prices)).toBe(isRight);
    const setting = readSetting({ name: 'price_groups', value: { some: prices } });
    expect('row' in setting).toBe(isRight);
  });
});
