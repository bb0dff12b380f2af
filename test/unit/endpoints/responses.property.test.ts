import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidRequest } from '../../../shared/wire/invalid-request.ts';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import { translateRequest } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import type { ChatMessage } from '../../../shared/wire/canonical-call.ts';
import { ResponsesRequest, type InputItem } from '../../../shared/endpoints/responses/request.ts';

/** JSON with the keys and words that the conversion reads, so that it gets far. */
const oneWordOf = (text: string): fc.Arbitrary<string> => fc.constantFrom(...text.split(' '), '');
const words = oneWordOf(
  'message function_call function_call_output custom_tool_call custom_tool_call_output additional_tools ' +
    'namespace custom function user assistant developer a ' +
    'input_text output_text input_image refusal json_schema allowed_tools',
);
const keys = oneWordOf(
  'type role content name namespace call_id arguments input output tools text refusal image_url function ' +
    'parameters format mode effort __proto__',
);
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    words,
    words,
    fc.constantFrom(null, true, 0, 1.5, '{}'),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(keys, tie('json'), { maxKeys: 6 }),
  ),
}));
/** The expected type, or sometimes any value. */
const mostly = (wanted: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 30, arbitrary: wanted }, { weight: 1, arbitrary: json });
const text = fc.constantFrom('x', '', '{}');
const part = fc.record({
  type: mostly(fc.constantFrom('input_text', 'output_text', 'refusal')),
  text: mostly(text),
  refusal: mostly(text),
});
const content = mostly(fc.oneof(text, fc.array(mostly(part), { maxLength: 3 })));
const callId = mostly(fc.constantFrom('a', 'b'));
const call = fc.record({
  type: fc.constant('function_call'),
  call_id: callId,
  name: mostly(text),
  arguments: json,
});
const result = fc.record({ type: fc.constant('function_call_output'), call_id: callId, output: content });
const message = fc.record({ role: mostly(fc.constantFrom('user', 'assistant', 'developer')), content });
const item = mostly(fc.oneof(message, message, call, result, fc.dictionary(keys, json, { maxKeys: 7 })));
const tool = fc.record({ type: words, name: mostly(text), tools: json, parameters: json, format: json });
const body = fc.record(
  {
    model: fc.constant('m'),
    input: mostly(fc.array(item, { maxLength: 5 })),
    tools: mostly(fc.array(mostly(tool), { maxLength: 4 })),
    tool_choice: json,
    text: mostly(fc.constantFrom(null, {}, { format: { type: 'json_schema', schema: {} } })),
    reasoning: mostly(fc.constantFrom(null, {}, { effort: 'low' })),
    instructions: mostly(text),
    max_output_tokens: mostly(fc.constantFrom(null, 1)),
  },
  { requiredKeys: ['model', 'input'] },
);

/** Turns of a conversation: calls with outputs in any order, and texts anywhere between them. */
type Step = { calls: number; before: boolean; between: boolean; order: number[] } | 'user' | 'assistant';
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constantFrom('user' as const, 'assistant' as const),
  fc.record({
    calls: fc.integer({ min: 1, max: 4 }),
    before: fc.boolean(),
    between: fc.boolean(),
    order: fc.array(fc.nat(), { minLength: 4, maxLength: 4 }),
  }),
);

function conversation(steps: Step[]): InputItem[] {
  const items: InputItem[] = [];
  let count = 0;
  const say = (role: string): void => {
    items.push({ role, content: `words ${(count += 1)}` });
  };
  for (const one of steps) {
    if (typeof one === 'string') {
      say(one);
      continue;
    }
    if (one.before) say('assistant');
    const ids = Array.from({ length: one.calls }, () => `call ${(count += 1)}`);
    for (const id of ids) {
      items.push({ type: 'function_call', call_id: id, name: 'look', arguments: `{"for":"${id}"}` });
      if (one.between) say('assistant');
    }
    const rank = (id: string): number => one.order[ids.indexOf(id)] ?? 0;
    for (const id of ids.toSorted((a, b) => rank(a) - rank(b)))
      items.push({ type: 'function_call_output', call_id: id, output: `result of ${id}` });
  }
  return items;
}

const textsOf = (messages: ChatMessage[]): string[] =>
  messages
    .filter(({ role }) => role !== 'tool')
    .flatMap(({ content }) => (typeof content === 'string' ? content.split('\n') : []));

/** Checks that each assistant message with calls is followed by exactly its results, in the order of the calls. */
function expectAnswered(messages: ChatMessage[]): void {
  for (const [i, { tool_calls: calls }] of messages.entries()) {
    const ids = (calls ?? []).map(({ id }) => id);
    const results = messages.slice(i + 1, i + 1 + ids.length);
    expect(results.map(({ role, content }) => [role, content])).toEqual(
      ids.map((id) => ['tool', `result of ${id}`]),
    );
  }
}

describe('the conversion of a Responses request', () => {
  it('throws only InvalidRequest for any JSON', () => {
    const ends = { converted: 0, refused: 0 };
    fc.assert(
      fc.property(body, (sent) => {
        try {
          translateRequest(parseRequest(ResponsesRequest, sent));
          ends.converted += 1;
        } catch (error) {
          if (!(error instanceof InvalidRequest) || error.message === '') throw error;
          ends.refused += 1;
        }
      }),
      { numRuns: 800 },
    );
    expect(Math.min(ends.converted, ends.refused)).toBeGreaterThan(80);
  });

  it('loses no call, no output and no word, and places every result behind its call', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        const input = conversation(steps);
        const { messages } = translateRequest({ model: 'm', input }).chat;
        const calls = messages.flatMap((message) => message.tool_calls ?? []);
        expect(calls.map(({ id, function: called }) => [id, called?.arguments])).toEqual(
          input.flatMap((one) => (one.type === 'function_call' ? [[one['call_id'], one['arguments']]] : [])),
        );
        expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(calls.length);
        expect(textsOf(messages)).toEqual(input.flatMap((one) => (one.role ? [one['content']] : [])));
        expectAnswered(messages);
      }),
      { numRuns: 200 },
    );
  });
});
