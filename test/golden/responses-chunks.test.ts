import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { responsesEndpoint } from '../../shared/endpoints/responses/responses-endpoint.ts';
import { answerFacts } from '../support/answer-facts.ts';
import { responseObject, responsesEvent } from '../support/wire-schemas.ts';
import { chunkCases, chunksOf, type ChunkCase } from './responses/chunk-cases.ts';
import { readByGrammar } from './responses/grammar.ts';
import { readEvents, readFrames } from './responses/read-events.ts';

/** Answers as canonical chunks, whatever dialect read them, with every event that a Responses client gets of them. */
const folder = path.join(import.meta.dirname, 'responses');
const identity = { requestId: 'r1', created: 5, model: 'm' };

function rendered(one: ChunkCase, stream: boolean): string {
  let opaqueParts = 0;
  const facts = answerFacts({
    sent: () => one.sent ?? { dropped: [] },
    opaqueParts: () => opaqueParts,
    sealedState: (id) => (opaqueParts > 0 ? `relay1.${opaqueParts} parts for ${id}` : undefined),
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
  it('becomes these events, by the grammar and the schema', async () => {
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
  const sealsOf = (steps: ChunkCase['steps']): [number, unknown][] => {
    const { output } = readByGrammar(readEvents(rendered({ request: ask, steps }, true)));
    return output.flatMap((item, place): [number, unknown][] =>
      'encrypted_content' in item ? [[place, item.encrypted_content]] : [],
    );
  };
  const pairs = Array.from({ length: 200 }, (_, i) => [{ ...think, opaqueParts: i + 1 }, say]).flat();

  it('are two at most, in the first reasoning and at the end, however often thinking and text alternate', () => {
    expect(sealsOf(pairs)).toEqual([
      [0, 'relay1.1 parts for rs_r1_0'],
      [400, 'relay1.200 parts for rs_r1_400'],
    ]);
  });

  it('are in the reasoning at the end, without an item more, if it ends with reasoning', () => {
    const seals = sealsOf([...pairs, { ...think, opaqueParts: 201 }]);
    expect(seals).toEqual([
      [0, 'relay1.1 parts for rs_r1_0'],
      [400, 'relay1.201 parts for rs_r1_400'],
    ]);
  });

  it('hold reasoning that only lengthened a part', () => {
    expect(sealsOf([{ ...think, opaqueParts: 1 }, say, think, say]).map(([place]) => place)).toEqual([0, 4]);
  });
});

describe('an image in the answer', () => {
  it('is an error that names the other endpoint, since no item can hold it', () => {
    const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }];
    const refused = expect.objectContaining({ code: 'unsupported_output', param: 'model' });
    expect(() => rendered({ steps: [{ delta: { images } }] }, false)).toThrow(refused);
  });
});
