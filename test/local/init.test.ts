import { afterAll, beforeAll, expect, it } from 'vitest';
import { runOps, runOpsAttended } from '../ops/run-ops.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
let stack: LocalStack;
beforeAll(async () => {
  upstream = await startScriptedUpstream();
  upstream.script((_call, reply) =>
    reply.json(200, {
      choices: [{ index: 0, message: { role: 'assistant', content: 'ready' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1000, completion_tokens: 1000, total_tokens: 2000 },
    }),
  );
  stack = await startLocalStack({ seed: 'none' });
});
afterAll(async () => {
  await stack.stop();
  await upstream.close();
});

const variables = () => ({ AWS_ENDPOINT_URL_DYNAMODB: stack.dynamodbEndpoint });

const ask = async (model: string, key: string): Promise<number> => {
  const response = await fetch(`${stack.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }] }),
  });
  await response.text();
  return response.status;
};

it('after init only the named models are free: the running stack rejects a model without a price', async () => {
  const words = ['init', '--id', 'first', '--endpoint', upstream.endpoint, '--no-secret', '--account', 'me'];
  const models = ['--models', 'priced,unpriced,gratis', '--price', 'priced=1000/2000', '--free', 'gratis'];
  const run = await runOpsAttended([...words, ...models, '--amount', '10'], variables(), [
    ['[openai]:', ''],
    ['Price list file in US dollars (Enter to type prices):', ''],
    ['input/output in yuan per million tokens (Enter for none; its calls are then refused):', ''],
    ['[y/N]', 'y'],
  ]);
  expect(run).toMatchObject({ code: 0 });
  expect(run.errors).toContain(
    'unpriced has no price: its calls are refused until you set one with `charge price`',
  );
  expect(run.output).toContain(`curl -N ${stack.baseUrl}/chat/completions`);
  const key = String(/sk-[\w-]{48}/.exec(run.output)?.[0]);
  await expect.poll(() => ask('priced', key), { timeout: 20_000, interval: 300 }).toBe(200);
  expect(await ask('gratis', key)).toBe(200);
  expect(await ask('unpriced', key)).toBe(404);

  // Added by hand later, without a price.
  const added = ['channel', 'new', 'later', `endpoint=${upstream.endpoint}`, 'models=later', '--yes'];
  expect(await runOps(added, variables())).toMatchObject({ code: 0 });
  await expect
    .poll(async () => (await runOps(['check'], variables())).output, { timeout: 20_000, interval: 500 })
    .toContain('no price for later');
  expect(await ask('later', key)).toBe(404);
  const ledger = async () =>
    JSON.parse(
      (await runOps(['ledger', 'total', '--by', 'model', '--json'], variables())).output,
    ) as object[];
  await expect
    .poll(ledger, { timeout: 20_000, interval: 300 })
    .toEqual(expect.arrayContaining([expect.objectContaining({ model: 'priced', charged: '3' })]));
  expect(JSON.stringify(await ledger())).not.toContain('unpriced');
});
