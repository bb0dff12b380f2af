import { describe, expect, it } from 'vitest';
import { channel, compile } from './rows.ts';

const now = Date.parse('2026-11-22T12:00:00Z');
const charge = (changes: Record<string, unknown> = {}) => ({
  id: 1,
  type: 'token-billing',
  models: ['gpt-4o', 'mini'],
  input: 0.01,
  output: 0.02,
  ...changes,
});
const channels = [channel({ models: ['gpt-4o', 'mini'] })];
const rowsOf = (charges: unknown[]) => ({ channels, charges, plans: [], settings: [] });

/** The warnings of the rules after an edit, `atMs` the time of the compile. */
function marked(before: unknown[], after: unknown[], atMs = now): (string | undefined)[] {
  const earlier = rowsOf(before);
  const { results } = compile(rowsOf(after), { earlier, publishedAt: atMs / 1000 });
  return results.filter(({ table }) => table === 'charges').map(({ warning }) => warning);
}

const at = 'models: at 2026-11-22T12:00:00Z the price of';

describe('a rule that changes a price', () => {
  it('by more than 30 % is marked with what changes most, up or down', () => {
    expect(marked([charge()], [charge({ input: 0.013, output: 0.026 })])).toEqual([undefined]);
    expect(marked([charge()], [charge({ input: 0.0131, output: 0.03 })])).toEqual([
      `${at} gpt-4o, mini rises by 50 %: output 20 to 30 yuan per million tokens`,
    ]);
    expect(marked([charge()], [charge({ input: 0.001 })])).toEqual([
      `${at} gpt-4o, mini falls by 90 %: input 10 to 1 yuan per million tokens`,
    ]);
    expect(marked([charge()], [charge({ cached_input: 0.001 })])).toEqual([
      `${at} gpt-4o, mini falls by 90 %: cached_input 10 to 1 yuan per million tokens`,
    ]);
    const tiers = [{ above: 1000, input: 0.02, output: 0.03 }];
    expect(marked([charge()], [charge({ tiers })])).toEqual([
      `${at} gpt-4o, mini rises by 100 %: input above 1000 10 to 20 yuan per million tokens`,
    ]);
  });

  it('to nothing, from nothing or to another kind says so', () => {
    expect(marked([charge()], [charge({ type: 'non-billing', input: 0, output: 0 })])).toEqual([
      `${at} gpt-4o, mini becomes nothing: calls are free`,
    ]);
    expect(marked([{ ...charge(), type: 'non-billing', input: 0, output: 0 }], [charge()])).toEqual([
      `${at} gpt-4o, mini begins: calls were free`,
    ]);
    expect(marked([charge()], [charge({ type: 'times-billing', input: 0 })])).toEqual([
      `${at} gpt-4o, mini changes from token-billing to times-billing`,
    ]);
  });

  it('is the one that prices the model from then on, whichever row that is', () => {
    const dated = charge({ id: 2, models: ['mini'], from: '2026-12-01T00:00:00Z', input: 0.04 });
    expect(marked([charge()], [charge(), dated])).toEqual([
      undefined,
      'models: at 2026-12-01T00:00:00Z the price of mini rises by 300 %: input 10 to 40 yuan per million tokens',
    ]);
    const late = charge({ id: 3, from: '2027-01-01T00:00:00Z', models: ['mini'], input: 0.04 });
    expect(marked([charge(), dated], [charge(), dated, late])).toEqual([undefined, undefined, undefined]);
  });

  it('is not one of a model that had no price, nor of the first configuration', () => {
    expect(
      marked(
        [charge({ models: ['gpt-4o'] })],
        [charge({ models: ['gpt-4o'] }), charge({ id: 2, models: ['mini'] })],
      ),
    ).toEqual([undefined, undefined]);
    expect(marked([], [charge()])).toEqual([undefined]);
  });

  it('at a time that was over says that it began at once, and only where it takes the place of another', () => {
    const over = charge({ id: 2, from: '2025-12-01T00:00:00Z', input: 0.011 });
    const said =
      'from: at 2026-11-22T12:00:00Z this time (2025-12-01T00:00:00Z) was over, so the price began at once';
    expect(marked([charge()], [charge(), over])[1]).toBe(said);
    const justNow = { ...over, from: '2026-11-22T11:59:00Z' };
    expect(marked([charge()], [charge(), justNow])[1]).toBeUndefined();
    expect(marked([charge(), over], [charge(), { ...over, output: 0.021 }])[1]).toBeUndefined();
    expect(marked([], [over])[0]).toBeUndefined();
    expect(marked([charge(), over], [charge(), { ...over, _warning: said }], now + 3_600_000)[1]).toBe(said);
  });

  it('keeps its mark until a day after the price begins, unless it is changed again', () => {
    const edited = charge({ output: 0.14 });
    const [mark = ''] = marked([charge()], [edited]);
    const row = { ...edited, _warning: mark };
    expect(marked([edited], [row], now + 23 * 3_600_000)).toEqual([mark]);
    expect(marked([edited], [row], now + 24 * 3_600_000)).toEqual([undefined]);
    expect(marked([edited], [{ ...row, output: 0.149 }], now + 1000)).toEqual([undefined]);
    const [other] = marked([edited], [{ ...row, output: 0.02 }], now + 1000);
    expect(other).toContain('falls by 85 %');
  });

  it('keeps no other text that somebody wrote into the mark', () => {
    expect(marked([charge()], [{ ...charge(), _warning: 'models: at noon it was cheaper; mine' }])).toEqual([
      undefined,
    ]);
    expect(marked([charge()], [{ ...charge(), _warning: 7 }])).toEqual([undefined]);
  });
});
