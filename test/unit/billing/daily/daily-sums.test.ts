import { describe, expect, it, test } from 'vitest';
import {
  countRow,
  type DailyFigures,
  sumDaily,
  groupIntoTransactions,
} from '../../../../shared/billing/daily-figures.ts';
import {
  listDailyKeys,
  dayOf,
  expiryOf,
  listBucketIds,
  isOfAllAccounts,
  removeBucket,
} from '../../../../shared/billing/daily-keys.ts';
import type { CloseRow, GrantLedgerRow, LedgerRow } from '../../../../shared/billing/ledger-row.ts';
import { compareCodeUnits } from '../../../../shared/wire/json.ts';
import { timeText } from '../../../../shared/wire/ids.ts';

const idAt = (iso: string, end = '0'): string => timeText(Date.parse(iso)).padEnd(26, end);

const row = (changes: Partial<CloseRow> = {}): CloseRow => ({
  account: 'acme',
  id: idAt('2026-11-21T23:59:50Z'),
  at: '2026-11-22T00:00:10Z',
  kind: 'settled',
  model: 'm',
  key: '0123456789ab',
  charge: 7n,
  reserved: 9n,
  prompt_tokens: 10,
  completion_tokens: 4,
  end: 'completed',
  price: '1:free',
  ...changes,
});
const grant: GrantLedgerRow = {
  account: 'acme',
  id: 'grant#first',
  at: '2026-11-22T01:00:00Z',
  kind: 'grant',
  amount: 5n,
  reason: '',
};

describe('a ledger row is counted', () => {
  it.each<[string, LedgerRow, string[]]>([
    [
      'on the UTC day and in the hour in which its call began, for account, channel and model, and in the month',
      row({ channel: 'openai', upstream_model: 'm-2026' }),
      [
        'account#acme day#2026-11-21#m',
        'account#acme hour#2026-11-21T23#m',
        'channel#openai day#2026-11-21#m-2026',
        'served day#2026-11-21#m#openai',
        'month.2#2026-11 account#acme',
      ],
    ],
    [
      'for no channel when none was tried',
      row(),
      [
        'account#acme day#2026-11-21#m',
        'account#acme hour#2026-11-21T23#m',
        'served day#2026-11-21#m#',
        'month.2#2026-11 account#acme',
      ],
    ],
    ["nowhere when it is a tombstone's", row({ kind: 'cancelled' }), []],
    [
      'by the time of its application when it is a grant',
      grant,
      ['account#acme day#2026-11-22#(grants)', 'month.2#2026-11 account#acme'],
    ],
  ])('%s', (_case, counted, keys) => {
    expect(listDailyKeys(counted).map(({ id, period }) => `${id} ${period}`)).toEqual(keys);
  });

  test('and the sum of an hour expires three days later, the sum of a day never', () => {
    const [day, hour] = listDailyKeys(row()).map((key) => [dayOf(key), expiryOf(key)]);
    expect([day, hour]).toEqual([
      ['2026-11-21', undefined],
      [undefined, Date.parse('2026-11-24T23:00:00Z') / 1000],
    ]);
    expect(countRow(grant)).toEqual({ counts: { grants: 1 }, amounts: { granted: 5n } });
  });
});

describe('the daily sums count', () => {
  it.each<[string, Partial<CloseRow>, DailyFigures['counts'], DailyFigures['amounts']]>([
    ['calls and charges', {}, { calls: 1 }, { charged: 7n }],
    [
      'tokens by kind',
      { cached_tokens: 6, cache_write_tokens: 2 },
      { cached_tokens: 6, cache_write_tokens: 2 },
      {},
    ],
    ['a failure of the upstream', { kind: 'released', end: 'failed' }, { failures: 1 }, {}],
    ['a failure in the middle', { end: 'failed' }, { failures: 1 }, { charged: 7n }],
    ['an expiry, as a failure', { kind: 'expired', end: undefined }, { failures: 1 }, {}],
    ['a client that left, as no failure', { end: 'client_gone' }, { failures: 0 }, {}],
    [
      "the operator's cost, and the charges of calls with a known cost",
      { bought: 3n },
      { bought_calls: 1 },
      { bought: 3n, bought_charged: 7n },
    ],
    ['a cost of nothing, as known', { bought: 0n }, { bought_calls: 1 }, { bought: 0n, bought_charged: 7n }],
    ['an unknown cost, not at all', {}, { bought_calls: 0 }, { bought: 0n, bought_charged: 0n }],
    ['calls on a plan', { plan_slot: 'chat@2026-11-05', charge: 0n }, { plan_calls: 1 }, { charged: 0n }],
    [
      'official calls',
      { official: true, cost: 4n, charge: 0n },
      { official_calls: 1 },
      { official_cost: 4n },
    ],
    ['estimates and flags', { estimated: true, flag: 'too_low' }, { estimated: 1, flagged: 1 }, {}],
    [
      'the difference of a late settle, but no second call',
      { id: `late#${row().id}`, end: 'failed' },
      { calls: 0, failures: 0, prompt_tokens: 10 },
      { charged: 7n },
    ],
  ])('%s', (_what, changes, counts, amounts) => {
    expect(countRow(row(changes))).toMatchObject({ counts, amounts });
  });
});

describe('a bucket of a sum over all accounts', () => {
  const counted = row({ channel: 'a.5#b.6', upstream_model: 'm.7' });

  test('has a unique id, whatever the channel is named, and is found by the id of the sum', () => {
    const sums = listDailyKeys(counted).filter(({ id }) => isOfAllAccounts(id));
    const inThree = listDailyKeys(counted, 3).filter(({ id }) => isOfAllAccounts(id));
    expect(inThree.map(({ id }) => id)).toEqual(['channel.3#a.5#b.6', 'served.3']);
    expect(inThree.map(removeBucket)).toEqual(sums);
    expect(sums.map(removeBucket)).toEqual(sums);
    for (const [at, { id }] of sums.entries()) expect(listBucketIds(id)).toContain(inThree[at]?.id);
  });

  test('does not exist for an account or its month', () => {
    const own = (bucket: number) => listDailyKeys(counted, bucket).filter(({ id }) => !isOfAllAccounts(id));
    expect(own(7)).toEqual(own(0));
    expect(listBucketIds('account#served.3')).toEqual(['account#served.3']);
  });
});

describe('rows of one batch', () => {
  it('are added up to one sum per item', () => {
    const rows = [
      row(),
      row({ id: idAt('2026-11-21T23:00:00Z'), charge: 10n ** 20n }),
      row({ model: 'other' }),
    ];
    const sums = sumDaily([...rows, grant]);
    expect(sums).toHaveLength(8);
    const day = sums.find(({ key }) => key.period === 'day#2026-11-21#m');
    expect(day?.figures).toEqual({
      counts: { calls: 2, prompt_tokens: 20, completion_tokens: 8 },
      amounts: { charged: 10n ** 20n + 7n },
    });
  });

  it('have the same figures in any bucket, also for unpaid calls', () => {
    const rows = [
      row({ channel: 'openai', charge: 0n, official: true }),
      row({ channel: 'openai', metered: true }),
    ];
    const inFirst = sumDaily(rows);
    const inOther = sumDaily(rows, 3).map((sum) => Object.assign({}, sum, { key: removeBucket(sum.key) }));
    expect(inOther).toEqual(inFirst);
    const served = inFirst.find(({ key }) => key.id === 'served')?.figures;
    expect(served).toMatchObject({ counts: { unpaid_calls: 1 }, amounts: { charged: 7n, metered: 7n } });
  });

  it.each([100, 7, 5, 3])('fit into transactions of at most %i writes', (writesMax) => {
    const rows = Array.from({ length: 60 }, (_, at) =>
      row({ id: String(at).padStart(26, '0'), account: `account ${at % 9}`, channel: `channel ${at % 4}` }),
    );
    const groups = groupIntoTransactions(rows, writesMax);
    expect(groups.flat().toSorted((a, b) => compareCodeUnits(a.id, b.id))).toEqual(rows);
    for (const group of groups)
      if (group.length > 1) expect(group.length + sumDaily(group).length).toBeLessThanOrEqual(writesMax);
  });
});
