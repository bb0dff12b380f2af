/**
 * The log volume of calls in bytes: the core's own records through the functions' log and metrics. AWS bills each byte,
 * and docs/cost.md uses these bounds.
 */
import { describe, expect, test } from 'vitest';
import { createJsonLog, createRequestMetrics } from '../../../../shared/adapters/telemetry/log.ts';
import { BillingRig, stream, yuan } from '../../../support/billing-rig.ts';
import { delta, done, finish, hello, usage } from '../../../support/core-rig.ts';
import { linesOf } from '../../../support/embedded-metrics.ts';

/** Names as long as in a real deployment. */
const id = '01JD3Q8Z6V8V9X2K7M4N5P6Q7R';
const model = 'gpt-4o-mini-2024-07-18';
const channel = (id: string, priority: number) => ({ id, priority, models: [model] });
const main = channel('openai-main', 3);
const charges = [{ id: 1, type: 'token-billing', models: [model], input: 0.0011, output: 0.0044 }];
const key = { hint: 'sk-...abcd' };

const rigOf = (channels: Record<string, unknown>[] = [main]): BillingRig =>
  new BillingRig({ channels, charges, key }).granted(1000n * yuan);

async function bytesOf(rig: BillingRig): Promise<number> {
  const log = createJsonLog('1.12.3', createRequestMetrics('relay-production', 'responses:1234'));
  const lines = await linesOf(() => {
    for (const entry of rig.logged) log.request({ ...entry, request_id: id, account: 'acme-industries' });
    for (const { name, fields } of rig.events) log.event(name, fields);
    for (const fault of rig.faults) log.fault(id, fault);
  });
  expect(rig.logged).toHaveLength(1);
  return Buffer.byteLength(lines.map((line) => `${line}\n`).join(''));
}

/** The reference stream: 20 KB in the request, 500 chunks in the answer. */
const text = 'word '.repeat(4000);
const long = [...Array.from({ length: 500 }, () => delta(' word')), finish(), usage(4_003, 500), done];

describe('a success logs at most 900 bytes, metrics included', () => {
  test.each([
    ['streamed', { stream: true }],
    ['as JSON', {}],
  ])('%s', async (_name, body) => {
    const rig = rigOf().upstream({ steps: long });
    await rig.call({ model, messages: [{ role: 'user', content: text }], ...body });
    expect(rig.logged[0]).toMatchObject({ end: 'completed', prompt_tokens: 4_003, completion_tokens: 500 });
    const bytes = await bytesOf(rig);
    expect(bytes).toBeLessThanOrEqual(900);
  });
});

describe('a failure logs at most 3,500 bytes, including its history', () => {
  test('when an answer breaks off, and its settle is lost', async () => {
    const rig = rigOf().upstream({ steps: hello.slice(0, 2) });
    rig.store.always('dropped', 'close');
    await rig.call({ ...stream, model });
    expect(rig.events.length).toBeGreaterThan(0);
    expect(await bytesOf(rig)).toBeLessThanOrEqual(3_500);
  });

  test('when a bug throws from deep calls, with causes', async () => {
    const rig = rigOf();
    const deep = (left: number): never => {
      if (left > 0) return deep(left - 1);
      throw new TypeError('x', {
        cause: new Error('y', { cause: new RangeError('z', { cause: new Error('w') }) }),
      });
    };
    await rig.call({}, { json: () => deep(40) });
    expect(rig.faults).toHaveLength(1);
    expect(await bytesOf(rig)).toBeLessThanOrEqual(3_500);
  });
});
