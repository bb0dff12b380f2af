import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import {
  closeRecordAttribute,
  quotaOf,
} from '../../../../shared/adapters/dynamodb/quotas/quota-attributes.ts';
import type { CloseRecord } from '../../../../shared/billing/quota-item.ts';

const record: CloseRecord = {
  id: 'call',
  kind: 'settled',
  charge: 123n,
  at: 1_763_718_180,
  endpoint: 'chat',
  promptTokens: 100,
  completionTokens: 0,
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
  const withCache = closeRecordAttribute({ ...record, cache }).L ?? [];

  it('has, without a cache, exactly the ten values of the version before', () => {
    expect(plain).toHaveLength(10);
    expect(lastOf(plain)).toEqual(record);
  });

  it('has the cache counts after them, where a reader of ten values does not look', () => {
    expect(withCache.slice(0, 10)).toEqual(plain);
    expect(withCache.slice(10)).toEqual([{ N: '60' }, { N: '0' }, { N: '10' }]);
    expect(lastOf(withCache)).toEqual({ ...record, cache });
  });

  it('is read without what a newer version puts after it', () => {
    expect(lastOf([...withCache, { S: 'new' }])).toEqual({ ...record, cache });
    expect(lastOf([...plain, { S: '' }, { S: '' }, { S: '' }, { M: {} }])).toEqual(record);
  });

  it('is refused with a count that is no whole number', () => {
    expect(() => lastOf([...plain, { N: '1.5' }])).toThrow('last.cached_tokens is not a whole number');
  });
});
