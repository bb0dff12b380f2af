import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  divideHalfUp,
  formatDecimal,
  formatYuan,
  parseDecimal,
  parseYuan,
  smaller,
  yuanNumber,
} from '../../../shared/billing/price.ts';

describe('yuan as they are written', () => {
  const readable: [string | number, bigint][] = [
    ['0', 0n],
    ['1', 1_000_000_000n],
    [1, 1_000_000_000n],
    ['0.1', 100_000_000n],
    [0.1, 100_000_000n],
    ['1.50', 1_500_000_000n],
    ['00012', 12_000_000_000n],
    [' 3 ', 3_000_000_000n],
    ['-2.5', -2_500_000_000n],
    ['-0', 0n],
    ['0.000000001', 1n],
    ['0.0000000010', 1n],
    [1e-9, 1n],
    ['1e-9', 1n],
    ['1.5E+2', 150_000_000_000n],
    ['25e-1', 2_500_000_000n],
    [1e21, 10n ** 30n],
    ['123456789012345678.123456789', 123_456_789_012_345_678_123_456_789n],
    ['1000000000000000000000e-21', 1_000_000_000n],
  ];
  it.each(readable)('%j is an exact number of nano-yuan', (text, amount) => {
    expect(parseYuan(text)).toBe(amount);
  });

  const unreadable: (string | number)[] = [
    '',
    ' ',
    '-',
    '.5',
    '5.',
    '1,5',
    '1_000',
    '0x10',
    '¥1',
    '1e',
    '1e1000',
    '--1',
    '+1',
    'NaN',
    Number.NaN,
    Infinity,
    '0.0000000001',
    '1.1234567891',
    1e-10,
  ];
  it.each(unreadable)('%j is none: nothing is guessed or rounded away', (text) => {
    expect(parseYuan(text)).toBeUndefined();
  });
});

describe('a decimal that does not fit', () => {
  const cases: [string | number, number, bigint][] = [
    ['0.4', 0, 0n],
    ['0.5', 0, 1n],
    ['0.6', 0, 1n],
    ['1.5', 0, 2n],
    ['2.5', 0, 3n],
    ['0.0000000000005', 12, 1n],
    ['0.00000000000049999', 12, 0n],
    [0.1 + 0.2, 12, 300_000_000_000n],
  ];
  it.each(cases)('%j in units of 10^-%i is rounded half up', (value, decimals, scaled) => {
    expect(parseDecimal(value, decimals)).toBe(scaled);
  });

  it('is refused where it has to be exact', () => {
    expect(parseDecimal('0.5', 0, true)).toBeUndefined();
    expect(parseDecimal('1.0', 0, true)).toBe(1n);
  });
});

describe('an amount', () => {
  it.each([
    [0n, '0'],
    [1n, '0.000000001'],
    [-1n, '-0.000000001'],
    [1_500_000_000n, '1.5'],
    [-1_500_000_000n, '-1.5'],
    [10_000_000_000n, '10'],
    [123_456_789_012_345_678_123_456_789n, '123456789012345678.123456789'],
  ])('%s nano-yuan is written as the shortest decimal %s', (amount, text) => {
    expect(formatYuan(amount)).toBe(text);
  });

  it('reads back as what was written, whatever it is', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 28n), max: 10n ** 28n }), (amount) => {
        expect(parseYuan(formatYuan(amount))).toBe(amount);
      }),
    );
  });

  it('is a JSON number for answers', () => {
    expect(yuanNumber(1_234_567_890n)).toBe(1.23456789);
    expect(yuanNumber(-1n)).toBe(-1e-9);
  });

  it('has other units the same way', () => {
    expect(formatDecimal(1_500n, 12)).toBe('0.0000000015');
  });
});

describe('the rounding of money', () => {
  it.each([
    [0n, 10n, 0n],
    [4n, 10n, 0n],
    [5n, 10n, 1n],
    [14n, 10n, 1n],
    [15n, 10n, 2n],
    [1n, 3n, 0n],
    [2n, 3n, 1n],
  ])('%s / %s is %s: half up', (value, divisor, result) => {
    expect(divideHalfUp(value, divisor)).toBe(result);
  });

  it('is off by no more than half a unit, and never the wrong way at a half', () => {
    const values = [
      fc.bigInt({ min: 0n, max: 10n ** 24n }),
      fc.bigInt({ min: 1n, max: 10n ** 12n }),
    ] as const;
    fc.assert(
      fc.property(...values, (value, divisor) => {
        const twiceTheError = 2n * (divideHalfUp(value, divisor) * divisor - value);
        expect(twiceTheError <= divisor && twiceTheError > -divisor).toBe(true);
      }),
    );
  });

  it('compares', () => {
    expect([smaller(1n, 2n), smaller(2n, 1n)]).toEqual([1n, 1n]);
  });
});
