/** Budgets by tag and end user, as callers of every endpoint see them. */
import { describe, expect, it } from 'vitest';
import { AccountRow } from '../../../shared/config/rows/account-row.ts';
import { BillingRig, free, small, smallNeed, yuan } from '../../support/billing-rig.ts';
import { demoKey, hello, keyRow, type Answer, type RigOptions } from '../../support/core-rig.ts';

type Written = { by: string; name?: string; amount: number | string; period?: 'day' | 'month' };

const accountOf = (budgets: readonly Written[]): AccountRow =>
  AccountRow.parse({ account: 'acme', budgets: budgets.map((each) => ({ period: 'month', ...each })) });

const rigOf = (
  budgets: readonly Written[],
  options: RigOptions = {},
  key: Record<string, unknown> = {},
): BillingRig =>
  new BillingRig({ keys: { [demoKey]: { row: keyRow(key), account: accountOf(budgets) } }, ...options })
    .upstream({ steps: hello })
    .granted(100n * yuan);

const tagged = (tags: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${demoKey}`, ...(tags !== '' && { 'x-relay-tags': tags }) },
});
const errorOf = ({ text }: Answer): { code: string; type: string; message: string } =>
  (JSON.parse(text) as { error: { code: string; type: string; message: string } }).error;
/** The use of each budget, the largest first. */
const used = (rig: BillingRig): bigint[] =>
  [...rig.counters.budgets.values()].map((use) => use.used).toSorted((a, b) => (a < b ? 1 : -1));

describe('an account with budgets by tag', () => {
  const team = [
    { by: 'tag:team', name: 'search', amount: 1 },
    { by: 'tag:team', name: '*', amount: 2 },
  ];

  it.each([
    ['the budget of its name', 'team=search,env=prod', 'team=search', '1'],
    ['a budget of its own if only * matches', 'team=ads', 'team=ads', '2'],
    ['the shared budget of calls without the tag', '', 'Requests without the tag team', '2'],
  ])('counts a call on %s', async (_what, tags, named, amount) => {
    const rig = rigOf(team);
    expect((await rig.call(small, tagged(tags))).status).toBe(200);
    expect([rig.counters.budgets.size, used(rig)]).toEqual([1, [smallNeed]]);
    const { message } = errorOf(
      await rig.call({ ...small, max_tokens: 9_000 }, tagged(tags)).then(refusedAtLast(rig, tags)),
    );
    expect(message).toContain(named);
    expect(message).toContain(`may spend ${amount} yuan a month`);
  });

  it('counts each name separately, under an id that hides the name', async () => {
    const rig = rigOf(team);
    for (const tags of ['team=search', 'team=ads', 'team=ads', '', 'team=search'])
      expect((await rig.call(small, tagged(tags))).status).toBe(200);
    expect(used(rig)).toEqual([2n * smallNeed, 2n * smallNeed, smallNeed]);
    for (const name of rig.counters.budgets.keys()) expect(name).toMatch(/^[0-9a-f]{16}#2026-11$/);
  });

  it('accepts only listed names if * has no amount, and requires the tag', async () => {
    const rig = rigOf([
      { by: 'tag:team', name: 'search', amount: 1 },
      { by: 'tag:team', amount: 0 },
    ]);
    const statuses = [];
    for (const tags of ['team=search', 'team=invented', ''])
      statuses.push((await rig.call(small, tagged(tags))).status);
    expect(statuses).toEqual([200, 429, 429]);
  });

  it('never reserves more than the tightest budget in a hundred parallel calls', async () => {
    const rig = rigOf(
      [
        { by: 'tag:team', name: 'search', amount: 1 },
        { by: 'tag:team', name: 'search', amount: 0.5, period: 'day' },
        { by: 'end_user', amount: 0.7 },
        { by: 'tag:env', amount: 50 },
      ],
      {},
      { budget: { amount: 60, period: 'month' } },
    );
    const call = { ...small, user: 'alice' };
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => rig.call(call, tagged('team=search,env=prod'))),
    );
    const served = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    expect([served.length, refused.length]).toEqual([2, 98]);
    // Each of the five budgets reserves for the two served calls only.
    expect(used(rig)).toEqual(Array.from({ length: 5 }, () => 2n * smallNeed));
    expect(new Set(refused.map((answer) => errorOf(answer).code))).toEqual(new Set(['balance_reserved']));
  });

  it('lowers the output limit to the rest of the tightest budget', async () => {
    const rig = rigOf([{ by: 'end_user', name: 'alice', amount: 3 }]);
    const { headers } = await rig.call({ ...small, max_tokens: undefined, user: 'alice' });
    expect(headers).toMatchObject({ 'x-relay-limited-by': 'budget', 'x-relay-max-tokens': '1024' });
  });

  it.each([
    ['tag:team', 'team=search', {}, 'Requests with the tag team=search'],
    ['tag:team', '', {}, 'Requests without the tag team'],
    ['end_user', '', { user: 'alice' }, 'The end user "alice"'],
    ['end_user', '', {}, 'Requests without an end user'],
  ])(
    'rejects a call by %s "%s" with the rest, the reset time and the time zone',
    async (by, tags, more, who) => {
      const rig = rigOf([{ by, amount: 0.1 }], { settings: { timeZone: 'Asia/Shanghai' } });
      const answer = await rig.call({ ...small, ...more }, tagged(tags));
      expect([answer.status, answer.headers['x-should-retry'], errorOf(answer)]).toMatchObject([
        429,
        'false',
        {
          code: 'insufficient_quota',
          type: 'quota_exceeded_error',
          message:
            `${who} may spend 0.1 yuan a month, and 0.1 yuan are left; this request needs at least 0.178 yuan. ` +
            'The budget resets at 2026-11-30T16:00:00Z (midnight in Asia/Shanghai).',
        },
      ]);
      expect([rig.sent, rig.item?.available]).toEqual([[], 100n * yuan]);
    },
  );

  it.each([
    ['/v1/messages', { ...small, metadata: { user_id: 'alice' } }, 402, 'billing_error'],
    [
      '/v1/responses',
      { model: 'm', input: 'hi', max_output_tokens: 78, user: 'alice' },
      429,
      'quota_exceeded_error',
    ],
    ['/v1/embeddings', { model: 'm', input: 'hi', user: 'alice' }, 429, 'quota_exceeded_error'],
    [
      '/v1/responses',
      { model: 'm', input: 'hi', max_output_tokens: 78, user: 'alice', background: true },
      429,
      'quota_exceeded_error',
    ],
  ])('rejects a call to %s %o with %i', async (path, body, status, type) => {
    const rig = rigOf([{ by: 'end_user', name: 'alice', amount: 0.000_001 }], {}, { store: true });
    const answer = await rig.call(body, { path });
    expect([answer.status, errorOf(answer).type]).toEqual([status, type]);
    expect(errorOf(answer).message).toContain('The end user "alice" may spend 0.000001 yuan a month');
  });

  it('reserves for a background response when its run begins', async () => {
    const rig = rigOf([{ by: 'end_user', amount: 1 }], {}, { store: true });
    const body = { model: 'm', input: 'hi', max_output_tokens: 78, user: 'alice', background: true };
    expect((await rig.call(body, { path: '/v1/responses' })).status).toBe(200);
    expect(used(rig)).toEqual([]);
    await rig.clock.run(rig.runs());
    expect(used(rig)).toHaveLength(1);
  });

  it('reserves nothing for free calls, and writes nothing without budgets', async () => {
    for (const rig of [
      rigOf([{ by: 'end_user', amount: 0 }], { charges: [free] }),
      new BillingRig().upstream({ steps: hello }).granted(yuan),
    ]) {
      expect([(await rig.call(small)).status, used(rig)]).toEqual([200, []]);
    }
  });

  it('counts a call in the period in which it began, and starts the next period at zero', async () => {
    const rig = rigOf([{ by: 'end_user', amount: 0.2, period: 'day' }], { settings: { timeZone: 'UTC' } });
    await rig.clock.run(rig.clock.sleep(86_399_000));
    expect((await rig.call(small)).status).toBe(200);
    expect((await rig.call(small)).status).toBe(429);
    await rig.clock.run(rig.clock.sleep(2_000));
    expect((await rig.call(small)).status).toBe(200);
    const days = [...rig.counters.budgets].map(([name, use]) => [name.split('#')[1], use.used]);
    expect(days).toEqual([
      ['2026-11-21', smallNeed],
      ['2026-11-22', smallNeed],
    ]);
  });

  it('follows an edit, and shows 0 left after the amount was lowered below the use', async () => {
    const allow = (amount: number): object =>
      Object.assign(keys, {
        [demoKey]: { row: keyRow({}), account: accountOf([{ by: 'end_user', amount }]) },
      });
    const keys = {};
    allow(1);
    const rig = new BillingRig({ keys }).upstream({ steps: hello }).granted(yuan);
    expect((await rig.call(small)).status).toBe(200);
    allow(0.1);
    expect(errorOf(await rig.call(small)).message).toContain(
      'may spend 0.1 yuan a month, and 0 yuan are left',
    );
    allow(0.4);
    expect((await rig.call(small)).status).toBe(200);
    expect(used(rig)).toEqual([2n * smallNeed]);
  });
});

/** Calls until the budget refuses. */
const refusedAtLast =
  (rig: BillingRig, tags: string) =>
  async (first: Answer): Promise<Answer> => {
    let answer = first;
    for (let calls = 0; answer.status === 200 && calls < 20; calls += 1)
      answer = await rig.call(small, tagged(tags));
    return answer;
  };
