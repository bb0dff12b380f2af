/** What of a client reaches an upstream, and of an upstream a client, by itself: nothing. */
import { describe, expect, it } from 'vitest';
import { CoreRig, data, demoKey, done, finish, frames, hello, usage } from '../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

describe('an upstream', () => {
  it('is sent three headers of the relay’s own, and none of the client’s', async () => {
    const rig = new CoreRig({ channels: [{ secret: 'ssm:/relay/relay/x' }] }).upstream({ steps: hello });
    await rig.post(ask, {
      headers: {
        authorization: `Bearer ${demoKey}`,
        cookie: 'session=1',
        'x-forwarded-for': '203.0.113.9',
        'openai-organization': 'org-of-the-client',
        'x-api-key': 'of the client',
        host: 'relay.example',
      },
      baseUrl: 'https://relay.example/v1',
    });
    expect(rig.sent[0]?.headers).toEqual({
      'content-type': 'application/json',
      accept: 'text/event-stream, application/json',
      authorization: 'Bearer upstream-secret-value',
    });
  });
});

describe('the schema of a tool', () => {
  it('goes up as it was written, whatever it says: nothing compiles, resolves or runs it', async () => {
    const parameters = {
      type: 'object',
      $ref: 'http://169.254.169.254/latest/meta-data',
      $schema: 'https://json-schema.example/none',
      properties: { a: { type: 'string', pattern: '(a+)+$' }, constructor: { enum: [1, null] } },
      allOf: Array.from({ length: 50 }, (_, at) => ({ not: { const: at } })),
      required: 'a',
    };
    const tools = [{ type: 'function', function: { name: 'f', parameters, strict: true } }];
    const rig = new CoreRig().upstream({ steps: hello });
    await rig.post({ ...ask, tools });
    expect(rig.sent.map(({ json }) => json['tools'])).toEqual([tools]);
  });
});

describe('words of an upstream that look like frames', () => {
  const words = 'a\n\ndata: {"choices":[]}\n\ndata: [DONE]\n\nevent: error\r\n\r\nb\u2028c\u0000';
  const steps = [
    data({
      id: 'x\n\ndata: [DONE]',
      model: words,
      choices: [{ index: 0, delta: { role: 'assistant', content: words } }],
    }),
    finish(),
    usage(7, 2),
    done,
  ];
  const headers = { 'set-cookie': 'a=b', 'x-request-id': 'of-the-upstream', 'content-type': 'text/html' };

  it('stay words of one frame in a stream', async () => {
    const rig = new CoreRig().upstream({ steps, headers });
    const answer = await rig.post({ ...ask, stream: true });
    const values = frames(answer.text) as { id: string; model: string; choices: { delta: object }[] }[];
    expect(values.slice(0, -1).every(({ id, model }) => id.startsWith('chatcmpl-01') && model === 'm')).toBe(
      true,
    );
    expect(values.flatMap((one) => one.choices?.map(({ delta }) => delta) ?? [])).toContainEqual(
      expect.objectContaining({ content: words }),
    );
    expect(answer.text.split('\n').filter((line) => line === 'data: [DONE]')).toHaveLength(1);
    expect(answer.text).not.toMatch(/^event/m);
  });

  it('stay words of one event on Responses', async () => {
    const rig = new CoreRig().upstream({ steps, headers });
    const { text } = await rig.post({ model: 'm', input: 'hi', stream: true }, { path: '/v1/responses' });
    const names = text.split('\n').filter((line) => line.startsWith('event: '));
    expect(names.every((line) => /^event: response\.[a-z_.]+$/.test(line))).toBe(true);
    expect(text).toContain(JSON.stringify(words));
  });

  it('come without the headers that brought them', async () => {
    const rig = new CoreRig().upstream({ steps, headers });
    const answer = await rig.post(ask);
    expect(JSON.parse(answer.text).choices[0].message.content).toBe(words);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'x-request-id': '01testrequest0000000000000',
    });
    expect(answer.headers).not.toHaveProperty('set-cookie');
  });
});
