import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { closeRecordAttribute, quotaOf } from '../../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import type { CloseRecord } from '../../../../shared/billing/quota-item.ts';

const record: CloseRecord = {
  id: 'call',
  kind: 'settled',
  charge: 123n,
  at: 1_763_718_180,
  endpoint: 'chat',
  prompt_tokens: 100,
  completion_tokens: 0,
  end: 'completed',
};
const cache = { cached_tokens: 60, cache_write_1h_tokens: 10 };

const zero = { N: '0' };
const lastOf = (list: AttributeValue[] | undefined): CloseRecord | undefined =>
  quotaOf({
    account: { S: 'acme' },
    available: zero,
    spent: zero,
    granted: zero,
    settled: zero,
    ...(list && { last: { L: list } }),
  }).last;

describe('the close record in the account item', () => {
  const plain = closeRecordAttribute(record).L ?? [];
  const withCache = closeRecordAttribute({ ...record, ...cache }).L ?? [];

  it('leaves unknown values out at the end', () => {
    expect(plain).toHaveLength(8);
    expect(lastOf(plain)).toEqual(record);
  });

  it('has the ten values that the first version reads, unknown ones empty', () => {
    const written = closeRecordAttribute({ ...record, channel: 'openai' }).L ?? [];
    expect(written.slice(0, 10)).toEqual([...plain, { S: '' }, { S: '' }]);
  });

  it('has the cache counts after them, where a reader of ten values does not look', () => {
    expect(withCache.slice(0, 10)).toEqual([...plain, { S: '' }, { S: '' }]);
    expect(withCache.slice(10)).toEqual([{ N: '60' }, { S: '' }, { N: '10' }]);
    expect(lastOf(withCache)).toEqual({ ...record, ...cache });
  });

  it.each<Partial<CloseRecord>>([
    { channel: 'openai', upstream_model: 'gpt-4o-2024', first_content_ms: 812, bought: 77n },
    { bought: 0n },
    { flag: 'zero_output', estimated: true },
    { price: '7:tokens:0.002:0.004' },
    { model: 'large', alias: 'best' },
    { alias: 'best' },
  ])('keeps %o', (more) => {
    expect(lastOf(closeRecordAttribute({ ...record, ...more }).L)).toEqual({ ...record, ...more });
  });

  it('is read without what a newer version puts after it', () => {
    const newest = { ...record, ...cache, price: '7:free', alias: 'best' };
    const whole = closeRecordAttribute(newest).L ?? [];
    expect(lastOf([...whole, { S: 'new' }])).toEqual(newest);
  });

  it('is refused with a count that is no whole number', () => {
    expect(() => lastOf([...plain, { S: '' }, { S: '' }, { N: '1.5' }])).toThrow(
      'last.cached_tokens is not a whole number',
    );
  });
});
