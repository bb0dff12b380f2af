import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { runOps } from '../ops/run-ops.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { frames } from '../support/upstream-scripts.ts';
import { keyOf, MoneyReader, nano, rowsOfAccount, until, type Row } from './money-reader.ts';

const models = ['tiered', 'cached', 'by-call', 'free'];
const byTokens = { type: 'token-billing', input: 0.003, output: 0.0071 };
const charges: Row[] = [
  { id: 1, ...byTokens, models: ['tiered'], tiers: [{ above: 500, input: 0.0061, output: 0.0133 }] },
  { id: 2, ...byTokens, models: ['cached'], cached_input: 0.00031, cache_write: 0.0037 },
  { id: 3, type: 'times-billing', models: ['by-call'], output: 0.4 },
  { id: 4, type: 'non-billing', models: ['free'] },
];

let upstream: ScriptedUpstream;
let stack: WatchedStack;
const folder = mkdtempSync(path.join(tmpdir(), 'relay-what-if-'));

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  const cost = { '*': { input: 0.0011, output: 0.0023 } };
  stack = await startWatchedStack({
    environmentsMax: 1,
    rows: [
      ['channels', { id: 'main', endpoint: upstream.endpoint, models, state: true, cost }],
      ...charges.map((row): ['charges', Row] => ['charges', row]),
      ...rowsOfAccount('acme', 100),
    ],
  });
  const money = new MoneyReader(stack);
  await until(async () => (await money.accounts()).get('acme')?.available === 100 * nano);
});
afterAll(async () => {
  await stack.stop();
  await upstream.close();
  rmSync(folder, { recursive: true });
});

const headers = { authorization: `Bearer ${keyOf('acme')}` };
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } };

/** A call whose upstream counts so much. */
async function call(model: string, usage: object, more: object[] = []): Promise<void> {
  upstream.script(
    frames(chunk({ role: 'assistant', content: 'A dot.' }), chunk({}, 'stop'), usageChunk(usage)),
  );
  const content = [{ type: 'text', text: 'What is it? '.repeat(80) }, ...more];
  const body = { model, stream: true, messages: [{ role: 'user', content }] };
  const answer = await stack.post(body, { headers });
  await answer.text();
  expect(answer.status).toBe(200);
}

interface Shown {
  total: {
    charged: string;
    revenue: { before: object; after: object };
    bought: { before: object; after: object };
  };
}

async function whatIf(rows: object): Promise<Shown> {
  const file = path.join(folder, 'rows.json');
  writeFileSync(file, JSON.stringify(rows));
  const { code, output, errors } = await runOps(['what-if', file, '--json'], {
    AWS_ENDPOINT_URL_DYNAMODB: stack.store.endpoint,
  });
  if (code !== 0) throw new Error(errors + output);
  return JSON.parse(output) as Shown;
}

const counted = (prompt_tokens: number, completion_tokens: number, cached_tokens = 0) => ({
  prompt_tokens,
  completion_tokens,
  prompt_tokens_details: { cached_tokens },
});

it('says of an unchanged configuration what was charged, and so does the customer’s usage by day', async () => {
  await call('tiered', counted(301, 7));
  await call('tiered', counted(707, 13));
  await call('cached', counted(333, 11, 256));
  await call('cached', counted(413, 3), [picture]);
  await call('by-call', counted(300, 5));
  await call('by-call', counted(299, 5), [picture]);
  await call('free', counted(300, 5));
  const account = async () =>
    (await (await fetch(`${stack.origin}/v1/account?days=2`, { headers })).json()) as {
      spent: number;
      days: { data: { model: string; calls: number; charge: number; cached_tokens: number }[] };
    };
  await until(async () => (await account()).days.data.reduce((sum, { calls }) => sum + calls, 0) === 7);
  const { spent, days } = await account();
  const { total } = await whatIf({ charges });
  expect(Math.round(Number(total.charged) * nano)).toBe(Math.round(spent * nano));
  expect(spent).toBeGreaterThan(0.8);
  const exact = { low: total.charged, high: total.charged, within_percent: 0 };
  expect(total.revenue).toEqual({ before: exact, after: exact });
  expect(total.bought.after).toEqual(total.bought.before);
  const sum = days.data.reduce((all, { charge }) => all + Math.round(charge * nano), 0);
  expect(sum).toBe(Math.round(spent * nano));
  expect(days.data.find(({ model }) => model === 'cached')).toMatchObject({ calls: 2, cached_tokens: 256 });
});
