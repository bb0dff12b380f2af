import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WatchedStack } from '../hardening/watched-stack.ts';
import type { Script, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { accountsStack, leaveAccountsStack } from './accounts-stack.ts';
import { limitsIn, writesUpTo } from './metered-upstream.ts';
import { keyOf, nano, rowsOfAccount, until, type MoneyReader, type Row } from './money-reader.ts';

/** Operators' limits on the running stack. */
const budget = 2;
const callsAMinute = 3;
/** Calls at once, each in a process. */
const crowd = 6;
const marksWithin = { timeout: 10_000, interval: 300 };

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;

beforeAll(async () => {
  ({ stack, upstream, money } = await accountsStack([
    ...rowsOfAccount('crashed', 100, { max_concurrency: 1 }),
    ...rowsOfAccount('budgeted', 100, { budget: { amount: budget, period: 'day' } }),
    ...rowsOfAccount('tagged', 100),
    ...rowsOfAccount('key-rpm', 100, { rpm: callsAMinute }),
    ...rowsOfAccount('rpm', 100),
    ...rowsOfAccount('tpm', 100),
    ...rowsOfAccount('narrow', 100),
    ...rowsOfAccount('off', 100),
    ...rowsOfAccount('capped', 100),
    ...rowsOfAccount('warm', 100),
    ['accounts', { account: 'tagged', budgets: [{ by: 'end_user', amount: budget, period: 'day' }] }],
    ['accounts', { account: 'rpm', rpm: callsAMinute }],
    ['accounts', { account: 'tpm', tpm: 100 }],
    ['accounts', { account: 'narrow', concurrency: 2 }],
    ['accounts', { account: 'off', enabled: false }],
  ]));
});
afterAll(leaveAccountsStack);
beforeEach(() => {
  upstream.forget();
  upstream.script(writesUpTo(10));
});

const post = (account: string, more: Row = {}): Promise<Response> =>
  stack.post(
    { model: 'plain', messages: [{ role: 'user', content: 'hi' }], ...more },
    { headers: { authorization: `Bearer ${keyOf(account)}` } },
  );

const together = (count: number, call: () => Promise<Response>): Promise<Response[]> =>
  Promise.all(Array.from({ length: count }, call));

/** `200`, or the code of the error. */
async function outcome(response: Response): Promise<string> {
  if (response.status === 200) return response.text().then(() => '200');
  return ((await response.json()) as { error: { code: string } }).error.code;
}
const outcomes = async (answers: Response[]): Promise<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(Object.groupBy(await Promise.all(answers.map(outcome)), (code) => code)).map(
      ([code, list]) => [code, list?.length ?? 0],
    ),
  );

/** Calls that start shortly before the next minute would be counted in two minutes. */
async function wellInsideAMinute(): Promise<void> {
  await until(async () => Date.now() % 60_000 < 55_000);
}

/** Waits until this many environments have started, because on a busy machine a start takes longer than a call may. */
async function warmed(count: number): Promise<void> {
  upstream.script(async (call, reply) => {
    await until(async () => upstream.requests.length >= count);
    await writesUpTo(10)(call, reply);
  });
  const answers = await together(count, () => post('warm'));
  await Promise.all(answers.map((answer) => answer.text()));
  upstream.forget();
}

/** No call ends before each was accepted or rejected. */
async function atOnce(count: number, call: () => Promise<Response>): Promise<Record<string, number>> {
  await warmed(count);
  let refused = 0;
  upstream.script(async (asked, reply) => {
    await until(async () => refused + upstream.requests.length >= count);
    await writesUpTo(10)(asked, reply);
  });
  const answers = await together(count, async () => {
    const answer = await call();
    if (answer.status !== 200) refused += 1;
    return answer;
  });
  return outcomes(answers);
}

describe('a call that crashed', () => {
  it('occupies the only permit of its key until the lease ends', async () => {
    upstream.script(async (_call, reply) => reply.hang());
    const crashed = post('crashed').catch(() => undefined);
    await upstream.nextRequest();
    await stack.killProcesses('chat');
    await crashed;
    upstream.script(writesUpTo(10));
    expect(await outcome(await post('crashed'))).toBe('rate_limit_exceeded');
  });
});

describe.each([
  ['a key', 'budgeted', {}],
  ['an end user', 'tagged', { user: 'alice' }],
])('a budget of a day of %s', (_whose, account, more) => {
  it('is never exceeded by parallel calls, and their unused part is released', async () => {
    const codes = await atOnce(crowd, () => post(account, { max_tokens: 5000, ...more }));
    const letIn = upstream.requests.length;
    expect(codes).toEqual({ 200: letIn, balance_reserved: crowd - letIn });
    const limits = upstream.requests.map((call) => Math.min(...limitsIn(call)));
    expect(limits.reduce((sum, limit) => sum + limit, 0) * 0.0002).toBeLessThanOrEqual(budget);
    // The unused part is released call by call.
    const limitNow = async (): Promise<number> => {
      await post(account, { max_tokens: 9000, ...more });
      return Math.min(...limitsIn(upstream.requests.at(-1)!));
    };
    await expect.poll(limitNow, marksWithin).toBeGreaterThan(8000);
  });

  it('lowers the output limit of a call to the rest of the budget, then rejects calls and names the budget', async () => {
    upstream.script(writesUpTo(100_000));
    const spent = async (): Promise<number> => (await money.settled(account)).spent;
    let answer = await post(account, { max_tokens: 100_000, ...more });
    // The reservation of the previous call is released with its ledger row.
    await until(async () => {
      if (answer.status !== 200) answer = await post(account, { max_tokens: 100_000, ...more });
      return answer.status === 200;
    });
    expect(answer.headers.get('x-relay-limited-by')).toBe('budget');
    expect(Number(answer.headers.get('x-relay-max-tokens'))).toBeLessThan(10_000);
    await answer.text();
    let refused: Response | undefined;
    await until(async () => {
      const next = await post(account, { max_tokens: 100_000, ...more });
      if (next.status === 429) refused = next;
      else await next.text();
      return refused !== undefined;
    });
    expect(await refused?.json()).toMatchObject({
      error: {
        message: expect.stringMatching(
          /may spend 2 yuan a day.*The budget resets at \d{4}-\d\d-\d\dT00:00:00Z/,
        ),
      },
    });
    expect(await spent()).toBeLessThanOrEqual(budget * nano);
  });
});

describe('a limit', () => {
  it('of calls a minute is enforced for a key', async () => {
    await wellInsideAMinute();
    const answers = await together(10, () => post('key-rpm'));
    expect(await outcomes(answers)).toEqual({ 200: 3, rate_limit_exceeded: 7 });
  });

  it('of calls a minute is enforced for an account', async () => {
    await wellInsideAMinute();
    expect(await outcomes(await together(10, () => post('rpm')))).toEqual({ 200: 3, rate_limit_exceeded: 7 });
  });

  it('of tokens a minute is enforced for an account once the tokens are known', async () => {
    await wellInsideAMinute();
    upstream.script(writesUpTo(200));
    expect(await outcome(await post('tpm', { max_tokens: 200 }))).toBe('200');
    await money.settled('tpm');
    const refused = await post('tpm');
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await outcome(refused)).toBe('rate_limit_exceeded');
  });

  it('of running calls is enforced for an account', async () => {
    expect(await atOnce(crowd, () => post('narrow'))).toEqual({ 200: 2, rate_limit_exceeded: crowd - 2 });
    await money.settled('narrow');
    expect(await outcome(await post('narrow'))).toBe('200');
  });

  it('that a model rejects as too high is omitted in a retry, and the channel gets a mark', async () => {
    upstream.script(refusesAbove(4096));
    expect(await outcome(await post('capped', { model: 'strict', max_tokens: 50_000 }))).toBe('200');
    expect(upstream.requests.map((call) => limitsIn(call))).toEqual([[50_000], []]);
    await expect
      .poll(async () => {
        const { Item } = await stack.store.documents.send(
          new GetCommand({ TableName: 'relay-channels', Key: { id: 'strict' } }),
        );
        return Item?.['_warning'] as unknown;
      }, marksWithin)
      .toMatch(/max_tokens|limit/);
  });
});

describe('a disabled account', () => {
  it('has no valid key', async () => {
    expect((await post('off')).status).toBe(401);
  });
});

describe('the call that crashed earlier', () => {
  it('releases its permit and its reservation', async () => {
    // The lease ends after `request_seconds`.
    await until(async () => (await outcome(await post('crashed'))) === '200', 500);
    await until(async () => {
      await stack.runSchedules();
      return (await money.account('crashed')).open === 0;
    });
    const rows = await money.ledger('crashed', 2);
    expect(new Set(rows.map(({ kind }) => kind))).toEqual(new Set(['expired', 'settled']));
    const { spent, available } = await money.account('crashed');
    expect(available + spent).toBe(100 * nano);
    // Lease, sweep and ledger take time one after the other.
  }, 60_000);
});

/** Rejects limits above this, as OpenAI does; without a limit it writes ten tokens. */
function refusesAbove(max: number): Script {
  return async (call, reply) => {
    const [limit = 0] = limitsIn(call);
    if (limit <= max) return writesUpTo(10)(call, reply);
    const message = `max_tokens is too large: ${limit}. This model supports at most ${max} completion tokens.`;
    reply.json(400, {
      error: { message, type: 'invalid_request_error', param: 'max_tokens', code: 'invalid_value' },
    });
  };
}
