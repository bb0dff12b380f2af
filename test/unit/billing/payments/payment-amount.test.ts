import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatYuan } from '../../../../shared/billing/money.ts';
import {
  parsePayment,
  formatPayment,
  convertToYuan,
  parseReference,
  formatReferenceBody,
  addSignature,
} from '../../../../shared/billing/payments.ts';

describe("amounts in Stripe's format", () => {
  test.each([
    [1000n, 'usd', '10 usd', '7.1', '71'],
    [1n, 'usd', '0.01 usd', '7.123456', '0.07123456'],
    [1000n, 'jpy', '1000 jpy', '0.048', '48'],
    [1000n, 'krw', '1000 krw', '0.000001', '0.001'],
    [1000n, 'kwd', '1 kwd', '23.123456', '23.123456'],
    [10n, 'bhd', '0.01 bhd', '0.000001', '0.00000001'],
    [500n, 'isk', '5 isk', '0.05', '0.25'],
    [-400n, 'usd', '-4 usd', '7.1', '-28.4'],
  ])('%s %s are %s, at %s: %s yuan', (minor, currency, text, rate, yuan) => {
    expect(formatPayment({ minor, currency })).toBe(text);
    expect(formatYuan(convertToYuan({ minor, currency }, rate))).toBe(yuan);
    const [written = ''] = text.split(' ');
    expect(parsePayment(written, currency)).toEqual({ minor, currency });
  });
});

describe('payment references', () => {
  const nonce = '0123456789abcdef';
  const signature = 'ab'.repeat(32);

  test('encode every account name in the characters that Stripe accepts', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (account) => {
        const text = addSignature(
          formatReferenceBody({ account, minor: 1n, currency: 'usd', nonce }),
          signature,
        );
        expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(parseReference(text)?.reference).toEqual({ account, minor: 1n, currency: 'usd', nonce });
      }),
    );
  });

  test.each(['', 'order-1', signature, `${signature}-usd-1-${nonce}-`, `${signature}-usd-1-${nonce}-a_GG`])(
    'are rejected when they contain other text: %s',
    (text) => {
      expect(parseReference(text)).toBeUndefined();
    },
  );
});
