import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readerContext } from '../support/dialect-parts.ts';
import { ChunksToCompletion } from '../../shared/endpoints/chat/fold.ts';
import { responsesEndpoint } from '../../shared/endpoints/responses/responses-endpoint.ts';
import { ChatReader } from '../../shared/upstreams/dialects/chat/events.ts';
import type { Renderer } from '../../shared/endpoints/endpoint.ts';
import { answerFacts } from '../support/answer-facts.ts';
import type { ChatChunk } from '../../shared/wire/chat-response.ts';
import type { OutputItem } from '../../shared/endpoints/responses/answer-items.ts';
import { responsesEvent } from '../support/wire-schemas.ts';
import { readByGrammar } from './responses/grammar.ts';
import { readEvents } from './responses/read-events.ts';

const identity = { requestId: 'r1', created: 5, model: 'm' };
const request = {
  model: 'm',
  input: 'hi',
  tools: [
    { type: 'function', name: 'look' },
    { type: 'custom', name: 'patch' },
    { type: 'namespace', name: 'files', tools: [{ type: 'function', name: 'list' }] },
  ],
};

/** An upstream answer: text of several kinds, and pieces of up to four calls in any order. */
const words = fc.constantFrom('a', 'bc ', '\n', '', '\u{1F408}');
const said = fc.record({
  field: fc.constantFrom('content', 'content', 'reasoning_content', 'refusal'),
  text: words,
});
const called = fc.record({
  index: fc.nat(3),
  name: fc.constantFrom('look', 'patch', 'files__list', 'unheard_of'),
  text: fc.constantFrom('{"input":', '"x"}', '{}', '', 'plain'),
});
type Piece = { field: string; text: string } | { index: number; name: string; text: string };
const pieces: fc.Arbitrary<Piece[]> = fc.array(fc.oneof(said, called), { maxLength: 25 });
interface Ending {
  finish: string;
  usage: object | null;
}
const ending: fc.Arbitrary<Ending> = fc.record({
  finish: fc.constantFrom('stop', 'tool_calls', 'length', 'content_filter'),
  usage: fc.option(fc.constant({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 })),
});

/** Converts these pieces to the canonical stream with the relay's own reader. */
function chunksOf(list: Piece[], end: Ending): ChatChunk[] {
  const reader = new ChatReader(readerContext({ identity }));
  const seen = new Set<number>();
  const chunks = list.flatMap((piece) => {
    if ('field' in piece) return pushed(reader, { [piece.field]: piece.text });
    const { index, name, text } = piece;
    const first = seen.has(index) ? {} : { id: `call_${index}`, type: 'function' };
    const head = seen.has(index) ? {} : { name };
    seen.add(index);
    return pushed(reader, { tool_calls: [{ index, ...first, function: { ...head, arguments: text } }] });
  });
  const value = { choices: [{ index: 0, delta: {}, finish_reason: end.finish }], usage: end.usage };
  return [...chunks, ...reader.push({ kind: 'value', value }), ...reader.end()];
}

const pushed = (reader: ChatReader, delta: object): ChatChunk[] =>
  reader.push({ kind: 'value', value: { choices: [{ index: 0, delta }] } });

/** The turn state; its opaque parts arrive with the chunks. */
interface Asked {
  summary: boolean;
  keepsState: boolean;
  opaqueParts: number;
}
const asked: fc.Arbitrary<Asked> = fc.record({
  summary: fc.boolean(),
  keepsState: fc.boolean(),
  opaqueParts: fc.nat(2),
});

function rendererOf({ summary, keepsState, opaqueParts }: Asked, stream: boolean): Renderer {
  const body = {
    ...request,
    stream,
    ...(summary && { reasoning: { summary: 'auto' } }),
    ...(keepsState && { include: ['reasoning.encrypted_content'] }),
  };
  let asks = 0;
  const facts = answerFacts({
    now: () => 9,
    opaqueParts: () => opaqueParts,
    // The state starts after the first item that needs it.
    sealedState: (id) => ((asks += 1) > 1 && opaqueParts > 0 ? `sealed for ${id}` : undefined),
  });
  return responsesEndpoint.read(body, {}).renderer(identity, facts);
}

const plain: Asked = { summary: false, keepsState: false, opaqueParts: 0 };

/** The whole stream, with heartbeats after some of the chunks. */
function streamed(chunks: ChatChunk[], idleAfter: number[], how: Asked = plain): string {
  const renderer = rendererOf(how, true);
  const texts = chunks.flatMap((chunk, i) => [
    ...renderer.push(chunk),
    ...idleAfter.filter((at) => at === i).map(() => renderer.idle()),
  ]);
  return [...texts, ...renderer.end()].flat().join('');
}

const textOf = (output: OutputItem[]): string =>
  output
    .flatMap((item) =>
      item.type === 'message'
        ? item.content.map((part) => (part.type === 'refusal' ? part.refusal : part.text))
        : [],
    )
    .join('');

describe('any upstream answer on Responses', () => {
  it('follows the grammar and the schema, and its deltas add up to the answer without streaming', () => {
    const idles = fc.array(fc.nat(20), { maxLength: 10 });
    fc.assert(
      fc.property(pieces, ending, idles, asked, (list, end, idleAfter, how) => {
        const chunks = chunksOf(list, end);
        const events = readEvents(streamed(chunks, idleAfter, how));
        for (const event of events) responsesEvent.parse(event);
        const json = rendererOf(how, false);
        for (const chunk of chunks) json.push(chunk);
        expect(readByGrammar(events)).toEqual(JSON.parse([...json.end()].flat().join('')));
      }),
      { numRuns: 200 },
    );
  });

  it('has the same text and calls as the chat answer', () => {
    fc.assert(
      fc.property(pieces, ending, (list, end) => {
        const chunks = chunksOf(list, end);
        const fold = new ChunksToCompletion();
        for (const chunk of chunks) fold.push(chunk);
        const { message } = fold.completion().choices[0] ?? {};
        const { output } = readByGrammar(readEvents(streamed(chunks, [])));
        const words = list.map((piece) =>
          'field' in piece && piece.field !== 'reasoning_content' ? piece.text : '',
        );
        expect(textOf(output)).toBe(words.join(''));
        const calls = output.filter((item) => item.type !== 'message' && item.type !== 'reasoning');
        expect(calls.map((call) => 'call_id' in call && call.call_id)).toEqual(
          (message?.tool_calls ?? []).map(({ id }) => id),
        );
      }),
      { numRuns: 120 },
    );
  });

  it('follows the grammar when it breaks off anywhere', () => {
    const error = {
      message: 'x',
      type: 'upstream_error',
      param: null,
      code: 'upstream_unavailable',
    } as const;
    fc.assert(
      fc.property(pieces, ending, fc.nat(25), (list, end, length) => {
        const renderer = rendererOf(plain, true);
        const texts = chunksOf(list, end)
          .slice(0, length)
          .flatMap((chunk) => renderer.push(chunk));
        const events = readEvents([...texts, renderer.failed(error)].join(''));
        for (const event of events) responsesEvent.parse(event);
        expect(readByGrammar(events)).toMatchObject({
          status: 'failed',
          error: { ...error, code: 'server_error' },
        });
      }),
      { numRuns: 120 },
    );
  });
});
