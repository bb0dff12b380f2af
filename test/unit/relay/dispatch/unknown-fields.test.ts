/** A server that rejects unknown optional fields gets a retry without them, and the relay names the dropped fields. */
import { describe, expect, it } from 'vitest';
import { CoreRig, data, delta, done, finish } from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const refusal = (status: number, body: Json) => ({ status, steps: [JSON.stringify(body)] });
const good = {
  steps: [
    delta('hello'),
    finish('stop'),
    data({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 1 } }),
    done,
  ],
};
const words = (message: string, more: Json = {}) =>
  refusal(400, { error: { message, type: 'invalid_request_error', ...more } });
const extra = (...fields: string[]) => ({
  detail: fields.map((field) => ({
    type: 'extra_forbidden',
    loc: ['body', field],
    msg: 'Extra inputs are not permitted',
    input: 1,
  })),
});

const path = '/v1/messages';
const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const asking = { ...ask, user: 'u', seed: 1, service_tier: 'auto' };

describe('a server that rejects an unknown field', () => {
  it.each([
    [
      'Mistral',
      refusal(422, { object: 'error', message: extra('user'), type: 'invalid_request_error', code: null }),
    ],
    ['FastAPI', refusal(422, extra('user'))],
    [
      'vLLM',
      refusal(400, {
        object: 'error',
        message:
          "[{'type': 'extra_forbidden', 'loc': ('body', 'user'), 'msg': 'Extra inputs are not permitted'}]",
        type: 'BadRequestError',
        code: 400,
      }),
    ],
    ['OpenAI', words("Unknown parameter: 'user'.", { code: 'unknown_parameter', param: 'user' })],
    ['older servers', words('Unrecognized request argument supplied: user')],
    ['Groq', words("property 'user' is unsupported")],
    [
      'Google',
      refusal(400, {
        error: {
          code: 400,
          message: 'Invalid JSON payload received. Unknown name "user": Cannot find field.',
          status: 'INVALID_ARGUMENT',
        },
      }),
    ],
    ['servers in Rust', words('unknown field `user`, expected one of `model`, `messages`')],
    ['servers in Go', words('json: unknown field "user"')],
    ['JSON Schema', words("Additional properties are not allowed ('user' was unexpected)")],
    [
      'Anthropic',
      refusal(400, {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'user: Extra inputs are not permitted' },
      }),
    ],
  ])('is retried without it, and the relay remembers: %s', async (_case, refused) => {
    const rig = new CoreRig().upstream(refused, good);
    const answer = await rig.post(asking);
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'user']);
    expect(rig.sent.map(({ json }) => ['user' in json, json['seed']])).toEqual([
      [true, 1],
      [false, 1],
    ]);
    expect(rig.learned.written.map(({ fact }) => fact)).toEqual(['refused_fields:user']);
    await rig.post(asking);
    expect(rig.sent).toHaveLength(3);
  });

  it('such as the newer name of the limit gets it under the older name', async () => {
    const rig = new CoreRig().upstream(refusal(422, extra('max_completion_tokens')), good);
    expect((await rig.post({ ...ask, max_completion_tokens: 50 })).status).toBe(200);
    expect(rig.sent[1]?.json['max_tokens']).toBe(50);
    expect(rig.learned.written.map(({ fact }) => fact)).toEqual(['limit_field:max_tokens']);
  });

  it.each([true, false])(
    "such as the relay's own wish for usage streams without it (stream: %s)",
    async (stream) => {
      const refused = words('Unrecognized request argument supplied: stream_options');
      const rig = new CoreRig().upstream(refused, good);
      const answer = await rig.post({ ...ask, stream });
      expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'stream_options']);
      expect(rig.sent.map(({ json }) => 'stream_options' in json)).toEqual([true, false]);
      expect(rig.learned.written.map(({ fact }) => fact)).toEqual(['refused_fields:stream_options']);
    },
  );

  it('and names several gets none of them in the retry', async () => {
    const rig = new CoreRig().upstream(refusal(422, extra('user', 'seed', 'reasoning_effort')), good);
    const answer = await rig.post({ ...asking, reasoning_effort: 'low' });
    expect([answer.status, answer.headers['x-relay-dropped']?.split(', ').toSorted()]).toEqual([
      200,
      ['reasoning_effort', 'seed', 'user'],
    ]);
  });

  it('and names one after the other gets no optional field from the third request on', async () => {
    const one = (field: string) => words(`unknown field \`${field}\``);
    const rig = new CoreRig().upstream(one('user'), one('seed'), good);
    const answer = await rig.post({ ...asking, metadata: { a: 'b' } });
    expect([answer.status, Object.keys(rig.sent[2]?.json ?? {}).toSorted()]).toEqual([
      200,
      ['messages', 'model', 'stream', 'stream_options'],
    ]);
  });

  it.each([
    [
      'a field with a price or a meaning',
      words("Unknown parameter: 'service_tier'.", { code: 'unknown_parameter', param: 'service_tier' }),
    ],
    ['a field that the client needs', words('unknown field `tools`')],
    [
      'a value',
      words("Invalid 'user': string too long.", { code: 'string_above_max_length', param: 'user' }),
    ],
    [
      'a field inside another',
      refusal(422, {
        detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 0, 'user'], msg: 'Extra' }],
      }),
    ],
  ])('is not retried if it rejects %s', async (_case, refused) => {
    const rig = new CoreRig().upstream(refused, good);
    expect(
      (await rig.post({ ...asking, tools: [{ type: 'function', function: { name: 'f' } }] })).status,
    ).toBe(refused.status);
    expect(rig.sent).toHaveLength(1);
  });

  it('gets no more than three requests, whatever it keeps rejecting', async () => {
    const rig = new CoreRig().upstream(words('unknown field `user`'));
    expect((await rig.post(asking)).status).toBe(400);
    expect([rig.sent.length <= 3, rig.learned.written]).toEqual([true, []]);
  });
});

describe('fields that the relay derives from a Messages request', () => {
  const derived = {
    max_tokens: 5000,
    metadata: { user_id: 'u' },
    thinking: { type: 'enabled', budget_tokens: 2000 },
  };
  it.each([
    ['to an unknown server', {}, [false, undefined], 'metadata.user_id, reasoning_effort'],
    [
      'to a server whose row names efforts',
      { params: { efforts: ['low', 'high'] } },
      [false, 'low'],
      'metadata.user_id',
    ],
    ['to OpenAI', { endpoint: 'https://api.openai.com/v1' }, [true, 'low'], undefined],
  ])('are sent %s only as far as it is known to accept them', async (_case, row, expected, dropped) => {
    const rig = new CoreRig({ channels: [row] }).upstream(good);
    const answer = await rig.post({ ...ask, ...derived }, { path });
    const { json = {} } = rig.sent[0] ?? {};
    expect(['user' in json, json['reasoning_effort']]).toEqual(expected);
    expect(answer.headers['x-relay-dropped']).toBe(dropped);
  });
});
