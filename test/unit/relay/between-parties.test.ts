/** Nothing passes between client and upstream unless the relay sends it on purpose. */
import { describe, expect, it } from 'vitest';
import { CoreRig, data, demoKey, done, finish, frames, hello, usage } from '../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

describe('an upstream', () => {
  it('gets three headers of the relay and none from the client', async () => {
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

describe('a tool schema', () => {
  it('is sent as written, and the relay never compiles, resolves or runs it', async () => {
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

describe('upstream text that looks like frames', () => {
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

  it('stays inside one frame of a stream', async () => {
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

  it('stays inside one Responses event', async () => {
    const rig = new CoreRig().upstream({ steps, headers });
    const { text } = await rig.post({ model: 'm', input: 'hi', stream: true }, { path: '/v1/responses' });
    const names = text.split('\n').filter((line) => line.startsWith('event: '));
    expect(names.every((line) => /^event: response\.[a-z_.]+$/.test(line))).toBe(true);
    expect(text).toContain(JSON.stringify(words));
  });

  it('reaches the client without the upstream’s headers', async () => {
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
