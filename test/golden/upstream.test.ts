import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readerContext } from '../support/dialect-parts.ts';
import { BodyEvents } from '../../shared/upstreams/body-events.ts';
import { ChunksToCompletion } from '../../shared/endpoints/chat/fold.ts';
import { ChatReader } from '../../shared/upstreams/dialects/chat/events.ts';
import type { ChatChunk } from '../../shared/wire/chat-response.ts';

/**
 * Transcripts of upstreams' answers, byte by byte, with the chunks and the whole object that they become. The
 * `.json` files are written by `vitest -u` and read by a person.
 */
const folder = path.join(import.meta.dirname, 'upstream');
const transcripts = readdirSync(folder).filter((name) => name.endsWith('.txt'));
const limits = { answerBytesMax: 1e6, documentBytesMax: 1e6, lineLengthMax: 1e5 };

function read(pieces: Uint8Array[]): ChatChunk[] {
  const reader = new ChatReader(readerContext());
  const body = new BodyEvents(limits);
  const events = [...pieces.flatMap((piece) => body.push(piece)), ...body.end()];
  return [...events.flatMap((event) => reader.push(event)), ...reader.end()];
}

function whole(chunks: ChatChunk[]): object {
  const fold = new ChunksToCompletion();
  for (const chunk of chunks) fold.push(chunk);
  return fold.completion();
}

describe.each(transcripts)('%s', (name) => {
  const bytes = new Uint8Array(readFileSync(path.join(folder, name)));
  const expected = read([bytes]);

  it('becomes these chunks and this answer', async () => {
    const brief = expected.map(({ choices, usage }) => ({ choices, ...(usage ? { usage } : {}) }));
    const { choices, usage } = whole(expected) as { choices: unknown; usage: unknown };
    const text = `${JSON.stringify({ chunks: brief, completion: { choices, usage } }, undefined, 2)}\n`;
    await expect(text).toMatchFileSnapshot(path.join(folder, name.replace('.txt', '.json')));
  });

  it('becomes the same chunks for every way of cutting its bytes in two, and byte by byte', () => {
    for (let cut = 0; cut <= bytes.length; cut += 1)
      expect(whole(read([bytes.subarray(0, cut), bytes.subarray(cut)]))).toEqual(whole(expected));
    expect(read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected);
  });

  it('becomes the same chunks for any cutting', () => {
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 12 });
    fc.assert(
      fc.property(cuts, (places) => {
        const edges = [0, ...places.toSorted((a, b) => a - b), bytes.length];
        expect(read(edges.slice(1).map((end, i) => bytes.subarray(edges[i], end)))).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  it('keeps the rules of the canonical stream', () => {
    const seen = new Map<number, { finished: boolean; tools: number }>();
    for (const { id, model, choices } of expected) {
      expect({ id, model }).toEqual({ id: 'chatcmpl-r1', model: 'public-name' });
      for (const { index, delta, finish_reason: finish } of choices) {
        const state = seen.get(index);
        expect(delta.role).toBe(state ? undefined : 'assistant');
        const next = state ?? { finished: false, tools: 0 };
        expect(next.finished).toBe(false);
        if (finish) expect(delta).toEqual({});
        for (const call of delta.tool_calls ?? []) {
          if (call.index === next.tools) {
            expect(call).toMatchObject({ type: 'function', function: { name: expect.any(String) } });
            expect(call.id).not.toBe('');
            next.tools += 1;
          } else expect(call.index).toBeLessThan(next.tools);
        }
        seen.set(index, { ...next, finished: finish !== null });
      }
    }
    expect([...seen.values()].every((choice) => choice.finished)).toBe(true);
  });
});

/** JSON that nests this deep parses, but overflows the stack of whatever walks or writes it by recursion. */
const deepJson = '['.repeat(5000) + ']'.repeat(5000);

describe('a value that nests 5,000 deep', () => {
  const choice = (fields: string): string => `{"choices":[{"index":0,${fields}}]}`;
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

  it.each([
    ['arguments', choice(`"delta":{"tool_calls":[{"function":{"name":"f","arguments":${deepJson}}}]}`)],
    ['logprobs', choice(`"delta":{"content":"x"},"logprobs":{"content":${deepJson}}`)],
    ['content', choice(`"delta":{"content":${deepJson}}`)],
    ['a field that nobody reads', choice(`"delta":{"content":"x"},"other":${deepJson}`)],
    ['the whole line', deepJson],
  ])('in %s makes its line junk like any other', (_place, line) => {
    const transcript = readFileSync(path.join(folder, 'openai.txt'));
    const withDeepLine = Buffer.concat([encode(`data: ${line}\n\n`), transcript]);
    expect(read([withDeepLine])).toEqual(read([transcript]));
  });

  it('makes a whole JSON answer junk', () => {
    const answer = choice(`"message":{"content":"x"},"logprobs":{"content":${deepJson}}`);
    expect(() => read([encode(answer)])).toThrow('upstream failed: junk');
  });

  it('is another matter inside a string, which is passed on as it is', () => {
    const call = { function: { name: 'f', arguments: deepJson } };
    const answer = { choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'stop' }] };
    expect(JSON.stringify(whole(read([encode(JSON.stringify(answer))])))).toContain(deepJson);
  });
});
