import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { textThenSilence } from '../support/upstream-scripts.ts';
import { keyOf, MoneyReader, rowsOfAccount, until } from '../local/money-reader.ts';

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;

const accounts = ['killed'] as const;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startWatchedStack({
    environmentsMax: 3,
    functionEnvironment: { RELAY_SWEEP_GRACE: '0' },
    rows: [
      [
        'channels',
        { id: 'later', endpoint: upstream.endpoint, models: ['later'], state: true, idle_seconds: 300 },
      ],
      ['charges', { id: 20, type: 'token-billing', models: ['later'], input: 0.001, output: 0.001 }],
      ...accounts.flatMap((account) => rowsOfAccount(account, 1, { store: true })),
    ],
  });
  money = new MoneyReader(stack);
});
afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
});

type Account = (typeof accounts)[number];
const headersOf = (account: Account) => ({ authorization: `Bearer ${keyOf(account)}` });

const ask = (account: Account) =>
  stack.post(
    { model: 'later', input: 'Hello', max_output_tokens: 100, background: true },
    { path: '/v1/responses', headers: headersOf(account) },
  );

async function accepted(account: Account): Promise<string> {
  const response = await ask(account);
  const object = (await response.json()) as { id: string; status: string };
  expect([response.status, object.status]).toEqual([200, 'queued']);
  return object.id;
}

const call = async (account: Account, path: string, method = 'GET'): Promise<Response> =>
  fetch(`${stack.origin}/v1/responses/${path}`, { method, headers: headersOf(account) });

async function ended(account: Account, id: string): Promise<Record<string, unknown>> {
  let object: Record<string, unknown> = {};
  await until(async () => {
    object = (await (await call(account, id)).json()) as Record<string, unknown>;
    return !['queued', 'in_progress'].includes(String(object['status']));
  });
  return object;
}

describe('a background response on the running stack', () => {
  it('whose function is killed is found failed, and its reservation is closed', async () => {
    upstream.script(textThenSilence('Hello'));
    const before = stack.processes('background').length;
    const arrived = upstream.nextRequest();
    const id = await accepted('killed');
    await arrived;
    const pids = stack.processes('background');
    expect(pids.length).toBeGreaterThanOrEqual(before);
    for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    expect(await ended('killed', id)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    await until(async () => {
      await stack.runSchedules();
      return (await money.account('killed')).open === 0;
    });
    expect(await money.ledger('killed', 1)).toMatchObject([{ kind: 'expired' }]);
  }, 120_000);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
