import { describe, expect, it } from 'vitest';
import { channel, compile } from './rows.ts';

interface Typed {
  input: number;
  output: number;
}
const perMillion = 'per 1,000 tokens looks like a price per million tokens';

/** The warnings of one rule for one model, but for those that nobody serves it. */
function doubtsOf(model: string, prices: object, served: object = {}): string[] {
  const rows = {
    channels: [channel({ models: [model], ...served })],
    charges: [{ id: 1, type: 'token-billing', models: [model], ...prices }],
  };
  return compile(rows).results.flatMap(({ warning }) => warning?.split('; ') ?? []);
}

/** Public prices of vendors, per million tokens in the list's currency. */
const dollars: Record<string, Typed> = {
  'gpt-4o-mini': { input: 0.15, output: 0.6 },
  'gpt-4o': { input: 2.5, output: 10 },
  'gpt-4': { input: 30, output: 60 },
  'gpt-4-32k': { input: 60, output: 120 },
  'gpt-4.5-preview': { input: 75, output: 150 },
  'gpt-5': { input: 1.25, output: 10 },
  'gpt-5-nano': { input: 0.05, output: 0.4 },
  'gpt-5-pro': { input: 15, output: 120 },
  o1: { input: 15, output: 60 },
  'o1-mini': { input: 3, output: 12 },
  'o1-pro': { input: 150, output: 600 },
  'o3-pro': { input: 20, output: 80 },
  'claude-opus-4-1': { input: 15, output: 75 },
  'claude-sonnet-4-5': { input: 3, output: 15 },
  'claude-3-5-haiku': { input: 0.8, output: 4 },
  'vendor/x-flash-lite': { input: 0.075, output: 0.3 },
  'x-chat': { input: 0.28, output: 0.42 },
};
const yuans: Record<string, Typed> = {
  'x-turbo': { input: 0.3, output: 0.6 },
  'x-plus': { input: 0.8, output: 2 },
  'x-max': { input: 2.4, output: 9.6 },
  'x-reasoner': { input: 4, output: 16 },
};

describe('a price per million tokens that was typed as one per 1,000', () => {
  it.each(Object.entries({ ...dollars, ...yuans }))('is noticed: %s %j', (model, typed) => {
    expect(doubtsOf(model, typed).join()).toContain(perMillion);
  });

  it('is noticed below 1 yuan, and the message names the model, what was found and what it should be', () => {
    expect(doubtsOf('gpt-4o-mini', { input: 0.15, output: 0.0006 })).toEqual([
      `input: 0.15 yuan ${perMillion} for gpt-4o-mini`,
      'that would be 0.00015 here',
    ]);
  });

  it('is noticed by the name at the upstream, under any public one', () => {
    const served = { mapper: { cheap: 'gpt-4o-mini' } };
    expect(doubtsOf('cheap', dollars['gpt-4o-mini']!, served).join()).toContain(`${perMillion} for cheap`);
  });

  it('is noticed in prices of the cache and in tiers', () => {
    const prices = { input: 0.02, output: 0.1, cached_input: 0.3 };
    expect(doubtsOf('m', prices).join()).toContain(`cached_input: 0.3 yuan ${perMillion}`);
    const tiers = [{ above: 200_000, input: 6, output: 22.5, cached_input: 0.3 }];
    expect(doubtsOf('m', { ...prices, cached_input: 0.002, tiers }).join()).toMatch(
      /tiers\[0\]\.input: 6 yuan .*tiers\[0\]\.output: 22.5 yuan/,
    );
  });
});

describe('a true price', () => {
  const true1000 = ({ input, output }: Typed, yuan: number): Typed => ({
    input: (input * yuan) / 1000,
    output: (output * yuan) / 1000,
  });

  it.each(Object.entries(dollars))(
    'is not doubted, with a markup of a half, either: %s %j',
    (model, price) => {
      expect(doubtsOf(model, true1000(price, 7.2 * 1.5))).toEqual([]);
    },
  );

  it.each(Object.entries(yuans))('in yuan is not doubted: %s %j', (model, price) => {
    expect(doubtsOf(model, true1000(price, 1.5))).toEqual([]);
  });

  it('of calls is never doubted', () => {
    expect(doubtsOf('gpt-4o-mini', { type: 'times-billing', output: 30 })).toEqual([]);
  });
});

describe('what a channel pays', () => {
  const cost = (entry: object) => ({ cost: { '*': entry } });

  it('decides alone where it is known: a hundred times as much is doubted, less is not', () => {
    const paid = cost({ input: 0.3, output: 1.2 });
    const doubted = doubtsOf('small', { input: 0.31, output: 120 }, cost({ input: 0.01, output: 0.02 }));
    expect(doubtsOf('gpt-4o-mini', { input: 0.6, output: 2.4 }, paid).join()).not.toContain(
      'yuan per 1,000 tokens is',
    );
    expect(doubted).toEqual([
      'output: 120 yuan per 1,000 tokens is over 100 times the cost of small and looks like a price per million tokens',
      'that would be 0.12 here',
    ]);
  });

  it('is compared in yuan', () => {
    const paid = cost({ input: 0.000_15, output: 0.000_6, currency: 'USD', rate: 7.2 });
    expect(doubtsOf('m', { input: 0.15, output: 0.05 }, paid)[0]).toContain('over 100 times the cost of m');
    expect(doubtsOf('m', { input: 0.1, output: 0.05 }, paid)).toEqual([]);
  });

  it('is doubted itself, by the rate of its currency', () => {
    const paid = { cost: { m: { input: 0.15, output: 0.6, currency: 'USD', rate: 7.2 } } };
    expect(doubtsOf('m', { input: 0.002, output: 0.008 }, paid)).toEqual([
      `cost.m.input: 0.15 USD ${perMillion}`,
      'that would be 0.00015 here',
      `cost.m.output: 0.6 USD ${perMillion}`,
      'that would be 0.0006 here',
    ]);
  });
});
