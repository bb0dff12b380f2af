import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { check, missingFaults } from './checker/check.ts';
import type { Attempt, CallSeen, Finding, Observations, Row } from './checker/observations.ts';

const folder = path.join(import.meta.dirname, 'checker');

it('the checker imports only its own files and the oracle', () => {
  const names = readdirSync(folder).flatMap((file) =>
    [...readFileSync(path.join(folder, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)/g)].map(
      ([, name]) => String(name),
    ),
  );
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !/^\.\/[\w-]+\.ts$|^\.\.\/\.\.\/oracle\/[\w-]+\.ts$/.test(name))).toEqual([]);
});

const at = Date.UTC(2026, 10, 22, 12);
const second = 1000;
const words = 'call1 river stone';
const priceBefore = '1:tokens:0.001:0.002';
/** 20 input tokens at 0.001 and 3 output tokens at 0.002, in nano-yuan. */
const charge = 26_000;
const yuan = (nano: number): number => nano / 1e9;

const answer: Attempt = {
  call: 1,
  channel: 'm',
  model: 'm',
  atMs: at + 100,
  served: 'answer',
  status: 200,
  text: words,
  whole: true,
  reported: { input: 20, output: 3 },
};
const whole: CallSeen = {
  number: 1,
  account: 'a',
  key: 'k',
  model: 'm',
  fault: 'none',
  startedMs: at,
  endedMs: at + second,
  requestId: 'r1',
  status: 200,
  end: 'whole',
  text: words,
};
const settledRow: Row = {
  account: 'a',
  id: 'r1',
  kind: 'settled',
  key: 'k',
  price: priceBefore,
  charge: yuan(charge),
};
const quota = (changes: Row = {}): Row => ({
  account: 'a',
  available: 1e9 - charge,
  spent: charge,
  granted: 1e9,
  open: {},
  ...changes,
});
const sumKeys = [
  { id: 'account#a', period: 'day#2026-11-22#m' },
  { id: 'month.7#2026-11', period: 'account#a' },
  { id: 'served', period: 'day#2026-11-22#m#c' },
];
const sums = (changes: Row = {}): Row[] =>
  sumKeys.map((key): Row => Object.assign({ calls: 1, charged: yuan(charge) }, key, changes));

/** One successful call, with changes. */
const observations = (changes: Partial<Observations> = {}): Observations => ({
  calls: [whole],
  attempts: [answer],
  prices: [
    { id: 1, type: 'token-billing', models: ['m'], input: 0.001, output: 0.002, model: 'm', writtenMs: 0 },
  ],
  disturbances: [],
  deaths: [],
  losses: [],
  holds: [],
  sweepGraceSeconds: 10,
  granted: new Map([['a', 1]]),
  tables: { quotas: [quota()], ledger: [settledRow], daily: sums() },
  injected: new Map([['freeze', 20]]),
  quota: 20,
  ...changes,
});

const found = (changes: Partial<Observations>): string[] =>
  check(observations(changes)).map(({ rule, what }: Finding) => `${rule}: ${what}`);

/** The tables after the sweeper closed a call. */
const expiredTables = {
  quotas: [quota({ available: 1e9 - 20_000, spent: 20_000 })],
  ledger: [{ ...settledRow, kind: 'expired', charge: yuan(20_000) }],
  daily: sums({ charged: yuan(20_000) }),
};
const refused = (status: number, error: CallSeen['error'], more: Partial<CallSeen> = {}): CallSeen => ({
  ...whole,
  requestId: undefined,
  status,
  end: 'error',
  text: '',
  error,
  ...more,
});
const emptyTables = { quotas: [quota({ available: 1e9, spent: 0 })], ledger: [], daily: [] };
const failed: Attempt = {
  ...answer,
  served: 'server-error',
  status: 500,
  text: '',
  whole: false,
  reported: undefined,
};
const releasedTables = {
  ...emptyTables,
  ledger: [{ ...settledRow, kind: 'released', charge: 0 }],
  daily: sums({ charged: 0 }),
};

it('a successful call has no findings', () => {
  expect(found({})).toEqual([]);
});

describe('the six defects', () => {
  it('a lost settlement: the sweeper closes a call that was not killed', () => {
    expect(found({ tables: expiredTables })).toEqual([
      expect.stringMatching(/^charge: call 1 .* is expired for 20000/),
    ]);
    const kill = { kind: 'kill-answering', fromMs: at + 500, untilMs: at + 2 * second };
    expect(found({ tables: expiredTables, disturbances: [kill] })).toEqual([]);
  });

  it('a double refund: the account does not add up', () => {
    const tables = { ...observations().tables, quotas: [quota({ available: 1e9 })] };
    expect(found({ tables })).toEqual([expect.stringMatching(/^balance: a is off by 26000/)]);
  });

  it.each([
    ['day', 0, [/^balance: a: its days count 2 calls, the ledger 1/, /^balance: models sum to/]],
    ['month', 1, [/^balance: a: its months count 2 calls, the ledger 1/]],
    ['model', 2, [/^balance: models sum to \d+ and 2 calls, days to \d+ and 1$/]],
  ])('a sum of a %s that counts a call twice', (_of, at, findings) => {
    const daily = sums().map((sum, place) => (place === at ? Object.assign(sum, { calls: 2 }) : sum));
    expect(found({ tables: { ...observations().tables, daily } })).toEqual(
      findings.map((words) => expect.stringMatching(words) as string),
    );
  });

  it.each([
    ['with a finish reason', 'whole' as const, /says success with 5 characters/],
    ['without a word', 'silent' as const, /ends in order after 5 characters/],
  ])('a clean end after a stall, %s', (_how, end, what) => {
    const stalled: CallSeen = { ...whole, fault: 'stalled-reader', end, text: 'call1' };
    expect(found({ calls: [stalled] })).toContainEqual(expect.stringMatching(what));
    expect(found({ calls: [{ ...stalled, end: 'cut' }] })).toEqual([]);
  });

  it('a wrong cause: a rate limit reported for an upstream that failed or was never called', () => {
    const limit = { type: 'rate_limit_error', code: 'rate_limit_exceeded' };
    const call = refused(429, limit, { requestId: 'r1', retryAfterSeconds: 5 });
    expect(found({ calls: [call], attempts: [failed], tables: releasedTables })).toEqual([
      expect.stringMatching(/^cause: .*its upstream: server-error/),
    ]);
    const unasked = refused(429, limit, { retryAfterSeconds: 5 });
    expect(found({ calls: [unasked], attempts: [], tables: emptyTables })).toEqual([
      expect.stringMatching(/^cause: .*never asked; nothing else was done meanwhile/),
    ]);
    const true502 = refused(
      502,
      { type: 'upstream_error', code: 'upstream_unavailable' },
      { requestId: 'r1' },
    );
    expect(found({ calls: [true502], attempts: [failed], tables: releasedTables })).toEqual([]);
  });

  it('a leaked reservation: it outlives its lease, the grace period and the next sweep', () => {
    const leaseEnd = at / 1000;
    const hold = { id: 'r9', account: 'a', leaseEnd };
    expect(found({ holds: [{ ...hold, lastSeenMs: at + 80 * second }] })).toEqual([]);
    expect(found({ holds: [{ ...hold, lastSeenMs: at + 100 * second }] })).toEqual([
      'hold: r9 of a is held 100 s after its lease ended',
    ]);
    const open = { r9: [leaseEnd, 5] };
    const tables = { ...observations().tables, quotas: [quota({ available: 1e9 - charge - 5, open })] };
    expect(found({ tables })).toEqual([expect.stringMatching(/^hold: a has 1 open reservations/)]);
  });

  it('a stale price: the previous one, more than 10 s after the edit', () => {
    const [first] = observations().prices;
    const prices = (secondsAgo: number) =>
      [first, first && { ...first, output: 0.003, writtenMs: at - secondsAgo * second }].filter(
        (each) => each !== undefined,
      );
    expect(found({ prices: prices(9) })).toEqual([]);
    expect(found({ prices: prices(12) })).toEqual([
      expect.stringMatching(/^price: .*replaced 12\.0 s before the call/),
    ]);
    const throttled = { kind: 'store-throttled', fromMs: at - 5 * second, untilMs: at - 3 * second };
    expect(found({ prices: prices(12), disturbances: [throttled] })).toEqual([]);
  });
});

describe('other defects', () => {
  it('a call without its ledger row, and a row without its call', () => {
    expect(found({ tables: { ...emptyTables } })).toEqual([
      expect.stringMatching(/^lost: call 1 .* has no ledger row/),
    ]);
    const twice = { ...settledRow, id: 'r2' };
    const tables = {
      quotas: [quota({ available: 1e9 - 2 * charge, spent: 2 * charge })],
      ledger: [settledRow, twice],
      daily: sums({ calls: 2, charged: yuan(2 * charge) }),
    };
    expect(found({ tables })).toEqual([expect.stringMatching(/^doubled: the row r2 .* is of no call/)]);
  });

  it('a 502 although the store failed, and a failure of the host without a cause', () => {
    const store = { kind: 'store-down', fromMs: at, untilMs: at + second };
    const noStore = refused(503, { type: 'internal_error', code: 'unavailable' });
    const none = { attempts: [], tables: emptyTables, disturbances: [store] };
    expect(found({ calls: [noStore], ...none })).toEqual([]);
    const upstream = refused(502, { type: 'upstream_error', code: 'upstream_unavailable' });
    expect(found({ calls: [upstream], ...none })).toEqual([
      expect.stringMatching(/^cause: .*meanwhile: store-down/),
    ]);
    const host = refused(502, { message: 'Internal Server Error' });
    expect(found({ calls: [host], ...none })).toEqual([
      expect.stringMatching(/^cause: .*the host answered 502/),
    ]);
    const dead = { target: 'chat', pid: 7, atMs: at, planned: false };
    expect(found({ deaths: [dead] })).toEqual(['death: a process of chat (pid 7) died by itself']);
  });

  it('rows are matched with calls without an id so that each row gets a call that fits', () => {
    const cut = (number: number): CallSeen => ({
      ...whole,
      number,
      requestId: undefined,
      end: 'left',
      text: '',
    });
    const long: Attempt = { ...answer, call: 2, reported: { input: 10, output: 20 } };
    const calls = [cut(1), cut(2)];
    const released = { ...settledRow, id: 'r1', kind: 'released', charge: 0 };
    const settled = { ...settledRow, id: 'r2', charge: yuan(50_000) };
    const tables = {
      quotas: [quota({ available: 1e9 - 50_000, spent: 50_000 })],
      ledger: [released, settled],
      daily: sums({ calls: 2, charged: yuan(50_000) }),
    };
    // The free row fits both calls, the other row only the second.
    expect(found({ calls: calls.toReversed(), attempts: [failed, long], tables })).toEqual([]);
    expect(found({ calls, attempts: [failed, long], tables })).toEqual([]);
  });

  it("a Retry-After that is not the upstream's", () => {
    const limited: Attempt = {
      ...failed,
      served: 'rate-limited-retry-after',
      status: 429,
      retryAfterSeconds: 2,
    };
    const limit = { type: 'rate_limit_error', code: 'rate_limit_exceeded' };
    const call = (retryAfterSeconds: number) => refused(429, limit, { requestId: 'r1', retryAfterSeconds });
    expect(found({ calls: [call(2)], attempts: [limited], tables: releasedTables })).toEqual([]);
    expect(found({ calls: [call(30)], attempts: [limited], tables: releasedTables })).toEqual([
      expect.stringMatching(/^cause: .*Retry-After is 30/),
    ]);
  });

  it('an abandoned close although the store worked', () => {
    const loss = { atMs: at, message: 'settle_lost', line: '' };
    expect(found({ losses: [loss] })).toEqual([expect.stringMatching(/^lost: settle_lost at/)]);
    const store = { kind: 'store-down', fromMs: at - 5 * second, untilMs: at - 2 * second };
    expect(found({ losses: [loss], disturbances: [store] })).toEqual([]);
  });

  it('the text of another call', () => {
    const other: CallSeen = { ...whole, end: 'cut', fault: 'slow-reader', text: 'call2' };
    expect(found({ calls: [other] })).toContainEqual(
      expect.stringMatching(/was given a text that no upstream wrote/),
    );
  });

  it('a cut answer costs its estimate if its upstream reported counts only after the relay gave up', () => {
    const error = { type: 'upstream_error', code: 'upstream_timeout' };
    const given: CallSeen = { ...whole, end: 'error', text: 'call1', error };
    const estimated = { ...settledRow, kind: 'settled', charge: yuan(20_000) };
    const tables = { ...expiredTables, ledger: [estimated] };
    const more = { tables, disturbances: [{ kind: 'freeze', fromMs: at, untilMs: at + second }] };
    expect(found({ calls: [given], ...more })).toEqual([]);
    expect(
      found({ calls: [{ ...given, error: { ...error, code: 'upstream_error' } }], ...more }),
    ).toContainEqual(expect.stringMatching(/^charge: call 1 .* is settled for 20000/));
  });

  it('a kind of fault that was injected too rarely', () => {
    expect(missingFaults({ injected: new Map([['freeze', 19]]), quota: 20 })).toEqual(['freeze: 19 of 20']);
  });
});
