/** Upstreams that report wrong counts: the charge stays near the truth, and the row names the reason. */
import { describe, expect, it } from 'vitest';
import { lies } from '../../../support/lying-vendor.ts';
import { byTokens, BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { type Step, data, delta, done, finish } from '../../../support/core-rig.ts';
import { vendorModels, VendorRig, type VendorModel } from '../../../support/vendor-rig.ts';

/** Words that every tokenizer and estimate count alike, so that only the lie matters. */
const words = 'the cat sat on the mat and the dog ran to the red box so '.repeat(12);
const outputTokensMax = 420;

/** Runs a call at the double, with or without a lie, and returns the charged counts. */
async function charged(model: VendorModel, stream: boolean, { lie = 'none', text = words } = {}) {
  const rig = new VendorRig([model], { charges: [byTokens] });
  rig.core.quotas.grant('acme', 100n * yuan);
  const content = lie === 'none' ? text : `lie=${lie} ${text}`;
  const body = { model: 'm', max_tokens: outputTokensMax, stream, messages: [{ role: 'user', content }] };
  const answer = await rig.core.post(body);
  expect([answer.status, rig.objections]).toEqual([200, []]);
  const { last, spent = 0n } = rig.core.quotas.items.get('acme') ?? {};
  return { last, spent: Number(spent), logged: rig.core.logged[0] };
}

const within = (share: number): boolean => share >= 0.7 && share <= 1.3;

/** One model for each place and form of counts, and for each framing. */
const shapes = new Set([
  'gpt-5.6',
  'gpt-4.1',
  'gemini-3-pro-preview',
  'kimi-k2.6',
  'claude-opus-5-5',
  'us.anthropic.claude-opus-5-5-v1:0',
]);

const named = vendorModels.map((model) => [model.model, model] as const);

describe.each(named)('%s', (_name, model) => {
  it.each([true, false])('is believed if it is honest (stream: %s)', async (stream) => {
    expect((await charged(model, stream)).last).toMatchObject({ estimated: false, flag: undefined });
  });
});

describe.each(named.filter(([name]) => shapes.has(name)))('%s', (_name, model) => {
  it('never bills far from the truth for lying counts, and each lie is flagged', async () => {
    const honest = await charged(model, true);
    const wrong: unknown[] = [];
    for (const [lie, { plausible = false }] of Object.entries(lies)) {
      const { last, spent, logged } = await charged(model, true, { lie });
      const isNamed = last?.flag !== undefined && logged?.usage_implausible === true;
      if (!within(spent / honest.spent) || isNamed === plausible)
        wrong.push({ lie, share: spent / honest.spent, flag: last?.flag });
    }
    expect(wrong).toEqual([]);
    expect(Object.keys(lies).length).toBeGreaterThan(40);
  });
});

describe('an honest count', () => {
  const long = 'It weighs every word of what was asked, twice. '.repeat(20);
  const rigOf = (steps: Step[], channel: Record<string, unknown> = {}): BillingRig =>
    new BillingRig({ channels: [channel] }).upstream({ steps }).granted(yuan);
  const booked = (rig: BillingRig): unknown => {
    const { last } = rig.item ?? {};
    return [last?.prompt_tokens, last?.completion_tokens, last?.flag];
  };
  const usage = (completion_tokens: number, more: object = {}): Step =>
    data({ choices: [], usage: { prompt_tokens: 7, completion_tokens, ...more } });

  it.each(['<think>', '<think>One.</think> Two. <think>'])(
    'is believed for earlier turns that begin with %s, which templates leave out',
    async (begin) => {
      const rig = rigOf([delta('ok'), finish(), usage(2), done]);
      const turns = [{ role: 'assistant', content: `${begin}${long}</think>4` }, ...small.messages];
      await rig.call({ ...small, messages: [...small.messages, ...turns] });
      expect(booked(rig)).toEqual([7, 2, undefined]);
    },
  );
});

describe('cache counts', () => {
  const flagOf = async (usage: object): Promise<unknown> => {
    const steps: Step[] = [delta('a'), finish(), data({ choices: [], usage }), done];
    const rig = new BillingRig().upstream({ steps }).granted(yuan);
    await rig.call(small);
    return [rig.item?.last?.flag, rig.item?.last?.cached_tokens];
  };
  const honest = { prompt_tokens: 7, completion_tokens: 2 };

  it.each([8, 1e12, -1])('that are impossible are ignored: %d of an input of 7', async (cached) => {
    const usage = { ...honest, prompt_tokens_details: { cached_tokens: cached } };
    expect(await flagOf(usage)).toEqual(['input:cache', undefined]);
  });
});
