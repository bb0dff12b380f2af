import { describe, expect, it } from 'vitest';
import { run } from '../../../shared/stream/machine.ts';
import { openBodyEvents } from '../../../shared/upstreams/body-events.ts';

const limits = { answerBytesMax: 10_000, documentBytesMax: 10_000, lineLengthMax: 1000 };

async function eventsOf(parts: Uint8Array[], contentType: string): Promise<unknown[]> {
  async function* batches() {
    for (const part of parts) yield [part];
  }
  const events: unknown[] = [];
  const body = await openBodyEvents(limits, contentType);
  for await (const batch of run(batches(), body)) events.push(...batch);
  return events;
}

describe('the events of a reply', () => {
  it.each([
    ['text/event-stream', 'data:{"a":"€😀"}\r\n\r\n: pïng\n\nevent: x\rdata: {"b":"ü"}\r\rdata: [DONE]\n\n'],
    ['application/json', '{"a":"€😀ü"}'],
  ])('of type %s are the same however its bytes are split', async (contentType, text) => {
    const bytes = Buffer.from(text);
    const whole = await eventsOf([bytes], contentType);
    expect(JSON.stringify(whole)).toContain('€😀');
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const parts = [bytes.subarray(0, cut), bytes.subarray(cut)];
      expect(await eventsOf(parts, contentType)).toEqual(whole);
    }
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
    expect(await eventsOf(single, contentType)).toEqual(whole);
  });
});
