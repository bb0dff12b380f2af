import { describe, expect, it, onTestFinished } from 'vitest';
import { CallTrace, createOtlpExporter } from '../../../../shared/adapters/tracing/call-trace.ts';
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts';
import { steeredClock } from '../steered-clock.ts';

async function exporter(headers: Record<string, string> = {}) {
  const receiver = await startWebhookReceiver();
  onTestFinished(() => receiver.close());
  const clock = steeredClock();
  const lost: unknown[] = [];
  const settings = { url: `${receiver.address}/v1/traces`, headers, service: undefined, ratio: 1 };
  const log = {
    request: () => {},
    fault: () => {},
    event: (name: string, fields: unknown) => void lost.push([name, fields]),
  };
  const exported = createOtlpExporter({ settings, clock, log, stack: 'relay', version: '1' });
  const send = (): Promise<void> => exported(new CallTrace(clock, { sampled: true }));
  return { receiver, clock, lost, send };
}

describe('a failing trace receiver', () => {
  it('is skipped for ten seconds, in which no call waits for it', async () => {
    const { receiver, clock, send } = await exporter();
    receiver.statuses.push(503);
    for (let call = 0; call < 3; call += 1) await send();
    expect(receiver.hooks).toHaveLength(1);
    clock.advance(9_999);
    await send();
    expect(receiver.hooks).toHaveLength(1);
    clock.advance(1);
    for (let call = 0; call < 2; call += 1) await send();
    expect(receiver.hooks).toHaveLength(3);
  });

  it('is logged once a minute', async () => {
    const { receiver, clock, lost, send } = await exporter();
    receiver.statuses.push(...Array.from({ length: 7 }, () => 500));
    for (let seconds = 0; seconds < 60; seconds += 10) {
      await send();
      clock.advance(10_000);
    }
    expect(receiver.hooks).toHaveLength(6);
    expect(lost).toEqual([['trace_lost', { reason: 'status_500' }]]);
    await send();
    expect(lost).toHaveLength(2);
  });
});

it.each(['a\nb', '漢'])('an invalid header is named as the reason: %j', async (value) => {
  const { receiver, lost, send } = await exporter({ authorization: value });
  await send();
  expect(lost).toEqual([['trace_lost', { reason: 'headers' }]]);
  expect(receiver.hooks).toEqual([]);
});
