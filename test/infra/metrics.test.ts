/** Runs the deployed bundle of an answering function, whose log lines CloudWatch reads. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyHash } from '../../shared/wire/ids.ts';
import { startFunctions, type FunctionHost } from '../contract/function-host.ts';
import { metricsOf } from '../support/embedded-metrics.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { urlEvent } from '../unit/adapters/lambda/url-event.ts';

let host: FunctionHost;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  [host, upstream] = await Promise.all([startFunctions(), startScriptedUpstream()]);
  await host.put('keys', { hash: keyHash('sk-metrics'), account: 'acme', hint: 'sk-...ics' });
  await host.put('channels', { id: 'open', endpoint: upstream.endpoint, models: ['plain'], state: true });
});
afterAll(() => Promise.all([host.stop(), upstream.close()]));

const messages = [{ role: 'user', content: 'Hello!' }];

async function lineOf(model: string): Promise<string> {
  const { head } = await host.streamAll(
    urlEvent({
      headers: { 'x-relay-origin': 'cloudfront', authorization: 'Bearer sk-metrics' },
      body: JSON.stringify({ model, messages }),
    }),
  );
  const id = String(head.headers?.['x-request-id']);
  const line = await host.line((text) => text.includes(id) && text.includes('"duration_ms"'));
  return line.slice(line.indexOf('{'));
}

const countsOf = async (model: string) =>
  metricsOf(await lineOf(model)).filter(({ name }) => name === 'Requests');

test('a request to a function is counted on its normal log line', async () => {
  await host.put('channels', {
    id: 'closed',
    endpoint: 'http://127.0.0.1:1/v1',
    models: ['demo'],
    state: true,
  });
  expect(await countsOf('unheard-of')).toMatchObject([
    { dimensions: { stack: 'relay' }, value: 1 },
    { dimensions: { stack: 'relay', channel: 'none', outcome: 'refused' }, value: 1 },
  ]);
  expect(await countsOf('demo')).toMatchObject([
    { dimensions: { stack: 'relay' }, value: 1 },
    { dimensions: { stack: 'relay', channel: 'closed', outcome: 'failed' }, value: 1 },
  ]);
});

test('a success writes one line of at most 900 bytes, and a failure one of at most 3,000', async () => {
  upstream.script(textStream('Hello there.'));
  await lineOf('plain');
  const before = host.lines.length;
  const line = await lineOf('plain');
  expect(JSON.parse(line)).toMatchObject({ outcome: 'completed', channel: 'open' });
  expect(host.lines.slice(before).filter((text) => text.includes('"level"'))).toHaveLength(1);
  expect(Buffer.byteLength(`${line}\n`)).toBeLessThanOrEqual(900);
  expect(Buffer.byteLength(`${await lineOf('demo')}\n`)).toBeLessThanOrEqual(3_500);
});
