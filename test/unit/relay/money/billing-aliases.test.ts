/** Reservations and charges of calls to aliases. The amounts are by hand, from docs/billing.md. */
import { describe, expect, it } from 'vitest';
import { aliasRig, best, charges, helloCosts, yuan } from '../../../support/alias-rig.ts';
import { hello, type UpstreamScript } from '../../../support/core-rig.ts';

const ask = { model: 'best', messages: [{ role: 'user', content: 'hi' }], max_tokens: 78 };
const good: UpstreamScript = { steps: hello };
const down: UpstreamScript = { status: 500 };
const errorOf = ({ text }: { text: string }) => JSON.parse(text).error;

describe('the reservation for a call to an alias', () => {
  it('rejects a call that only the alias’s free model could serve', async () => {
    const rig = aliasRig({ aliases: best('gift', 'large') });
    expect(errorOf(await rig.call(ask)).code).toBe('insufficient_quota');
  });

  it('sends each model its own reserved limit', async () => {
    const limited = charges.map((row) =>
      row.id === 2 ? Object.assign(structuredClone(row), { max_output_tokens: 50 }) : row,
    );
    const rig = aliasRig({ charges: limited })
      .upstream(down, good)
      .granted(100n * yuan);
    await rig.call(ask);
    expect(rig.sent.map(({ json }) => json['max_tokens'])).toEqual([78, 50]);
  });
});

describe('the charge of a call to an alias', () => {
  it.each([
    ['the first', [good], helloCosts.small],
    ['the second', [down, good], helloCosts.large],
  ])('uses the price of the model that answered: %s', async (_which, scripts, charge) => {
    const rig = aliasRig()
      .upstream(...scripts)
      .granted(10n * yuan);
    await rig.call(ask);
    expect(rig.item).toMatchObject({ spent: charge, available: 10n * yuan - charge });
    expect(rig.item?.last).toMatchObject({ alias: 'best', charge });
  });
});

describe('a plan and a call to an alias', () => {
  const covers = (...models: string[]) => [{ id: 'chat', value: 5, models }];
  const counted = (rig: ReturnType<typeof aliasRig>): number[] => [...(rig.item?.plan.values() ?? [])];

  it.each([
    ['names every model', covers('small', 'large')],
    ['names the alias', covers('best')],
  ])('an entry that %s covers the call, whichever model answers', async (_case, plan) => {
    const rig = aliasRig({ plan }).upstream(down, good);
    expect((await rig.call(ask)).status).toBe(200);
    expect(counted(rig)).toEqual([1]);
    expect(rig.item?.spent).toBe(0n);
  });
});
