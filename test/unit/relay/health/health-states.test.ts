import { describe, expect, it } from 'vitest';
import { nextHealth, type HealthEvent, findHealth } from '../../../../shared/relay/health/health-states.ts';
import type { HealthEntry } from '../../../../shared/relay/ports/runtime-stores.ts';

const nowMs = 1_800_000_000_000;
const at = (seconds: number): number => nowMs + seconds * 1000;
const rests = (seconds: number, more: object = {}): HealthEntry => ({
  kind: 'failing',
  untilMs: at(seconds),
  ...more,
});
const failures = (count: number, accounts: string[], lastSeconds = -1): HealthEntry => ({
  kind: 'failures',
  count,
  accounts,
  lastMs: at(lastSeconds),
});
const failedBy = (account: string, more: object = {}): HealthEvent => ({ type: 'failed', account, ...more });
const limit = (seconds?: number): HealthEvent => ({
  type: 'rate_limited',
  cooldownSeconds: seconds === undefined ? undefined : Math.min(seconds, 86_400),
  statedSeconds: seconds,
});
const say = (
  type: 'succeeded' | 'refused_caller' | 'probe_claimed' | 'probe_released' | 'credentials_refused',
) => ({
  type,
});
const rate = (seconds: number, stated?: number): HealthEntry => ({
  kind: 'rate_limit',
  untilMs: at(seconds),
  ...(stated !== undefined && { statedUntilMs: at(stated) }),
});
const unpaid: HealthEntry = { kind: 'credentials', untilMs: at(300) };
const is = (
  what: NonNullable<ReturnType<typeof findHealth>>['is'],
  seconds: number,
  kind: 'failing' | 'rate_limit' = 'failing',
) => ({ is: what, untilMs: at(seconds), kind });
const same = Symbol('the entry itself');

describe('the health of a candidate after an event', () => {
  it.each<[string, HealthEntry | undefined, HealthEvent, HealthEntry | undefined | typeof same]>([
    ['healthy, a rate limit', undefined, limit(), rate(15)],
    ['healthy, with 30 s', undefined, limit(30), rate(30, 30)],
    ['healthy, with 1 s', undefined, limit(1), rate(15, 1)],
    ['healthy, with 0 s', undefined, limit(0), rate(15)],
    ['healthy, with three days', undefined, limit(259_200), rate(86_400, 259_200)],
    ['in cooldown, a rate limit that ends a little later', rests(12), limit(), same],
    ['in cooldown, a rate limit that ends much later', rests(3), limit(), rate(15)],
    ['in a longer cooldown, a Retry-After', rests(300, { kind: 'credentials' }), limit(20), rate(300, 20)],
    [
      'blocked, a rate limit without a time',
      rests(40, { kind: 'rate_limit', statedUntilMs: at(40) }),
      limit(),
      same,
    ],
    [
      'blocked, a rejected secret',
      rests(40, { kind: 'rate_limit', statedUntilMs: at(40) }),
      say('credentials_refused'),
      { ...unpaid, statedUntilMs: at(40) },
    ],
    ['healthy, a rejected secret', undefined, say('credentials_refused'), unpaid],
    ['failing for some accounts, a rejected secret', failures(2, ['a']), say('credentials_refused'), unpaid],
    ['healthy, a failure', undefined, failedBy('a'), failures(1, ['a'], 0)],
    ['failed once, for the same account', failures(1, ['a']), failedBy('a'), failures(2, ['a'], 0)],
    ['failed once, by another account', failures(1, ['a']), failedBy('b'), failures(2, ['a', 'b'], 0)],
    ['failed twice for one account, for the same', failures(2, ['a']), failedBy('a'), failures(3, ['a'], 0)],
    ['failed twice for one account, for another', failures(2, ['a']), failedBy('b'), rests(30)],
    [
      'failed once for each of two accounts, for one of them',
      failures(2, ['a', 'b']),
      failedBy('a'),
      rests(30),
    ],
    ['failed often for one account, for another', failures(3, ['a']), failedBy('b'), rests(30)],
    ['failed often for one account a moment ago, for the same', failures(3, ['a']), failedBy('a'), same],
    [
      'failed often for one account, for the same later',
      failures(3, ['a'], -20),
      failedBy('a'),
      failures(3, ['a'], 0),
    ],
    ['failed twice, long ago', failures(2, ['a'], -121), failedBy('b'), failures(1, ['b'], 0)],
    [
      'failed twice, but answered here since',
      failures(2, ['a'], -5),
      failedBy('b', { succeededMs: at(-4) }),
      failures(1, ['b'], 0),
    ],
    [
      'failed twice, answered here before',
      failures(2, ['a'], -5),
      failedBy('b', { succeededMs: at(-6) }),
      rests(30),
    ],
    ['in cooldown, a failure', rests(10), failedBy('a'), same],
    ['after its cooldown, a failure', rests(-1), failedBy('a'), rests(30, { failedBy: 'a' })],
    ['probed in vain, a failure of the same account', rests(-1, { failedBy: 'a' }), failedBy('a'), same],
    [
      'probed in vain, a failure of another',
      rests(-1, { failedBy: 'a' }),
      failedBy('b'),
      rests(30, { failedBy: 'b' }),
    ],
    [
      'probed in vain, a claim',
      rests(-1, { failedBy: 'a' }),
      say('probe_claimed'),
      rests(-1, { failedBy: 'a', probeUntilMs: at(60) }),
    ],
    ['long after its cooldown, a failure', rests(-61), failedBy('a'), failures(1, ['a'], 0)],
    ['failed twice, a success', failures(2, ['a', 'b']), say('succeeded'), undefined],
    ['in cooldown, a success that may be older', rests(10), say('succeeded'), same],
    ['after its cooldown, a success', rests(-1, { probeUntilMs: at(50) }), say('succeeded'), undefined],
    ['long after its cooldown, a success', rests(-61), say('succeeded'), same],
    ['healthy, a success', undefined, say('succeeded'), undefined],
    ['failed twice, a rejected caller', failures(2, ['a']), say('refused_caller'), same],
    ['after its cooldown, a rejected caller', rests(-1), say('refused_caller'), undefined],
    ['in cooldown, a claim', rests(1), say('probe_claimed'), same],
    ['after its cooldown, a claim', rests(-1), say('probe_claimed'), rests(-1, { probeUntilMs: at(60) })],
    ['claimed, a claim', rests(-1, { probeUntilMs: at(1) }), say('probe_claimed'), same],
    [
      'claimed long ago, a claim',
      rests(-70, { probeUntilMs: at(-1) }),
      say('probe_claimed'),
      rests(-70, { probeUntilMs: at(60) }),
    ],
    ['healthy, a claim', undefined, say('probe_claimed'), undefined],
    ['claimed, a release', rests(-9, { probeUntilMs: at(50) }), say('probe_released'), rests(0)],
    ['after its cooldown, a release', rests(-9), say('probe_released'), same],
  ])('%s', (_case, entry, event, expected) => {
    const after = nextHealth(entry && Object.freeze(entry), event, nowMs);
    if (expected === same) expect(after).toBe(entry);
    else expect(after).toEqual(expected);
  });
});

describe('the rank of a candidate', () => {
  const blocked = { kind: 'rate_limit', statedUntilMs: at(99) };
  it.each<[string, HealthEntry | undefined, string, ReturnType<typeof findHealth>]>([
    ['healthy', undefined, 'a', undefined],
    ['failed less than three times', failures(2, ['a']), 'a', undefined],
    ['failed three times for this account', failures(3, ['a'], -10), 'a', is('last', 20)],
    ['failed three times for another account', failures(3, ['a'], -10), 'b', undefined],
    ['failed three times half a minute ago', failures(3, ['a'], -30), 'a', undefined],
    ['in cooldown', rests(5), 'a', is('resting', 5)],
    ['blocked', rests(5, blocked), 'a', is('blocked', 99, 'rate_limit')],
    ['no longer blocked, in cooldown', rests(5, { statedUntilMs: at(-1) }), 'a', is('resting', 5)],
    ['after its cooldown, despite a Retry-After', rests(-1, blocked), 'a', is('probe', -1, 'rate_limit')],
    ['probed by another call', rests(-1, { probeUntilMs: at(1) }), 'a', is('resting', -1)],
    ['its last probe failed for this account', rests(-1, { failedBy: 'a' }), 'a', is('last', -1)],
    ['its last probe failed for another account', rests(-1, { failedBy: 'a' }), 'b', is('probe', -1)],
    ['long after its cooldown', rests(-60), 'a', undefined],
  ])('%s', (_case, entry, account, expected) => {
    expect(findHealth(entry, account, nowMs)).toEqual(expected);
  });
});
