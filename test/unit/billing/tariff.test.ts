import { describe, expect, it } from 'vitest';
import {
  entryAttribute,
  quotaAttributes,
  quotaOf,
} from '../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { emptyQuota, type OpenEntry } from '../../../shared/billing/quota-item.ts';
import { formatPrice, type PriceRule } from '../../../shared/billing/price.ts';
import {
  agreedPriceTexts,
  buildTariff,
  formatTariff,
  keptTariff,
  limitsFrom,
  NotInTariff,
  parseTariff,
  priceFrom,
  storedTariff,
  tariffIn,
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
const free: PriceRule = { ...plain, id: 3, type: 'non-billing', models: ['free'] };

describe('the text of a tariff', () => {
  it.each<[string, Tariff, string]>([
    ['one model without tiers and factors, as its price', tariffOf([plain], 'm'), '1:tokens:0.018:0.072'],
    ['tiers and factors', tariffOf([rich], 'm'), rich1],
    ['no rule', tariffOf([], 'm'), '-:free'],
    [
      'an alias',
      tariffOf([rich, byCall, free], 'm', 'b/2:x@y', 'free', 'none'),
      `m|${rich1} b/2:x@y|2:call:0.5 free|3:free none|-:free`,
    ],
    ['a search', { ...tariffOf([plain], 'm'), search: 30_000_000_000n }, '1:tokens:0.018:0.072 +0.03'],
  ])('says all of it, and is read back: %s', (_case, tariff, text) => {
    expect(formatTariff(tariff)).toBe(text);
    const read = parseTariff(text, 'm');
    expect(read && formatTariff(read)).toBe(text);
    expect(tariffIn(JSON.parse(JSON.stringify(storedTariff(tariff))))).toEqual(tariff);
  });

  it.each(['', 'm|', '1:tokens', '1:call:0.5;flex:x2', '1:tokens:1:2;flex:x', '1:tokens:1:2;nothing', '~'])(
    'of another form is none: %s',
    (text) => expect(parseTariff(text, 'm')).toBeUndefined(),
  );

  it('is not kept with a reservation when it is too long', () => {
    const models = Array.from({ length: 8 }, (_, i) => `vendor/a-model-of-a-long-name-${i}`);
    expect(keptTariff(tariffOf([{ ...rich, models }], ...models))).toBe('~');
    expect(keptTariff(tariffOf([{ ...rich, models }], ...models.slice(1, 6)))).not.toBe('~');
  });
});

describe('a tariff', () => {
  it('covers its models alone', () => {
    const tariff = tariffOf([plain], 'm');
    expect(priceFrom(tariff, 'm')).toMatchObject({ rule: 1 });
    expect(() => priceFrom(tariff, 'other')).toThrow(NotInTariff);
    expect(() => limitsFrom(tariff, 'other')).toThrow(NotInTariff);
  });

  it('permits each tier in each service tier, and nothing else', () => {
    const texts = agreedPriceTexts(tariffOf([rich], 'm'), 'm');
    expect(texts).toHaveLength(6);
    expect(texts).toContain('1:tokens:0.036:0.108:0.0018:0.0225:0.036:above=128000:x0.5');
    expect(agreedPriceTexts(tariffOf([rich], 'm'), 'other')).toEqual([]);
  });
});

describe('an open reservation', () => {
  const price = formatPrice(priceFrom(tariffOf([plain], 'm'), 'm'));
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
    const item = quotaAttributes({ ...emptyQuota('acme'), open: new Map([['id', of]]) });
    return quotaOf(item).open.get('id');
  };

  it('keeps its tariff, in one character where that is its price', () => {
    expect(entryAttribute(entry).L?.at(-1)).toEqual({ S: '=' });
    expect(readBack(entry)).toEqual(entry);
    const more = { ...entry, tariff: rich1, budget: 'month 2026-11' };
    expect(readBack(more)).toEqual(more);
  });

  it('of the previous version has none', () => {
    const { L: list = [] } = entryAttribute({ ...entry, tariff: undefined });
    const item = { ...quotaAttributes(emptyQuota('acme')), open: { M: { id: { L: list.slice(0, 8) } } } };
    expect(quotaOf(item).open.get('id')).toEqual({ ...entry, tariff: undefined });
  });
});
