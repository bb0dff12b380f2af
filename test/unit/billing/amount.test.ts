import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatYuan, parseDecimal, parseYuan, convertToYuanNumber } from '../../../shared/billing/money.ts';

describe('an amount in yuan', () => {
  it.each<[string | number, bigint]>([
    [1, 1_000_000_000n],
    [0.1, 100_000_000n],
    ['00012', 12_000_000_000n],
    [' 3 ', 3_000_000_000n],
    ['-2.5', -2_500_000_000n],
    ['-0', 0n],
    ['0.0000000010', 1n],
    [1e-9, 1n],
    ['1.5E+2', 150_000_000_000n],
    ['25e-1', 2_500_000_000n],
    [1e21, 10n ** 30n],
    ['123456789012345678.123456789', 123_456_789_012_345_678_123_456_789n],
    ['1000000000000000000000e-21', 1_000_000_000n],
  ])('%j is an exact number of nano-yuan', (text, amount) => {
    expect(parseYuan(text)).toBe(amount);
  });

  const texts = ['', ' ', '-', '.5', '5.', '1,5', '1_000', '0x10', '¥1', '1e', '1e1000', '--1', '+1'];
  it.each([...texts, Number.NaN, Infinity, '0.0000000001', '1.1234567891', 1e-10])(
    '%j is invalid: digits are neither guessed nor dropped',
    (text) => {
      expect(parseYuan(text)).toBeUndefined();
    },
  );

  it.each<[string | number, number, bigint, bigint | undefined]>([
    ['0.4', 0, 0n, undefined],
    ['0.5', 0, 1n, undefined],
    ['2.5', 0, 3n, undefined],
    ['1.0', 0, 1n, 1n],
    ['0.00000000000049999', 12, 0n, undefined],
    [0.1 + 0.2, 12, 300_000_000_000n, undefined],
  ])(
    '%j in units of 10^-%i is rounded half up, and rejected where it must be exact',
    (value, decimals, ...read) => {
      expect([parseDecimal(value, decimals), parseDecimal(value, decimals, true)]).toEqual(read);
    },
  );
});

describe('an amount', () => {
  it.each([
    [0n, '0'],
    [-1n, '-0.000000001'],
    [-1_500_000_000n, '-1.5'],
    [10_000_000_000n, '10'],
  ])('%s nano-yuan is written as the shortest decimal %s', (amount, text) => {
    expect(formatYuan(amount)).toBe(text);
    expect(convertToYuanNumber(amount)).toBe(Number(text));
  });

  it('is read back as written', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 28n), max: 10n ** 28n }), (amount) => {
        expect(parseYuan(formatYuan(amount))).toBe(amount);
      }),
    );
  });
});
