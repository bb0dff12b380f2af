import { describe, expect, it } from 'vitest';
import { BillingRig, byTokens, yuan } from '../../../support/billing-rig.ts';
import { data, delta, done, finish, hello, usage } from '../../../support/core-rig.ts';

const milli = 1_000_000n;
/** The rig's day is 21 November 2026. */
const tomorrow = { ...byTokens, id: 9, from: '2026-11-22', input: 10, output: 20 };

describe('a price with a date', () => {
  it('does not apply to a call that began before it', async () => {
    const rig = new BillingRig({ charges: [byTokens, tomorrow] }).granted(100n * yuan);
    await rig.clock.run(rig.clock.sleep(Date.parse('2026-11-22') - rig.clock.now() - 1_000));
    rig.upstream({ steps: [delta('a'), 5_000, finish(), usage(6, 5), done] });
    await rig.call();
    expect(rig.clock.now()).toBeGreaterThan(Date.parse('2026-11-22'));
    expect(rig.item?.spent).toBe(16n * milli);
  });
});

describe('the operator’s cost of a call', () => {
  const costs = { cost: { '*': { input: 0.5, output: 1 } } };
  it('is in its close record, unless the row has no cost or there is no answer', async () => {
    const boughtOn = async (row: object, script: object): Promise<bigint | undefined> => {
      const rig = new BillingRig({ channels: [row] as Record<string, unknown>[] }).granted(yuan);
      await rig.upstream(script).call();
      return rig.item?.last?.bought;
    };
    expect(await boughtOn(costs, { steps: [delta('a'), finish(), usage(6, 5), done] })).toBe(8n * milli);
    expect(await boughtOn({}, { steps: hello })).toBeUndefined();
    expect(await boughtOn(costs, { status: 500 })).toBeUndefined();
  });
});

describe('a price with a cache and tiers', () => {
  const cached = { ...byTokens, cached_input: 0.1 };
  const tiered = { ...cached, tiers: [{ above: 6, input: 3, output: 4 }] };
  const used = data({
    choices: [],
    usage: { prompt_tokens: 7, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 6 } },
  });

  it('charges only the tier that the total input reaches', async () => {
    const rig = new BillingRig({ charges: [tiered] }).granted(yuan);
    rig.upstream(
      { steps: [delta('a'), finish(), used, done] },
      { steps: [delta('a'), finish(), usage(6, 5), done] },
    );
    await rig.call();
    expect(rig.item?.spent).toBe(41n * milli);
    await rig.call();
    expect(rig.item?.spent).toBe(57n * milli);
  });
});
