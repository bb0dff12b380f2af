import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallIds } from '../../../shared/upstreams/call-ids.ts';
import { mapIds } from '../../../shared/upstreams/sent-call-ids.ts';
import { anyCodePoint } from '../../support/any-code-point.ts';

const requestId = '01jd0000000123456789abcdef';
const ids = new CallIds({ channel: 'kimi', requestId });

/** Ids of vendors and clients, and hostile ones. */
const anyId = fc.oneof(
  fc.string({ maxLength: 80 }),
  fc.string({ unit: anyCodePoint, maxLength: 30 }),
  fc.constantFrom(
    'search:0',
    'functions.get_weather:0',
    'call_',
    '',
    'x'.repeat(64),
    'x'.repeat(65),
    '__proto__',
  ),
  fc.stringMatching(/^[a-zA-Z0-9]{9}$/),
  fc.stringMatching(/^call_[0-9a-z]{4,16}_[A-Za-z0-9_-]{0,30}$/),
);

describe('the id of a call shown to a client', () => {
  it.each([
    ['a short one', 'search:0'],
    ['one that only counts, with a long name', 'functions.get_weather:0'],
    ['one of letters that are no ASCII', 'zoë'],
  ])('is new for every turn and decoded for the same channel: %s', (_case, vendorId) => {
    const first = ids.showId(vendorId, 0);
    const later = new CallIds({ channel: 'kimi', requestId: '01jd0000000123456789abcdeg' }).showId(
      vendorId,
      0,
    );
    expect(first).toMatch(/^call_[0-9a-z]+_[\w-]+$/);
    expect(later).not.toBe(first);
    expect([ids.restoreVendorId(first), ids.restoreVendorId(later)]).toEqual([vendorId, vendorId]);
  });

  it('is not decoded for another channel', () => {
    const seen = ids.showId('search:0', 0);
    expect(new CallIds({ channel: 'other', requestId }).restoreVendorId(seen)).toBe(seen);
  });

  it("is the vendor's own id if the vendor's ids are unique", () => {
    expect(ids.showId('call_Wp9sWjQ0bDPbEVdWQnNxbSvn', 3)).toBe('call_Wp9sWjQ0bDPbEVdWQnNxbSvn');
  });

  it('is unique in an answer that repeats an id, and at most 64 characters long, whatever the vendor sends', () => {
    fc.assert(
      fc.property(anyId, (vendorId) => {
        const shown = ids.showId(vendorId, 7);
        expect(shown.length).toBeLessThanOrEqual(64);
        expect(shown).toMatch(/^[\x21-\x7e]+$/);
        if (shown !== vendorId) expect(ids.showId(vendorId, 8)).not.toBe(shown);
        expect([vendorId, shown]).toContain(ids.restoreVendorId(shown));
      }),
    );
  });

  it('is not decoded when it is longer or encoded differently than the relay encodes it', () => {
    const seen = ids.showId('ab', 0);
    expect(ids.restoreVendorId(seen)).toBe('ab');
    // The last character has two unused bits, so another one decodes to the same bytes.
    const twin = seen.slice(0, -1) + String.fromCharCode(seen.charCodeAt(seen.length - 1) + 1);
    expect(ids.restoreVendorId(twin)).toBe(twin);
    expect(ids.restoreVendorId(seen + 'A'.repeat(80))).toBe(seen + 'A'.repeat(80));
  });
});

describe('ids that an upstream rejects', () => {
  it('are the only ids that change', () => {
    expect(mapIds(['abcDEF123', 'call_1'], 'alnum9').get('abcDEF123')).toBe('abcDEF123');
    expect(mapIds(['x'.repeat(41), 'short'], 'max40').get('short')).toBe('short');
  });
});
