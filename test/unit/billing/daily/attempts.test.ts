import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findCause,
  formatAttempts,
  readAttempts,
  type CallAttempt,
} from '../../../../shared/billing/attempts.ts';
import {
  addFigures,
  noFigures,
  sumDaily,
  sumFreeAttempts,
} from '../../../../shared/billing/daily-figures.ts';
import { parseHourKey } from '../../../../shared/billing/daily-keys.ts';
import type { CloseRow } from '../../../../shared/billing/ledger-row.ts';
import { findBin } from '../../../../shared/billing/time-sketch.ts';
import { timeText } from '../../../../shared/wire/ids.ts';
import { anyCodePoint } from '../../../support/any-code-point.ts';

const served = { channel: 'backup', model: 'm' };
const attempt = (changes: Partial<CallAttempt> = {}): CallAttempt => ({
  ...served,
  secret: 'ab12',
  outcome: 'answered',
  contentMs: 700,
  endMs: 2700,
  ...changes,
});
const failed = attempt({
  channel: 'main#1',
  outcome: 'upstream_status_503',
  secret: 'cd34',
  contentMs: undefined,
  endMs: 5000,
});

const row = (changes: Partial<CloseRow> = {}): CloseRow => ({
  account: 'acme',
  id: timeText(Date.parse('2026-11-21T23:59:50Z')).padEnd(26, '0'),
  at: '2026-11-22T00:21:10Z',
  kind: 'settled',
  model: 'm',
  channel: 'backup',
  upstream_model: 'm',
  key: '0123456789ab',
  charge: 7n,
  reserved: 9n,
  bought: 5n,
  prompt_tokens: 10,
  completion_tokens: 40,
  end: 'completed',
  price: '1:free',
  first_content_ms: 5700,
  ...changes,
});

const figuresOf = (rows: readonly CloseRow[], id: string) =>
  sumDaily(rows)
    .filter(({ key }) => `${key.id} ${key.period}` === id)
    .reduce((sum, { figures }) => addFigures(sum, figures), noFigures);

describe('a rescued failure', () => {
  const rescued = row({ tried: formatAttempts([failed, attempt()], served) });

  it('counts for the failed channel, and its time is not added to the channel that answered', () => {
    expect(figuresOf([rescued], 'served day#2026-11-21#m#main#1').counts).toEqual({
      attempts: 1,
      failed_attempts: 1,
      failed_server: 1,
    });
    const { counts, amounts } = figuresOf([rescued], 'served day#2026-11-21#m#backup');
    expect(counts).toMatchObject({
      attempts: 1,
      calls: 1,
      [findBin(700)]: 1,
      timed_ms: 2000,
      timed_tokens: 40,
    });
    expect([counts.failed_attempts, amounts.charged]).toEqual([undefined, 7n]);
  });

  it('counts in the hour in which the call ended, by secret; cost and charge count for the answering channel', () => {
    expect(figuresOf([rescued], 'health#main#1 hour#2026-11-22T00#m#cd34').counts).toEqual({
      attempts: 1,
      failed_attempts: 1,
      failed_server: 1,
      s2_failed: 1,
    });
    const { counts, amounts } = figuresOf([rescued], 'health#backup hour#2026-11-22T00#m#ab12');
    expect(counts).toMatchObject({ calls: 1, attempts: 1, s2_answered: 1, s2_log: 655 });
    expect(amounts).toEqual({ charged: 7n, bought: 5n, bought_charged: 7n });
  });

  it('adds only the call to the account', () => {
    const { counts } = figuresOf([rescued], 'account#acme day#2026-11-21#m');
    expect(counts).toEqual({ calls: 1, bought_calls: 1, prompt_tokens: 10, completion_tokens: 40 });
  });
});

describe('the attempts of a row', () => {
  const outcomes = fc.constantFrom(
    'answered',
    'upstream_reset',
    'upstream_status_429',
    'refused',
    'under_way',
  );
  const texts = fc.oneof(fc.string({ maxLength: 30 }), fc.string({ unit: anyCodePoint, maxLength: 30 }));
  const time = fc.option(fc.nat(900_000), { nil: undefined });
  const attempts = fc.record({
    channel: texts.map((text) => `c${text}`),
    model: texts.map((text) => `m${text}`),
    secret: texts,
    outcome: outcomes,
    contentMs: time,
    endMs: time,
  });

  it('are read back unchanged, whatever the channels and models are named', () => {
    fc.assert(
      fc.property(fc.array(attempts, { maxLength: 3 }), (all) => {
        const { channel, model } = all.at(-1) ?? served;
        const read = readAttempts(row({ channel, model, tried: formatAttempts(all, { channel, model }) }));
        const shorten = (outcome: string): string => outcome.replace(/^answered$|^upstream_/, '');
        expect(read).toEqual(all.map((one) => ({ ...one, outcome: shorten(one.outcome) })));
      }),
    );
  });

  it.each([
    ['one attempt in rows of versions before', {}, 1, 0],
    ['one failure in their failed rows', { end: 'failed' }, 1, 1],
    ['none in a row edited by hand', { tried: '{"a":1}' }, 0, 0],
    ['none in a row with a truncated text', { tried: '[["",1' }, 0, 0],
    ['none when no channel was tried', { channel: undefined }, 0, 0],
    ['three at most', { tried: JSON.stringify(Array.from({ length: 9 }, () => ['reset'])) }, 3, 3],
  ] as const)('are %s', (_what, changes, count, failures) => {
    const all = readAttempts(row(changes));
    expect([all.length, all.filter((one) => findCause(one, all)).length]).toEqual([count, failures]);
  });

  it.each([
    ['status_429', 'rate_limit'],
    ['status_401', 'credentials'],
    ['secret', 'credentials'],
    ['status_503', 'server'],
    ['status_400', 'rejected'],
    ['connect_timeout', 'connection'],
    ['first_content_timeout', 'timeout'],
    ['cut', 'answer'],
    ['loop', 'other'],
    ['refused', undefined],
    ['under_way', undefined],
    ['secret_store', undefined],
    ['', undefined],
  ] as const)('with the outcome %s count as failed because of %s', (outcome, cause) => {
    const one = attempt({ outcome });
    expect(findCause(one, [one])).toBe(cause);
  });

  it("blame the request's time-out on the channel that used most of the time", () => {
    const last = attempt({ outcome: 'deadline', endMs: 1000 });
    const stalled = attempt({ outcome: 'first_content_timeout', endMs: 120_000 });
    expect(findCause(last, [stalled, last])).toBeUndefined();
    expect(findCause(last, [last])).toBe('timeout');
  });
});

describe('attempts of calls without a reservation', () => {
  it('are counted by day and hour, but not as calls of the day', () => {
    const sums = sumFreeAttempts([row({ tried: formatAttempts([failed, attempt()], served) })]);
    const seen = sums.map(({ key, figures: { counts } }) => [key.id, counts.attempts, counts.calls ?? 0]);
    expect(seen).toEqual([
      ['served', 1, 0],
      ['health#main#1', 1, 0],
      ['served', 1, 0],
      ['health#backup', 1, 1],
    ]);
    expect(parseHourKey(sums[1]?.key ?? { id: '', period: '' })).toEqual({
      hour: '2026-11-22T00',
      model: 'm',
      secret: 'cd34',
    });
  });
});
