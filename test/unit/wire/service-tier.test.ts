import { expect, it } from 'vitest';
import { resolveTier, tierFactor, type ServiceTiers } from '../../../shared/wire/service-tier.ts';

const priced: ServiceTiers = { flex: 0.5, priority: 2, ultrafast: 6 };

it.each<[string, string | undefined, string | undefined, string | undefined]>([
  ['the one that is reported', 'priority', 'priority', 'priority'],
  ['the cheaper one that is reported', 'priority', 'flex', 'flex'],
  ['the standard tier if the vendor had no capacity', 'flex', 'default', 'default'],
  ['the standard one by its name of another vendor', 'priority', 'standard', 'default'],
  ['the requested tier if none is reported', 'flex', undefined, 'flex'],
  ['OpenAI’s fast mode by its older name', 'fast', 'priority', 'priority'],
  ['OpenAI’s fast mode by its newer name', 'priority', 'fast', 'fast'],
  ['no dearer one than was sent', 'priority', 'ultrafast', 'priority'],
  ['no dearer one than the standard, after a cheaper one was sent', 'flex', 'priority', 'default'],
  ['not a dearer tier that was not requested', undefined, 'priority', 'default'],
  ['a cheaper tier that was not requested', undefined, 'flex', 'flex'],
  ['one without a price under its name, at the standard price', 'priority', 'scale', 'scale'],
  ['undefined if nobody names one', undefined, undefined, undefined],
  ['the standard tier if it was requested', 'default', undefined, 'default'],
])('the tier of a call is %s', (_case, sent, reported, tier) => {
  expect(resolveTier(priced, sent, reported)).toBe(tier);
});

it('a tier uses the factor of its own name before that of its other name, and unlisted names have none', () => {
  const both = { fast: 3, priority: 2 };
  expect(['fast', 'priority'].map((name) => tierFactor(both, name))).toEqual([3, 2]);
  expect(['fast', 'priority'].map((name) => tierFactor({ fast: 3 }, name))).toEqual([3, 3]);
  for (const name of ['constructor', '__proto__', 'toString', 'Flex', '', undefined])
    expect([name, tierFactor(priced, name)]).toEqual([name, undefined]);
});
