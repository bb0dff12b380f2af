/** Schemas, images and forced calls of clients of OpenAI's form, against the double of Claude. */
import { describe, expect, it } from 'vitest';
import { VendorRig } from '../../../support/vendor-rig.ts';

const opus = { vendor: 'anthropic', model: 'claude-opus-5-5', row: { type: 'anthropic' } };
const messages = [{ role: 'user', content: 'hi' }];
const format = (schema: object): object => ({
  response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } },
});
const bounded = { type: 'object', properties: { age: { type: 'integer', minimum: 0 } } };
const recursive = {
  type: 'object',
  properties: { next: { $ref: '#/$defs/node' } },
  $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
};
const strict = (name: string, parameters: object): object => ({
  type: 'function',
  function: { name, parameters, strict: true },
});

describe('a schema of a client', () => {
  it.each(['/v1/chat/completions', '/v1/responses'])(
    'that Claude takes in part is sent, and what became words is named: %s',
    async (path) => {
      const rig = new VendorRig([opus]);
      const text = { format: { type: 'json_schema', name: 'n', schema: bounded } };
      const body = path.endsWith('responses') ? { input: 'hi', text } : { messages, ...format(bounded) };
      const answer = await rig.core.post({ model: 'm', ...body }, { path });
      expect([answer.status, rig.objections]).toEqual([200, []]);
      expect(answer.headers['x-relay-dropped']).toBe('response_format.minimum');
    },
  );

  it('that Claude cannot hold goes to the next candidate, else it is a 400 before anything is sent', async () => {
    const rig = new VendorRig([opus, { vendor: 'openai', model: 'gpt-4.1', row: { type: 'openai' } }]);
    const answer = await rig.core.post({ model: 'm', messages, ...format(recursive) });
    expect([answer.status, rig.calls.map(({ vendor }) => vendor)]).toEqual([200, ['openai']]);
    const alone = new VendorRig([opus]);
    const refused = await alone.core.post({ model: 'm', messages, ...format(recursive) });
    expect([refused.status, alone.calls]).toEqual([400, []]);
    expect(JSON.parse(refused.text).error).toMatchObject({
      param: 'response_format',
      code: 'unsupported_parameter',
    });
  });

  it('of a strict tool loses what Claude refuses, or the tool its strictness, and both are named', async () => {
    const rig = new VendorRig([opus]);
    const tools = [strict('bounded', bounded), strict('recursive', recursive)];
    const answer = await rig.core.post({ model: 'm', messages, tools });
    expect([answer.status, rig.objections]).toEqual([200, []]);
    expect(answer.headers['x-relay-dropped']).toBe('tools.minimum, strict');
    const sent = rig.calls[0]?.body['tools'] as { strict?: boolean; input_schema: object }[];
    expect(sent.map((tool) => tool.strict)).toEqual([true, undefined]);
    expect(sent[1]?.input_schema).toEqual(recursive);
  });
});

describe('an image', () => {
  const image = (type: string): object => ({
    model: 'm',
    messages: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:${type};base64,AAAA` } }] },
    ],
  });

  const gemini = { vendor: 'gemini', model: 'gemini-3-pro-preview', row: { type: 'gemini' } };
  it.each([opus, gemini])('of the type image/jpg is a JPEG at $vendor', async (model) => {
    const rig = new VendorRig([model]);
    expect((await rig.core.post(image('image/jpg'))).status).toBe(200);
    expect(rig.objections).toEqual([]);
  });
});

describe('a call that the client forces on Haiku 5.5', () => {
  it.each([undefined, 'none'])('is forced, since it does not think then: effort %s', async (effort) => {
    const rig = new VendorRig([{ ...opus, model: 'claude-haiku-5-5' }]);
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
    const more = { reasoning_effort: effort, tool_choice: 'required' };
    const answer = await rig.core.post({ model: 'm', messages, tools, ...more });
    expect([answer.status, rig.objections]).toEqual([200, []]);
    expect(answer.headers['x-relay-tool-choice']).toBeUndefined();
    expect(JSON.parse(answer.text).choices[0].message.tool_calls).toHaveLength(1);
  });
});
