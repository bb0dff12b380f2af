import { describe, expect, it } from 'vitest';
import {
  encodeEntry,
  encodeQuota,
  decodeQuota,
} from '../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { createQuotaItem, type OpenEntry } from '../../../shared/billing/quota-item.ts';
import { explainChargeAboveReserve, findRowProblem } from '../../../shared/billing/audit/recompute.ts';
import { findCloseRow, type CloseRow } from '../../../shared/billing/ledger-row.ts';
import { formatPrice, type PriceRule, type PriceTerms } from '../../../shared/billing/price.ts';
import {
  listPriceTexts,
  buildTariff,
  formatTariff,
  formatTariffForRow,
  findModelLimits,
  NotInTariff,
  parseTariff,
  findAgreedPrice,
  serializeTariff,
  deserializeTariff,
  type Tariff,
} from '../../../shared/billing/tariff.ts';

const plain: PriceRule = {
  id: 1,
  type: 'token-billing',
  models: ['m'],
  input: 0.018,
  output: 0.072,
  anonymous: false,
};
const cache = { cached_input: 0.0018, cache_write: 0.0225, cache_write_1h: 0.036 };
const long = { above: 128_000, input: 0.036, output: 0.108, ...cache };
const rich: PriceRule = { ...plain, ...cache, tiers: [long], service_tiers: { flex: 0.5, priority: 2 } };
const rich1 =
  '1:tokens:0.018:0.072:0.0018:0.0225:0.036;0.036:0.108:0.0018:0.0225:0.036:above=128000;flex:x0.5;priority:x2';

const tariffOf = (rules: readonly PriceRule[], ...models: string[]): Tariff =>
  buildTariff({ models, rulesOf: () => rules, defaultOutputTokens: 16_384, nowMs: 0 });

const byCall: PriceRule = { ...plain, id: 2, type: 'times-billing', models: ['b/2:x@y'], output: 0.5 };
const allDay = { name: 'peak', from: '00:00', to: '24:00', zone: 'UTC' };
const free: PriceRule = { ...plain, id: 3, type: 'non-billing', models: ['free'] };

describe('the limits of a tariff', () => {
  const own = { input: 0.01, output: 0.04 };
  it.each<[string, PriceRule, PriceTerms[], boolean]>([
    ['the rule', rich, [], false],
    ['the rule, with a factor', { ...rich, windows: [{ ...allDay, factor: 2 }] }, [{ factor: 0.5 }], false],
    ['the customer', rich, [own], true],
    ['the customer, by tokens instead of a price per call', byCall, [own], true],
    ['the customer, with a price for the hour', plain, [{ ...own, cache_write_1h: 0.02 }], false],
    ['the customer, per call', plain, [{ type: 'times-billing', output: 1 }], false],
    ['the window', { ...rich, windows: [{ ...allDay, ...own }] }, [], true],
  ])(
    'report when hour-long cache writes have no price: by the price of %s',
    (_whose, rule, terms, unpricedHour) => {
      const [model = ''] = rule.models;
      const tariff = buildTariff({
        models: [model],
        rulesOf: () => [rule],
        termsOf: () => terms,
        defaultOutputTokens: 16_384,
        nowMs: 0,
      });
      expect(findModelLimits(tariff, model)).toMatchObject({ unpricedHour });
    },
  );
});

describe('the text of a tariff', () => {
  it.each<[string, Tariff, string]>([
    ['one model without tiers and factors, as its price', tariffOf([plain], 'm'), '1:tokens:0.018:0.072'],
    ['tiers and factors', tariffOf([rich], 'm'), rich1],
    [
      'windows that are open',
      tariffOf(
        [
          { ...rich, windows: [{ ...allDay, factor: 2 }] },
          { ...byCall, windows: [{ ...allDay, output: 1 }] },
        ],
        'm',
        'b/2:x@y',
      ),
      `m|${rich1.replace(';', ':window=peak:x2;')} b/2:x@y|2:call:1:window=peak`,
    ],
    ['no rule', tariffOf([], 'm'), '-:free'],
    [
      'an alias',
      tariffOf([rich, byCall, free], 'm', 'b/2:x@y', 'free', 'none'),
      `m|${rich1} b/2:x@y|2:call:0.5 free|3:free none|-:free`,
    ],
    ['a search', { ...tariffOf([plain], 'm'), search: 30_000_000n }, '1:tokens:0.018:0.072 +0.03'],
  ])('contains the whole tariff, and is read back: %s', (_case, tariff, text) => {
    expect(formatTariff(tariff)).toBe(text);
    const read = parseTariff(text, 'm');
    expect(read && formatTariff(read)).toBe(text);
    expect(deserializeTariff(JSON.parse(JSON.stringify(serializeTariff(tariff))))).toEqual(tariff);
  });

  it.each(['', 'm|', '1:tokens', '1:call:0.5;flex:x2', '1:tokens:1:2;flex:x', '1:tokens:1:2;nothing', '~'])(
    'is rejected in another form: %s',
    (text) => expect(parseTariff(text, 'm')).toBeUndefined(),
  );

  it('is not stored with a reservation when it is too long', () => {
    const models = Array.from({ length: 8 }, (_, i) => `vendor/a-model-of-a-long-name-${i}`);
    expect(formatTariffForRow(tariffOf([{ ...rich, models }], ...models))).toBe('~');
    expect(formatTariffForRow(tariffOf([{ ...rich, models }], ...models.slice(1, 6)))).not.toBe('~');
  });
});

describe('a tariff', () => {
  it('covers only its own models', () => {
    const tariff = tariffOf([plain], 'm');
    expect(findAgreedPrice(tariff, 'm')).toMatchObject({ rule: 1 });
    expect(() => findAgreedPrice(tariff, 'other')).toThrow(NotInTariff);
    expect(() => findModelLimits(tariff, 'other')).toThrow(NotInTariff);
  });

  it('permits only the price of the window that was open', () => {
    const texts = listPriceTexts(tariffOf([{ ...plain, windows: [{ ...allDay, factor: 2 }] }], 'm'), 'm');
    expect(texts).toEqual(['1:tokens:0.018:0.072:window=peak:x2']);
  });

  it('permits each tier in each service tier, and nothing else', () => {
    const texts = listPriceTexts(tariffOf([rich], 'm'), 'm');
    expect(texts).toHaveLength(6);
    expect(texts).toContain('1:tokens:0.036:0.108:0.0018:0.0225:0.036:above=128000:x0.5');
    expect(listPriceTexts(tariffOf([rich], 'm'), 'other')).toEqual([]);
  });
});

describe('an open reservation', () => {
  const price = formatPrice(findAgreedPrice(tariffOf([plain], 'm'), 'm'));
  const entry: OpenEntry = {
    until: 1,
    amount: 5n,
    input: 1n,
    key: 'key',
    model: 'm',
    price,
    tariff: price,
    slot: '',
    budget: undefined,
    official: false,
    tombstone: false,
  };
  const readBack = (of: OpenEntry) => {
    const item = encodeQuota({ ...createQuotaItem('acme'), open: new Map([['id', of]]) });
    return decodeQuota(item).open.get('id');
  };

  it('keeps its tariff, in one character if its price is in it', () => {
    expect(encodeEntry(entry).L?.at(-1)).toEqual({ S: '=' });
    expect(readBack(entry)).toEqual(entry);
    const more = { ...entry, tariff: rich1, budget: 'month 2026-11' };
    expect(readBack(more)).toEqual(more);
    for (const tariff of [price, undefined]) {
      const searching = { ...entry, tariff, searchPrice: 80_000_000n };
      expect(readBack(searching)).toEqual(searching);
    }
  });

  it('of the previous version has no tariff', () => {
    const { L: list = [] } = encodeEntry({ ...entry, tariff: undefined });
    const item = {
      ...encodeQuota(createQuotaItem('acme')),
      open: { M: { id: { L: list.slice(0, 8) } } },
    };
    expect(decodeQuota(item).open.get('id')).toEqual({ ...entry, tariff: undefined });
  });
});

describe('the ledger row of a call', () => {
  const rowOf = (more: Partial<CloseRow> = {}): CloseRow => ({
    account: 'acme',
    id: 'call',
    at: '2026-11-29T00:00:00Z',
    kind: 'settled',
    model: 'm',
    key: 'key',
    price: '1:tokens:0.018:0.072',
    prompt_tokens: 1_000,
    completion_tokens: 100,
    charge: 25_200_000n,
    reserved: 30_000_000n,
    ...more,
  });
  const plainText = '1:tokens:0.018:0.072';
  const searched: Partial<CloseRow> = { tariff: `${plainText} +0.00008`, search_price: 80_000n };
  const dear = { price: '1:tokens:0.18:0.072', charge: 187_200_000n };

  it.each<[string, Partial<CloseRow>, boolean]>([
    ['without a tariff: only its price was agreed, or it is unknown', dear, true],
    ['with a tariff that is too long', { ...dear, tariff: '~' }, true],
    ['by its tariff', { tariff: rich1, price: '1:tokens:0.018:0.072:0.0018:0.0225:0.036' }, true],
    ['by another price of its rule', { ...dear, tariff: '1:tokens:0.018:0.072' }, false],
    [
      'by the factor of a tier that was not agreed',
      { tariff: '1:tokens:0.018:0.072', price: '1:tokens:0.018:0.072:x0.5', charge: 12_600_000n },
      false,
    ],
    [
      'by the price of another model',
      { ...dear, tariff: 'm|1:tokens:0.018:0.072 n|1:tokens:0.18:0.072' },
      false,
    ],
    [
      'by the price of the model that answered',
      { ...dear, model: 'n', tariff: 'm|1:tokens:0.018:0.072 n|1:tokens:0.18:0.072' },
      true,
    ],
    [
      'by a model that its tariff does not cover',
      { ...dear, model: 'o', tariff: 'm|1:tokens:0.18:0.072 n|2:free' },
      false,
    ],
    ['by a tariff that cannot be read', { tariff: 'nonsense' }, false],
    ['for nothing', { ...dear, kind: 'released', charge: 0n, tariff: '1:tokens:0.018:0.072' }, true],
    ['with its search', { ...searched, charge: 25_280_000n }, true],
    ['with a search that its charge does not have', searched, false],
    ['with a search at another price', { ...searched, tariff: plainText, charge: 25_280_000n }, false],
    ['its search only', { ...searched, kind: 'released', charge: 80_000n }, true],
    ['nothing for its search', { ...searched, kind: 'released', charge: 0n }, false],
    ['its search beside a plan', { ...searched, plan_slot: 'a@2026-11-01', charge: 80_000n }, true],
    ['its search and its input after a crash', { ...searched, kind: 'expired', charge: 18_080_000n }, true],
    ['nothing in official mode', { ...searched, official: true, charge: 0n, cost: 25_280_000n }, true],
  ])('is charged %s', (_case, more, isRight) => {
    expect(findRowProblem(rowOf(more)) === undefined).toBe(isRight);
  });

  it.each<[string, Partial<CloseRow>, string | undefined]>([
    ['no more than it reserved', { reserved: 25_200_000n }, undefined],
    ['of a metered account', { reserved: 0n, metered: true }, undefined],
    [
      'more output',
      { reserved: 19_440_000n },
      'the upstream reported 100 output tokens, of which the reservation covered 20',
    ],
    [
      'more input',
      { reserved: 9_000_000n },
      'the upstream reported 1000 input tokens, of which the reservation covered 500',
    ],
    [
      'an estimate',
      { reserved: 19_440_000n, flag: 'output:high' },
      'the relay estimated (output:high) 100 output tokens',
    ],
    ['a late charge', { id: 'late#call', reserved: 0n }, 'it ended after its reservation had expired'],
    [
      'another price',
      { ...dear, tariff: '1:tokens:0.018:0.072' },
      'its price differs from the price of its reservation',
    ],
  ])('that cost more than it reserved gives the reason: %s', (_case, more, cause) => {
    const said = explainChargeAboveReserve(rowOf(more));
    if (cause === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(cause);
  });

  it.each<[string, string | undefined, string | undefined]>([
    ['has the tariff of its reservation', rich1, rich1],
    ['has no text if that is its price', '1:tokens:0.018:0.072', undefined],
    ['has no text from the previous version', undefined, undefined],
  ])('%s', (_case, kept, tariff) => {
    const { account, id, key, model, price } = rowOf();
    const entry = {
      until: 1,
      amount: 5n,
      input: 1n,
      key,
      model,
      price,
      tariff: kept,
      slot: '',
      official: false,
      tombstone: false,
    };
    const last = { id, kind: 'settled' as const, charge: 1n, at: 2 };
    const before = { ...createQuotaItem(account), open: new Map([[id, entry]]) };
    expect(findCloseRow(before, { ...createQuotaItem(account), last })?.tariff).toBe(tariff);
  });
});
