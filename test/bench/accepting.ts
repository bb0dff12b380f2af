/**
 * How long a background response takes from the request to the queued object, or to the first event, on the running
 * stack: `npm run build && npm run app && node test/bench/accepting.ts`. Once at the emulator's speed, and once with 10 ms
 * added to each table call, which is at least what a table in AWS takes.
 */
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import { startLocalStack } from '../support/local-stack.ts';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import { textStream } from '../support/upstream-scripts.ts';

const key = 'sk-accepting';
const calls = 30;
const turns = 20;

await using started = new AsyncDisposableStack();
const emulator = started.adopt(await startEmulator(), (one) => one.stop());
const upstream = started.adopt(await startScriptedUpstream(), (one) => one.close());
const store = started.adopt(await startFaultProxy({ upstream: emulator.endpoint, seed: 1 }), (one) =>
  one.close(),
);
upstream.script(textStream('It is sunny.'));
const client = started.adopt(emulatorClient(emulator.endpoint), (one) => one.destroy());
const documents = DynamoDBDocumentClient.from(client);
const rows = [
  ['channels', { id: 'main', endpoint: upstream.endpoint, models: ['m'], state: true }],
  ['keys', { hash: keyHash(key), account: 'acme', store: true }],
  ['charges', { id: 1, type: 'non-billing', models: ['m'] }],
] as const;
for (const [table, Item] of rows) await documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));
const stack = started.adopt(
  await startLocalStack({ seed: 'none', env: { DYNAMODB_ENDPOINT: store.endpoint } }),
  (one) => one.stop(),
);
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
const post = async (more: object): Promise<Response> => {
  const body = JSON.stringify({ model: 'm', input: 'How is it?', ...more });
  const response = await fetch(`${stack.baseUrl}/responses`, { method: 'POST', headers, body });
  if (response.status !== 200) throw new Error(await response.text());
  return response;
};
const idOf = async (response: Response): Promise<string> => ((await response.json()) as { id: string }).id;

async function ended(id: string): Promise<void> {
  for (let status = ''; status !== 'completed';) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const response = await fetch(`${stack.baseUrl}/responses/${id}`, { headers });
    ({ status } = (await response.json()) as { status: string });
  }
}

/** Milliseconds until the response is reported as queued; then waits for its end. */
async function acceptedMs(more: object): Promise<number> {
  const startMs = performance.now();
  const response = await post({ background: true, ...more });
  const reader = response.body?.getReader();
  const text = new TextDecoder().decode((await reader?.read())?.value);
  const tookMs = performance.now() - startMs;
  const id = /"id":"(resp-\w+)"/.exec(text)?.[1];
  if (id === undefined || !text.includes('"status":"queued"')) throw new Error(text);
  await reader?.cancel();
  await ended(id);
  return tookMs;
}

let previous: string | undefined;
for (let turn = 0; turn < turns; turn += 1)
  previous = await idOf(await post({ previous_response_id: previous }));
const kinds: [kind: string, more: object][] = [
  ['one question', {}],
  ['with stream, to the first event', { stream: true }],
  ['with a megabyte of input', { input: 'word '.repeat(200_000) }],
  [`after ${turns} turns`, { previous_response_id: previous }],
];
for (const delayMs of [0, 10]) {
  if (delayMs > 0) store.rules.add({ fault: { kind: 'slow', delayMs }, services: ['dynamodb'] });
  for (const [kind, more] of kinds) {
    for (let i = 0; i < 3; i += 1) await acceptedMs(more);
    const took: number[] = [];
    for (let i = 0; i < calls; i += 1) took.push(await acceptedMs(more));
    took.sort((a, b) => a - b);
    const at = (share: number): string => (took[Math.ceil(share * calls) - 1] ?? NaN).toFixed(0);
    console.log(`${delayMs} ms more, ${kind}: median ${at(0.5)} ms, 90 % ${at(0.9)}, most ${at(1)}`);
  }
}
