/** What a call to an alias holds and costs. The amounts are by hand, from docs/billing.md. */
import { describe, expect, it } from 'vitest';
import { aliasRig, best, charges, helloCosts, yuan } from '../../../support/alias-rig.ts';
import { hello, type UpstreamScript } from '../../../support/core-rig.ts';

const ask = { model: 'best', messages: [{ role: 'user', content: 'hi' }], max_tokens: 78 };
const good: UpstreamScript = { steps: hello };
const down: UpstreamScript = { status: 500 };
const errorOf = ({ text }: { text: string }) => JSON.parse(text).error;

/** 22 tokens of input at most, 78 of output: 22 x 0.01 + 78 x 0.02 yuan. */
const largeNeed = 1_780_000_000n;

describe('the reserve of a call to an alias', () => {
  it('is the most over its models', async () => {
    const short = aliasRig()
      .upstream(good)
      .granted(largeNeed - 1n);
    expect(errorOf(await short.call(ask)).code).toBe('insufficient_quota');
    expect(short.sent).toEqual([]);
    const enough = aliasRig().upstream(good).granted(largeNeed);
    const answer = await enough.call(ask);
    expect(answer.headers['x-relay-limited-by']).toBeUndefined();
    expect(enough.sent[0]?.json['max_tokens']).toBe(78);
  });

  it('refuses a call that its free model alone could serve', async () => {
    const rig = aliasRig({ aliases: best('gift', 'large') });
    expect(errorOf(await rig.call(ask)).code).toBe('insufficient_quota');
  });

  it('sends each model the limit that is held for it', async () => {
    const limited = charges.map((row) =>
      row.id === 2 ? Object.assign(structuredClone(row), { max_output_tokens: 50 }) : row,
    );
    const rig = aliasRig({ charges: limited })
      .upstream(down, good)
      .granted(100n * yuan);
    await rig.call(ask);
    expect(rig.sent.map(({ json }) => json['max_tokens'])).toEqual([78, 50]);
  });

  it('lowers the limit to what the balance covers of the dearest one, for that one and the others', async () => {
    const rig = aliasRig().upstream(down, good).granted(1_000_000_000n);
    const answer = await rig.call({ ...ask, max_tokens: 4_000 });
    expect(answer.status).toBe(429);
    const more = aliasRig()
      .upstream(down, good)
      .granted(40n * yuan);
    const lowered = await more.call({ ...ask, max_tokens: 4_000 });
    expect(lowered.headers['x-relay-limited-by']).toBe('balance');
    // Half of 40 yuan is below the 20.7 that 1,024 tokens of `large` come to: 1,024 are held.
    expect(more.sent.map(({ json }) => json['max_tokens'])).toEqual([1_024, 1_024]);
  });
});

describe('the charge of a call to an alias', () => {
  it.each([
    ['the first', [good], helloCosts.small],
    ['the second', [down, good], helloCosts.large],
  ])('is by the price of the model that answered: %s', async (_which, scripts, charge) => {
    const rig = aliasRig()
      .upstream(...scripts)
      .granted(10n * yuan);
    await rig.call(ask);
    expect(rig.item).toMatchObject({ spent: charge, available: 10n * yuan - charge });
    expect(rig.item?.last).toMatchObject({ alias: 'best', charge });
  });

  it('is nothing if every model failed, and the row names the one that was tried last', async () => {
    const rig = aliasRig()
      .upstream(down)
      .granted(10n * yuan);
    await rig.call(ask);
    expect(rig.item).toMatchObject({ spent: 0n, available: 10n * yuan });
    expect(rig.item?.last).toMatchObject({ kind: 'released', model: 'large' });
  });
});

describe('a plan, and a call to an alias', () => {
  const covers = (...models: string[]) => [{ id: 'chat', value: 5, models }];
  const counted = (rig: ReturnType<typeof aliasRig>): number[] => [...(rig.item?.plan.values() ?? [])];

  it.each([
    ['names every model', covers('small', 'large')],
    ['names the alias', covers('best')],
  ])('an entry that %s covers it, whichever answers', async (_case, plan) => {
    const rig = aliasRig({ plan }).upstream(down, good);
    expect((await rig.call(ask)).status).toBe(200);
    expect(counted(rig)).toEqual([1]);
    expect(rig.item?.spent).toBe(0n);
  });
});
