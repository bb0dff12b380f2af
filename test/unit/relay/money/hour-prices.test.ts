/** Prices by the hour in which a call begins, for customer and operator. The amounts are by hand, from docs/billing.md. */
import { describe, expect, it } from 'vitest';
import { AccountRow } from '../../../../shared/config/rows/account-row.ts';
import { BillingRig, byTokens, small, yuan } from '../../../support/billing-rig.ts';
import { delta, demoKey, done, finish, hello, keyRow, usage } from '../../../support/core-rig.ts';

const milli = 1_000_000n;
/** `hello` has 7 tokens of input and 2 of output. */
const helloCost = 11n * milli;
const minuteMs = 60_000;

/** The rig's clocks begin on a Saturday at 00:00 UTC, which is 08:00 in Shanghai. */
const hours = { name: 'early', from: '08:00', to: '08:05', zone: 'Asia/Shanghai' };
const rigOf = (windows: object[], { cost, row = {} }: { cost?: object; row?: object } = {}) =>
  new BillingRig({
    charges: [{ ...byTokens, service_tiers: { flex: 0.5 }, windows }],
    ...(cost && {
      channels: [{ id: 'main', models: ['m'], endpoint: 'https://m.test/v1', cost: { m: cost } }],
    }),
    keys: { [demoKey]: { row: keyRow(), account: AccountRow.parse({ account: 'acme', ...row }) } },
  }).granted(yuan);

async function callAfter(rig: BillingRig, ms: number, more: object = {}) {
  await rig.clock.run(rig.clock.sleep(ms));
  rig.upstream({ steps: hello });
  await rig.call({ ...small, ...more });
  return rig.item?.last;
}

describe('a price by the hour', () => {
  it('applies by the minute in which the call begins, and the row names the window', async () => {
    const rig = rigOf([{ ...hours, factor: 2 }]);
    const inside = await callAfter(rig, 5 * minuteMs - 1_000);
    expect(inside).toMatchObject({ charge: 2n * helloCost });
    const outside = await callAfter(rig, 1_000);
    expect(outside).toMatchObject({ charge: helloCost });
    expect(rig.item?.spent).toBe(3n * helloCost);
    const open = rigOf([{ ...hours, factor: 2 }]).upstream({ steps: hello });
    open.store.always('dropped', 'close');
    await open.call(small);
    expect(open.open).toMatchObject([{ price: '1:tokens:1:2:window=early:x2', input: 10n * milli }]);
  });

  it('stays in force for a call that runs beyond the window', async () => {
    const rig = rigOf([{ ...hours, factor: 2 }]);
    await rig.clock.run(rig.clock.sleep(5 * minuteMs - 1_000));
    rig.upstream({ steps: [delta('Hello'), 20_000, finish(), usage(7, 2), done] });
    await rig.call(small);
    expect(rig.item?.last).toMatchObject({ charge: 2n * helloCost });
    expect(rig.clock.now()).toBeGreaterThan(Date.UTC(2026, 10, 21, 0, 5, 15));
  });

  it.each<[string, object, object, object, bigint, string]>([
    [
      'multiplies with the service tier',
      { factor: 2 },
      {},
      { service_tier: 'flex' },
      helloCost,
      '1:tokens:1:2:window=early',
    ],
    [
      'multiplies with the factor of the customer',
      { factor: 2 },
      { prices: [{ models: ['m'], factor: 0.75 }] },
      {},
      16_500_000n,
      '1:tokens:1:2:window=early:x1.5',
    ],
    [
      'multiplies all three',
      { factor: 2 },
      { prices: [{ models: ['m'], factor: 0.75 }] },
      { service_tier: 'flex' },
      8_250_000n,
      '1:tokens:1:2:window=early:x0.75',
    ],
    [
      'replaces all prices of the rule',
      { input: 3, output: 1 },
      {},
      { service_tier: 'flex' },
      23n * milli,
      '1:tokens:3:1:window=early',
    ],
    [
      'is replaced by a customer’s own prices',
      { input: 3, output: 1 },
      { prices: [{ models: ['m'], input: 2, output: 1 }] },
      {},
      16n * milli,
      '1:tokens:2:1:window=early',
    ],
    ['does not apply on other days', { factor: 2, days: ['sun'] }, {}, {}, helloCost, '1:tokens:1:2'],
  ])('%s', async (_how, terms, row, body, charge, price) => {
    const rig = rigOf([{ ...hours, ...terms }], { row });
    const last = await callAfter(rig, 0, body);
    expect(rig.item?.spent).toBe(charge);
    const open = rigOf([{ ...hours, ...terms }], { row }).upstream({ steps: hello });
    open.store.always('dropped', 'close');
    await open.call({ ...small, ...body });
    expect(last?.price ?? open.open[0]?.price).toBe(price);
  });

  it('applies to the operator’s cost in the same minute, so that margins are right', async () => {
    const cost = { input: 0.5, output: 1, windows: [{ ...hours, factor: 2 }] };
    const rig = rigOf([{ ...hours, factor: 2 }], { cost });
    expect(await callAfter(rig, 0)).toMatchObject({ charge: 22n * milli, bought: 11n * milli });
    expect(await callAfter(rig, 5 * minuteMs)).toMatchObject({ charge: helloCost, bought: 5_500_000n });
  });
});
