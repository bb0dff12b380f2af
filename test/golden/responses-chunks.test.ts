import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { responsesEndpoint } from '../../shared/endpoints/responses/responses-endpoint.ts';
import { answerFacts } from '../support/answer-facts.ts';
import { responseObject, responsesEvent } from '../support/wire-schemas.ts';
import { chunkCases, chunksOf, type ChunkCase } from './responses/chunk-cases.ts';
import { readByGrammar } from './responses/grammar.ts';
import { readEvents, readFrames } from './responses/read-events.ts';

/** Answers as canonical chunks of any dialect, with every event that a Responses client receives for them. */
const folder = path.join(import.meta.dirname, 'responses');
const identity = { requestId: 'r1', created: 5, model: 'm' };

function rendered(one: ChunkCase, stream: boolean): string {
  let opaqueParts = 0;
  const facts = answerFacts({
    sent: () => one.sent ?? { dropped: [] },
    opaqueParts: () => opaqueParts,
    sealedState: (id) =>
      opaqueParts > 0 ? `relay1.${opaqueParts} parts for ${id}`.padEnd(one.sealLength ?? 0) : undefined,
  });
  const body = { model: 'm', input: 'hi', ...one.request, stream };
  const renderer = responsesEndpoint.read(body, {}).renderer(identity, facts);
  const chunks = chunksOf(one, (step) => {
    opaqueParts = step.opaqueParts ?? opaqueParts;
  });
  const texts: string[] = [];
  for (const chunk of chunks) texts.push(...renderer.push(chunk));
  return [...texts, ...renderer.end()].flat().join('');
}

describe.each(Object.entries(chunkCases))('%s', (name, one) => {
  it('becomes these events, valid by the grammar and the schema', async () => {
    const text = rendered(one, true);
    const lines = readFrames(text).map((frame) => `${JSON.stringify(frame)}\n`);
    await expect(lines.join('')).toMatchFileSnapshot(path.join(folder, `${name}.jsonl`));
    for (const event of readEvents(text)) responsesEvent.parse(event);
    const whole: unknown = JSON.parse(rendered(one, false));
    expect(responseObject.parse(whole)).toEqual(readByGrammar(readEvents(text)));
  });
});

describe('the seals of an answer', () => {
  const ask = { reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] };
  const think = { delta: { reasoning_content: 'Hm.' } };
  const say = { delta: { content: 'So.' } };
  const call = { index: 0, id: 'a', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
  const look = { delta: { tool_calls: [call] } };
  const sealsOf = (steps: ChunkCase['steps'], sealLength = 0): [number, string][] => {
    const { output } = readByGrammar(readEvents(rendered({ request: ask, steps, sealLength }, true)));
    return output.flatMap((item, place): [number, string][] =>
      'encrypted_content' in item ? [[place, String(item.encrypted_content).trimEnd()]] : [],
    );
  };
  const pairs = (count: number) =>
    Array.from({ length: count }, (_, i) => [{ ...think, opaqueParts: i + 1 }, say]).flat();

  it('precede the text that they led to, each with the state so far', () => {
    expect(sealsOf(pairs(3))).toEqual([
      [0, 'relay1.1 parts for rs_r1_0'],
      [2, 'relay1.2 parts for rs_r1_2'],
      [4, 'relay1.3 parts for rs_r1_4'],
    ]);
  });

  it('stop at 128 KB until the end, however often thinking and text alternate', () => {
    const first = Array.from({ length: 8 }, (_, i) => [2 * i, `relay1.${i + 1} parts for rs_r1_${2 * i}`]);
    expect(sealsOf(pairs(200), 16 * 1024)).toEqual([...first, [400, 'relay1.200 parts for rs_r1_400']]);
    const reasoningAtEnd = [...pairs(200), { ...think, opaqueParts: 201 }];
    expect(sealsOf(reasoningAtEnd, 16 * 1024)).toEqual([...first, [400, 'relay1.201 parts for rs_r1_400']]);
  });

  it('hold reasoning that only extended a part', () => {
    expect(sealsOf([{ ...think, opaqueParts: 1 }, say, think, say]).map(([place]) => place)).toEqual([0, 2]);
  });

  it('hold details of reasoning that came without text', () => {
    const details = { delta: { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] } };
    const seals = sealsOf([{ ...think, opaqueParts: 1 }, say, details, look]);
    expect(seals.map(([place]) => place)).toEqual([0, 2]);
  });

  it('wait behind an open call, and are merged into one afterwards', () => {
    const patch = { index: 1, id: 'b', type: 'custom' as const, custom: { name: 'p', input: '*' } };
    const steps = [
      { delta: { tool_calls: [patch] } },
      { ...say, opaqueParts: 1 },
      { ...look, opaqueParts: 2 },
      say,
    ];
    const { output } = readByGrammar(readEvents(rendered({ request: ask, steps }, true)));
    expect(output.map(({ type }) => type)).toEqual([
      'custom_tool_call',
      'reasoning',
      'message',
      'reasoning',
      'function_call',
      'message',
    ]);
    expect(sealsOf(steps).map(([place]) => place)).toEqual([1, 3]);
  });
});

describe('an image in the answer', () => {
  it('is an error that names the other endpoint, because no item can hold an image', () => {
    const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }];
    const refused = expect.objectContaining({ code: 'unsupported_output', param: 'model' });
    expect(() => rendered({ steps: [{ delta: { images } }] }, false)).toThrow(refused);
  });
});
