import { describe, expect, it } from 'vitest';
import type { KeyRow } from '../../../../shared/config/rows/key-row.ts';
import { findKeyCauses, planCauses } from '../../../../shared/relay/alerts/alert-pass.ts';

const days = { planDays: 7, keyDays: 3 };
const at = (time: string): number => Date.parse(time);
const until = '2026-12-31T00:00:00Z';

describe('the end of a plan', () => {
  it.each([
    ['2026-12-23T23:59:59Z', undefined],
    ['2026-12-24T00:00:00Z', 'plan.ending'],
    ['2026-12-30T23:59:59Z', 'plan.ending'],
    ['2026-12-31T00:00:00Z', 'plan.ended'],
    ['2027-01-06T23:59:59Z', 'plan.ended'],
    ['2027-01-07T00:00:00Z', undefined],
  ])('at %s is reported as %s', (now, type) => {
    const row = { account: 'acme', planLevel: 2, planUntilMs: at(until) };
    expect(planCauses(row, days, at(now))[0]?.type).toBe(type);
  });
});

describe('the end of a key', () => {
  const key = (more: Partial<KeyRow> = {}): KeyRow => ({
    hash: 'a'.repeat(64),
    account: 'acme',
    agent: 'api',
    official: false,
    enabled: true,
    hint: 'sk-...1234',
    expires_at: at(until),
    ...more,
  });

  it.each<[string, Partial<KeyRow>, string, boolean]>([
    ['is reported some days earlier', {}, '2026-12-28T00:00:00Z', true],
    ['is not reported too early', {}, '2026-12-27T23:59:59Z', false],
    ['is not reported afterwards', {}, until, false],
    ['is not reported for a disabled key', { enabled: false }, '2026-12-30T00:00:00Z', false],
    ['is not reported for a key of another kind', { agent: 'web' }, '2026-12-30T00:00:00Z', false],
    ['is not reported for a key without an end', { expires_at: undefined }, '2026-12-30T00:00:00Z', false],
  ])('%s', (_, more, now, reported) => {
    expect(findKeyCauses(key(more), days, at(now))).toHaveLength(reported ? 1 : 0);
  });

  it('names the key by its hint and the start of its hash, never by the whole hash', () => {
    const [cause] = findKeyCauses(key(), days, at('2026-12-30T00:00:00Z'));
    expect(cause).toMatchObject({
      type: 'key.expiring',
      account: 'acme',
      data: { key: 'a'.repeat(12), hint: 'sk-...1234', expires_at: '2026-12-31T00:00:00Z' },
    });
  });
});
