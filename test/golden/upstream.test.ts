import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readerContext } from '../support/dialect-parts.ts';
import { BodyEvents } from '../../shared/upstreams/body-events.ts';
import { ChunksToCompletion } from '../../shared/endpoints/chat/fold.ts';
import type { AnswerReader, Dialect } from '../../shared/upstreams/dialect.ts';
import { defaultDialect, dialectNames, loadDialect } from '../../shared/upstreams/dialects/dialects.ts';
import { ErrorInAnswer } from '../../shared/upstreams/exchange.ts';
import { withUsage } from '../support/lenient-usage.ts';
import type { ChatChunk } from '../../shared/wire/chat-response.ts';

/**
 * Transcripts of upstream answers byte by byte, with the resulting chunks and complete objects; one folder per dialect.
 * `vitest -u` writes the `.json` files; a person reviews them.
 */
const folder = path.join(import.meta.dirname, 'upstream');
const transcripts = await Promise.all(
  dialectNames.flatMap((dialect) =>
    readdirSync(path.join(folder, dialect))
      .filter((name) => name.endsWith('.txt'))
      .map(async (name) => ({ name: path.join(dialect, name), dialect: await loadDialect(dialect) })),
  ),
);
const { Reader: DefaultReader } = await loadDialect(defaultDialect);
const limits = { answerBytesMax: 1e6, documentBytesMax: 1e6, lineLengthMax: 1e5 };

interface Reading {
  chunks: ChatChunk[];
  reader: AnswerReader;
  /** The error that ended an incomplete answer. */
  error?: unknown;
}

/** Reads an answer as an attempt does: it ignores everything after the end mark. */
function readWith(Reader: Dialect['Reader'], pieces: Uint8Array[]): Reading {
  const reader = new Reader(readerContext());
  const body = new BodyEvents(limits);
  const chunks: ChatChunk[] = [];
  try {
    for (const piece of pieces) for (const event of body.push(piece)) chunks.push(...reader.push(event));
    for (const event of body.end()) chunks.push(...reader.push(event));
    chunks.push(...reader.end());
    return { chunks: withUsage(chunks, reader.report().usage), reader };
  } catch (error) {
    return { chunks, reader, error };
  }
}

/** Throws the error that ended the answer. */
function read(pieces: Uint8Array[], Reader = DefaultReader): ChatChunk[] {
  const { chunks, error } = readWith(Reader, pieces);
  if (error !== undefined) throw error as Error;
  return chunks;
}

/** The outcome without properties that depend on how the text was cut into chunks. */
const merged = ({ chunks, error, reader }: Reading): unknown => ({
  answer: chunks.length > 0 ? whole(chunks) : undefined,
  error: error && inspect(error),
  state: reader.report().state,
  usage: reader.report().usage,
});

function completionOf(chunks: ChatChunk[]): object {
  const { choices, usage } = whole(chunks) as { choices: unknown; usage: unknown };
  return { completion: { choices, usage } };
}

const inspect = (error: unknown): string => {
  const { name, message } = error as Error;
  return error instanceof ErrorInAnswer ? `${name}: ${JSON.stringify(error.error)}` : `${name}: ${message}`;
};

/** The chunks, and the error as text. */
const outcome = ({ chunks, error }: Reading): unknown => ({ chunks, error: error && inspect(error) });

/** Replaces `toEqual`, which would take longer than the tested code, thousands of times. */
function expectSame(found: unknown, wanted: unknown): void {
  if (!isDeepStrictEqual(found, wanted)) expect(found).toEqual(wanted);
}

function whole(chunks: ChatChunk[]): object {
  const fold = new ChunksToCompletion();
  for (const chunk of chunks) fold.push(chunk);
  return fold.completion();
}

describe.each(transcripts)('$name', ({ name, dialect: { Reader } }) => {
  const bytes = new Uint8Array(readFileSync(path.join(folder, name)));
  const expected = readWith(Reader, [bytes]);

  it('becomes these chunks and this answer', async () => {
    const { chunks, reader, error } = expected;
    const brief = chunks.map(({ choices, usage }) => ({ choices, ...(usage ? { usage } : {}) }));
    const end = error === undefined ? completionOf(chunks) : { error: inspect(error) };
    const { state, serviceTier } = reader.report();
    const text = `${JSON.stringify({ chunks: brief, ...end, state, serviceTier }, undefined, 2)}\n`;
    await expect(text).toMatchFileSnapshot(path.join(folder, name.replace('.txt', '.json')));
  });

  it('becomes the same chunks when its bytes are cut in two anywhere, and byte by byte', () => {
    const wanted = merged(expected);
    // A long answer is cut at 150 places; the byte-by-byte test covers all of them.
    const step = Math.ceil(bytes.length / 150);
    for (let cut = 0; cut <= bytes.length; cut += step)
      expectSame(merged(readWith(Reader, [bytes.subarray(0, cut), bytes.subarray(cut)])), wanted);
    expect(
      outcome(
        readWith(
          Reader,
          Array.from(bytes, (byte) => Uint8Array.of(byte)),
        ),
      ),
    ).toEqual(outcome(expected));
  });

  it('becomes the same chunks for any cutting', () => {
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 12 });
    fc.assert(
      fc.property(cuts, (places) => {
        const edges = [0, ...places.toSorted((a, b) => a - b), bytes.length];
        const pieces = edges.slice(1).map((end, i) => bytes.subarray(edges[i], end));
        expect(outcome(readWith(Reader, pieces))).toEqual(outcome(expected));
      }),
      { numRuns: 20 },
    );
  });

  it('follows the rules of the canonical stream', () => {
    const seen = new Map<number, { finished: boolean; tools: number }>();
    for (const { id, model, choices } of expected.chunks) {
      expect({ id, model }).toEqual({ id: 'chatcmpl-r1', model: 'public-name' });
      for (const { index, delta, finish_reason: finish } of choices) {
        const state = seen.get(index);
        expect(delta.role).toBe(state ? undefined : 'assistant');
        const next = state ?? { finished: false, tools: 0 };
        expect(next.finished).toBe(false);
        if (finish) expect(delta).toEqual({});
        for (const call of delta.tool_calls ?? []) {
          if (call.index === next.tools) {
            expect(call).toMatchObject({ type: expect.stringMatching(/^(function|custom)$/) });
            expect(call[call.type ?? 'function']).toMatchObject({ name: expect.any(String) });
            expect(call.id).not.toBe('');
            next.tools += 1;
          } else expect(call.index).toBeLessThan(next.tools);
        }
        seen.set(index, { ...next, finished: finish !== null });
      }
    }
    const isWhole = seen.size > 0 && [...seen.values()].every((choice) => choice.finished);
    expect(isWhole).toBe(expected.error === undefined);
  });
});

/** JSON nested this deep parses, but overflows the stack of any recursive walk or serializer. */
const deepJson = '['.repeat(5000) + ']'.repeat(5000);

describe('a value nested 5,000 levels deep', () => {
  const choice = (fields: string): string => `{"choices":[{"index":0,${fields}}]}`;
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

  it.each([
    ['arguments', choice(`"delta":{"tool_calls":[{"function":{"name":"f","arguments":${deepJson}}}]}`)],
    ['logprobs', choice(`"delta":{"content":"x"},"logprobs":{"content":${deepJson}}`)],
    ['content', choice(`"delta":{"content":${deepJson}}`)],
    ['a field that nobody reads', choice(`"delta":{"content":"x"},"other":${deepJson}`)],
    ['the whole line', deepJson],
  ])('in %s makes its line junk like any other', (_place, line) => {
    const transcript = readFileSync(path.join(folder, defaultDialect, 'openai.txt'));
    const withDeepLine = Buffer.concat([encode(`data: ${line}\n\n`), transcript]);
    expect(read([withDeepLine])).toEqual(read([transcript]));
  });

  it('makes a whole JSON answer junk', () => {
    const answer = choice(`"message":{"content":"x"},"logprobs":{"content":${deepJson}}`);
    expect(() => read([encode(answer)])).toThrow('upstream failed: junk');
  });

  it('is passed on unchanged inside a string', () => {
    const call = { function: { name: 'f', arguments: deepJson } };
    const answer = { choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'stop' }] };
    expect(JSON.stringify(whole(read([encode(JSON.stringify(answer))])))).toContain(deepJson);
  });
});
