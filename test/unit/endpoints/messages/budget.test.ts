/** The budget headers of a key, which Claude Code shows as usage limits: it warns from 75 % on. */
import { describe, expect, it } from 'vitest';
import { findKeyBudget } from '../../../../shared/relay/money/call-costs.ts';
import { BillingRig, small, smallNeed, yuan } from '../../../support/billing-rig.ts';
import { delta, demoKey, done, finish, keyRow, usage } from '../../../support/core-rig.ts';

const headers = { 'x-api-key': demoKey };
const path = '/v1/messages';
const prefix = 'anthropic-ratelimit-unified-';

/** A key of which other calls have used an amount in its period. */
async function rigOf(budget: { amount: string; period: 'day' | 'month' }, used: bigint): Promise<BillingRig> {
  const rig = new BillingRig({ key: { budget } }).granted(yuan);
  const counter = findKeyBudget(keyRow({ budget }), 'UTC', rig.clock.now())?.counter;
  if (counter) await rig.counters.change(counter, { used, running: 0 });
  rig.upstream({ steps: [delta('hi'), finish(), usage(7, 2), done] });
  return rig;
}

const limitsOf = (sent: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(sent).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  );

describe('the budget headers of a Messages answer', () => {
  it.each([
    ['a day', 'day', '5h', 'five_hour', 250, 'allowed', undefined],
    ['a month', 'month', '7d', 'seven_day', 500, 'allowed', undefined],
    ['a month', 'month', '7d', 'seven_day', 750, 'allowed_warning', '0.75'],
    ['a day', 'day', '5h', 'five_hour', 951, 'allowed_warning', '0.95'],
  ] as const)(
    'report the used part of the budget of %s (%s) and its reset: %s, %s, %i thousandths',
    async (_what, period, window, claim, used, status, passed) => {
      const rig = await rigOf({ amount: '10', period }, BigInt(used) * (yuan / 100n));
      const reset =
        (findKeyBudget(keyRow({ budget: { amount: '10', period } }), 'UTC', rig.clock.now())?.resetsAtMs ??
          0) / 1000;
      const answer = await rig.call(small, { path, headers });
      expect(answer.status).toBe(200);
      expect(limitsOf(answer.headers)).toEqual({
        status,
        reset: String(reset),
        'representative-claim': claim,
        [`${window}-status`]: status,
        [`${window}-utilization`]: (used / 1000).toFixed(4),
        [`${window}-reset`]: String(reset),
        ...(passed && { [`${window}-surpassed-threshold`]: passed }),
      });
    },
  );

  it('cost no read besides the writes of the call', async () => {
    const rig = await rigOf({ amount: '10', period: 'day' }, 0n);
    let reads = 0;
    const use = rig.counters.use.bind(rig.counters);
    rig.counters.use = (counter) => {
      reads += 1;
      return use(counter);
    };
    expect(limitsOf((await rig.call(small, { path, headers })).headers)['status']).toBe('allowed');
    expect(reads).toBe(0);
  });

  it("do not count the call's own reservation", async () => {
    const rig = await rigOf({ amount: '0.178', period: 'day' }, 0n);
    expect(smallNeed).toBe(178_000_000n);
    const answer = await rig.call(small, { path, headers });
    expect(limitsOf(answer.headers)['5h-utilization']).toBe('0.0000');
  });

  it.each([
    ['a key without a budget', {}, path],
    ['another endpoint', { budget: { amount: '10', period: 'day' } }, '/v1/chat/completions'],
  ])('are missing for %s', async (_what, key, endpoint) => {
    const rig = new BillingRig({ key }).granted(yuan);
    rig.upstream({ steps: [delta('hi'), finish(), usage(7, 2), done] });
    const auth = endpoint === path ? { headers } : {};
    const answer = await rig.call(small, { path: endpoint, ...auth });
    expect([answer.status, limitsOf(answer.headers)]).toEqual([200, {}]);
  });

  it("never repeat the vendor's headers, which describe another account", async () => {
    const rig = new BillingRig().granted(yuan);
    const steps = [delta('hi'), finish(), usage(7, 2), done];
    rig.upstream({
      steps,
      headers: { [`${prefix}status`]: 'rejected', 'content-type': 'text/event-stream' },
    });
    expect(limitsOf((await rig.call(small, { path, headers })).headers)).toEqual({});
  });
});
