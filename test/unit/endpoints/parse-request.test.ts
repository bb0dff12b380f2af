import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidRequest } from '../../../shared/wire/invalid-request.ts';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import { ResponsesRequest } from '../../../shared/endpoints/responses/request.ts';
import { ChatRequest } from '../../../shared/wire/canonical-call.ts';

const user = { role: 'user', content: 'hi' };
const good = { model: 'm', messages: [user] };
const saying = (...messages: object[]) => ({ model: 'm', messages });

function refusalOf(body: unknown): { code: string; param: string | null; message: string } | undefined {
  try {
    parseRequest(ChatRequest, body);
    return undefined;
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    return { code: error.code, param: error.param, message: error.message };
  }
}

it.each<[string, unknown]>([
  [
    'nulls as absent',
    { ...good, stream: null, max_tokens: null, tools: null, n: null, response_format: null },
  ],
  ['unknown fields', { ...good, seed: 1, metadata: { a: 1 }, reasoning_effort: 'low' }],
  ['older roles', saying({ role: 'developer', content: 'x' }, { role: 'function', content: 'x' })],
  ['an assistant message without content', saying({ role: 'assistant', tool_calls: [] })],
  ['parts of unknown types', saying({ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] })],
  ['tools that only the upstream knows', { ...good, tools: [{ type: 'custom', custom: { name: 'x' } }] }],
  ['a __proto__ key', JSON.parse('{"model":"m","messages":[{"role":"user"}],"__proto__":{"stream":1}}')],
])('a chat request is accepted with %s, and is passed on as the same object', (_case, body) => {
  expect(parseRequest(ChatRequest, body)).toBe(body);
});

describe('a rejected chat request names the field, the found and the expected value', () => {
  it.each<[unknown, code: string, param: string, message: string]>([
    [{ messages: [user] }, 'missing_required_parameter', 'model', ''],
    [{ model: null, messages: [user] }, 'missing_required_parameter', 'model', ''],
    [
      saying({ role: 'user', content: [{ text: 'x' }] }),
      'missing_required_parameter',
      'messages[0].content[0].type',
      '',
    ],
    [{ ...good, model: '' }, 'invalid_value', 'model', 'found "", expected a string that is not empty.'],
    [saying(), 'invalid_value', 'messages', 'found an empty array, expected an array that is not empty.'],
    [{ ...good, messages: 'hi' }, 'invalid_type', 'messages', 'found "hi", expected an array.'],
    [
      saying(user, { role: 'robot' }),
      'invalid_value',
      'messages[1].role',
      `found "robot", expected one of 'system', 'developer', 'user', 'assistant', 'tool', 'function'.`,
    ],
    [
      saying({ role: 'user', content: 5 }),
      'invalid_value',
      'messages[0].content',
      'found 5, expected a string or an array.',
    ],
    [{ ...good, max_tokens: 1.5 }, 'invalid_type', 'max_tokens', 'found 1.5, expected a whole number.'],
    [
      { ...good, max_completion_tokens: 0 },
      'invalid_value',
      'max_completion_tokens',
      'found 0, expected a value of at least 1.',
    ],
    [{ ...good, n: 9 }, 'invalid_value', 'n', 'found 9, expected a value of at most 8.'],
    [{ ...good, temperature: '1' }, 'invalid_type', 'temperature', 'found "1", expected a number.'],
    [{ ...good, metadata: 'x' }, 'invalid_type', 'metadata', 'found "x", expected an object.'],
  ])('%j', (body, code, param, found) => {
    const message =
      found === '' ? `Missing required parameter: '${param}'.` : `Invalid value for '${param}': ${found}`;
    expect(refusalOf(body)).toEqual({ code, param, message });
  });

  it.each([[[]], [null]])('%j is not an object', (body) => {
    expect(refusalOf(body)).toMatchObject({ param: null, message: 'The body must be a JSON object.' });
  });

  it('no JSON fails in another way', () => {
    const json = fc.jsonValue();
    const near = fc.record({ model: json, messages: json, n: json, tools: json }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.oneof(json, near), (body) => {
        expect(() => refusalOf(body)).not.toThrow();
      }),
      { numRuns: 200 },
    );
  });
});

describe('unknown fields', () => {
  const some = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, i]));
  const bodies = (count: number): [string | null, object][] => [
    [null, { ...good, ...some(count) }],
    ['messages[1]', saying(user, { ...user, ...some(count) })],
    ['messages[0].content[0]', saying({ role: 'user', content: [{ type: 'text', ...some(count) }] })],
    [
      'tools[0].function',
      { ...good, tools: [{ type: 'function', function: { name: 'f', ...some(count) } }] },
    ],
    ['metadata', { ...good, metadata: some(count) }],
    ['vendor.options[0]', { ...good, vendor: { options: [some(count)] } }],
  ];

  it('are limited to 500 in an object', () => {
    for (const [, body] of bodies(500)) expect(refusalOf(body)).toBeUndefined();
    for (const [param, body] of bodies(501))
      expect(refusalOf(body)).toMatchObject({ code: 'json_too_wide', param });
    const input = [{ role: 'user', content: 'x', ...some(501) }];
    expect(() => parseRequest(ResponsesRequest, { model: 'm', input })).toThrow("'input[0]'");
  });

  it('may be any number in a schema and in logit_bias', () => {
    const parameters = { type: 'object', properties: some(90_000) };
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    for (const free of [{ tools }, { logit_bias: some(90_000) }])
      expect(refusalOf({ ...good, ...free })).toBeUndefined();
  });
});
