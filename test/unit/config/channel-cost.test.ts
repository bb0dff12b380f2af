import { describe, expect, it } from 'vitest';
import { readChannel } from '../../../shared/config/rows/channel-row.ts';
import { channel } from './rows.ts';

const read = (cost: unknown) => readChannel(channel({ cost }), { local: false });

describe('the attribute cost of a channel', () => {
  it.each([
    [{ 'gpt-4o': { input: '0.01', output: 0.02 } }],
    [{ '*': { per_call: 0.05 } }],
    [{ 'gpt-4o': { input: 0, output: 0.02, per_call: 0.1, currency: 'USD', rate: 7.2 } }],
    [{ 'gpt-4o': { input: 0.01, output: 0.02, tiers: [{ above: 9, input: 1, output: 2 }] } }],
  ])('takes prices by model, in any currency that has a rate: %j', (cost) => {
    expect(read(cost)).not.toHaveProperty('problem');
  });

  it.each([
    [{ a: { input: 1 } }, 'cost.a: found a map, wanted prices of both input and output, or per_call alone'],
    [{ a: {} }, 'wanted prices of both input and output'],
    [{ a: { per_call: 1, cached_input: 1 } }, 'wanted prices of both input and output'],
    [
      { a: { input: 1, output: -2 } },
      'cost.a.output: found -2, wanted a number of 0 or more, with a point for decimals, such as 0.018',
    ],
    [{ a: { input: 1, output: 2, currency: 'USD' } }, 'cost.a.rate: found nothing, wanted yuan for one unit'],
    [
      { a: { input: 1, output: 2, rate: 7 } },
      'cost.a.rate: found 7, wanted yuan for one unit of the currency, and',
    ],
    [{ a: { input: 1, output: 2, currency: '$', rate: 7 } }, 'cost.a.currency: found "$", wanted the code'],
    [
      { a: { input: 1, output: 2, currency: 'USD', rate: 0 } },
      'cost.a.rate: found 0, wanted a number of more',
    ],
    [{ a: { input: 1, output: 2, per_million: 1 } }, 'cost.a.per_million: found, but not known here'],
    [{ ' a': { input: 1, output: 2 } }, "wanted the upstream's name of a model, or *"],
    [0.5, "cost: found 0.5, wanted a map of the upstream's model name, or *, to its prices"],
    [
      {
        a: {
          input: 1,
          output: 2,
          tiers: [
            { above: 5, input: 1, output: 1 },
            { above: 5, input: 1, output: 1 },
          ],
        },
      },
      'wanted tiers in the order of above',
    ],
  ])('refuses %j', (cost, problem) => {
    expect(read(cost)).toMatchObject({ problem: expect.stringContaining(problem) as string });
  });

  it('is doubted where it names no model of the row at the upstream', () => {
    const mapper = { 'gpt-4o': 'gpt-4o-2024' };
    const cost = { 'gpt-4o': { per_call: 1 }, 'gpt-4o-2024': { per_call: 1 }, '*': { per_call: 1 } };
    expect(readChannel(channel({ mapper, cost }), { local: false })).toMatchObject({
      warning: "cost: has gpt-4o, which is no model's name at the upstream",
    });
  });
});
