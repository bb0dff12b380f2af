import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidRequest } from '../../../shared/wire/invalid-request.ts';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import { ResponsesRequest } from '../../../shared/endpoints/responses/request.ts';
import { ChatRequest } from '../../../shared/wire/canonical-call.ts';

const user = { role: 'user', content: 'hi' };
const good = { model: 'm', messages: [user] };

function refusalOf(body: unknown): { code: string; param: string | null; message: string } | undefined {
  try {
    parseRequest(ChatRequest, body);
    return undefined;
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    return { code: error.code, param: error.param, message: error.message };
  }
}

describe('a chat request that is accepted', () => {
  it.each([
    [
      'all fields of the contract',
      {
        ...good,
        stream: true,
        max_tokens: 5,
        temperature: 0,
        top_p: 1,
        top_k: 3,
        presence_penalty: -1,
        frequency_penalty: 1,
        repetition_penalty: 1.1,
        tools: [
          { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } },
        ],
        tool_choice: 'auto',
        official: false,
      },
    ],
    [
      'nulls as absent',
      { ...good, stream: null, max_tokens: null, tools: null, n: null, stop: null, response_format: null },
    ],
    ['unknown fields', { ...good, seed: 1, metadata: { a: 1 }, reasoning_effort: 'low' }],
    [
      'every role',
      {
        model: 'm',
        messages: ['system', 'developer', 'user', 'assistant', 'tool', 'function'].map((role) => ({
          role,
          content: 'x',
        })),
      },
    ],
    [
      'an assistant message with only tool calls',
      {
        model: 'm',
        messages: [
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
        ],
      },
    ],
    [
      'an assistant message without content',
      { model: 'm', messages: [{ role: 'assistant', tool_calls: [] }] },
    ],
    [
      'content parts of unknown types',
      {
        model: 'm',
        messages: [
          {
            role: 'user',
            content: [
              { type: 'input_audio', input_audio: { data: '' } },
              { type: 'image_url', image_url: { url: 'data:,' } },
            ],
          },
        ],
      },
    ],
    [
      'tools of a kind that only the upstream knows',
      { ...good, tools: [{ type: 'custom', custom: { name: 'x' } }] },
    ],
    [
      'a __proto__ key',
      JSON.parse(
        '{"model":"m","messages":[{"role":"user","content":"x","__proto__":{"a":1}}],"__proto__":{"stream":1}}',
      ),
    ],
  ])('%s', (_case, body) => {
    expect(refusalOf(body)).toBeUndefined();
  });

  it('is the very object that was sent', () => {
    expect(parseRequest(ChatRequest, good)).toBe(good);
  });
});

describe('a chat request that is refused names field, found and wanted', () => {
  it.each([
    ['an array', [], 'invalid_type', null, 'The body must be a JSON object.'],
    ['null', null, 'invalid_type', null, 'The body must be a JSON object.'],
    [
      'no model',
      { messages: [user] },
      'missing_required_parameter',
      'model',
      "Missing required parameter: 'model'.",
    ],
    [
      'a null model',
      { model: null, messages: [user] },
      'missing_required_parameter',
      'model',
      "Missing required parameter: 'model'.",
    ],
    [
      'an empty model',
      { model: '', messages: [user] },
      'invalid_value',
      'model',
      'Invalid value for \'model\': "" was sent, a string that is not empty is wanted.',
    ],
    [
      'no messages',
      { model: 'm' },
      'missing_required_parameter',
      'messages',
      "Missing required parameter: 'messages'.",
    ],
    [
      'empty messages',
      { model: 'm', messages: [] },
      'invalid_value',
      'messages',
      "Invalid value for 'messages': an empty array was sent, an array that is not empty is wanted.",
    ],
    [
      'messages as text',
      { model: 'm', messages: 'hi' },
      'invalid_type',
      'messages',
      'Invalid value for \'messages\': "hi" was sent, an array is wanted.',
    ],
    [
      'an unknown role',
      { model: 'm', messages: [user, { role: 'robot' }] },
      'invalid_value',
      'messages[1].role',
      "Invalid value for 'messages[1].role': \"robot\" was sent, one of 'system', 'developer', 'user', 'assistant', 'tool', 'function' is wanted.",
    ],
    [
      'content of a wrong type',
      { model: 'm', messages: [{ role: 'user', content: 5 }] },
      'invalid_value',
      'messages[0].content',
      "Invalid value for 'messages[0].content': 5 was sent, another type is wanted.",
    ],
    [
      'a part without type',
      { model: 'm', messages: [{ role: 'user', content: [{ text: 'x' }] }] },
      'missing_required_parameter',
      'messages[0].content[0].type',
      "Missing required parameter: 'messages[0].content[0].type'.",
    ],
    [
      'a fractional token limit',
      { ...good, max_tokens: 1.5 },
      'invalid_type',
      'max_tokens',
      "Invalid value for 'max_tokens': 1.5 was sent, a whole number is wanted.",
    ],
    [
      'a token limit of zero',
      { ...good, max_completion_tokens: 0 },
      'invalid_value',
      'max_completion_tokens',
      "Invalid value for 'max_completion_tokens': 0 was sent, a value of at least 1 is wanted.",
    ],
    [
      'too many choices',
      { ...good, n: 9 },
      'invalid_value',
      'n',
      "Invalid value for 'n': 9 was sent, a value of at most 8 is wanted.",
    ],
    [
      'a number as text',
      { ...good, temperature: '1' },
      'invalid_type',
      'temperature',
      'Invalid value for \'temperature\': "1" was sent, a number is wanted.',
    ],
  ])('%s', (_case, body, code, param, message) => {
    expect(refusalOf(body)).toEqual({ code, param, message });
  });

  it('never fails in another way, whatever JSON is sent', () => {
    const near = fc.record(
      { model: fc.jsonValue(), messages: fc.jsonValue(), n: fc.jsonValue(), tools: fc.jsonValue() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), near), (body) => {
        expect(() => refusalOf(body)).not.toThrow();
      }),
      { numRuns: 500 },
    );
  });
});

describe('fields that are not known', () => {
  const some = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, i]));
  const bodies = (count: number): [string | null, object][] => [
    [null, { ...good, ...some(count) }],
    ['messages[1]', { ...good, messages: [user, { ...user, ...some(count) }] }],
    [
      'messages[0].content[0]',
      { ...good, messages: [{ role: 'user', content: [{ type: 'text', text: 'x', ...some(count) }] }] },
    ],
    [
      'tools[0].function',
      { ...good, tools: [{ type: 'function', function: { name: 'f', ...some(count) } }] },
    ],
    ['metadata', { ...good, metadata: some(count) }],
    ['vendor.options[0]', { ...good, vendor: { options: [some(count)] } }],
  ];

  it('are 500 in an object at most', () => {
    for (const [, body] of bodies(500)) expect(refusalOf(body)).toBeUndefined();
    for (const [param, body] of bodies(501))
      expect(refusalOf(body)).toMatchObject({ code: 'json_too_wide', param });
    const input = [{ role: 'user', content: 'x', ...some(501) }];
    expect(() => parseRequest(ResponsesRequest, { model: 'm', input })).toThrow("'input[0]'");
  });

  it('are as many as they are in a schema and in what biases tokens', () => {
    const parameters = { type: 'object', properties: some(90_000) };
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    for (const free of [{ tools }, { logit_bias: some(90_000) }])
      expect(refusalOf({ ...good, ...free })).toBeUndefined();
    expect(refusalOf({ ...good, metadata: 'x' })).toMatchObject({ code: 'invalid_type', param: 'metadata' });
  });
});
