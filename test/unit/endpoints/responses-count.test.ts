/**
 * POST /v1/responses/input_tokens: the request, the estimates and the reads. The rules of all counts are tested with
 * those of Messages.
 */
import { describe, expect, it } from 'vitest';
import { BillingRig, yuan, type BillingOptions } from '../../support/billing-rig.ts';
import { type Answer, type UpstreamScript } from '../../support/core-rig.ts';
import { plainKey, StoredRig } from '../relay/stored/stored-rig.ts';

const path = '/v1/responses/input_tokens';
const ask = { model: 'm', input: 'How many tokens are these words?' };
const openai = { type: 'openai', dialect: 'responses', endpoint: 'https://openai.test/v1' };
const counted: UpstreamScript = {
  steps: [JSON.stringify({ object: 'response.input_tokens', input_tokens: 42 })],
};

async function count(body: object = ask, options: BillingOptions = {}, upstream = counted) {
  const rig = new BillingRig({ channels: [openai], ...options }).granted(yuan).upstream(upstream);
  const answer = await rig.post(body, { path });
  expect(rig.faults).toEqual([]);
  return { rig, answer };
}

const shown = ({ status, headers, text }: Answer): unknown[] => [
  status,
  headers['x-relay-estimated'],
  JSON.parse(text),
];

describe('a count of a Responses input', () => {
  it('comes from its upstream, which receives the counted fields and nothing about the answer', async () => {
    const body = {
      ...ask,
      instructions: 'Be brief.',
      tools: [{ type: 'function', name: 'read', parameters: { type: 'object' } }],
      reasoning: { effort: 'low' },
      max_output_tokens: 64,
      stream: true,
      store: false,
      prompt_cache_key: 'k',
      include: ['reasoning.encrypted_content'],
    };
    const { rig, answer } = await count(body);
    expect(shown(answer)).toEqual([200, undefined, { object: 'response.input_tokens', input_tokens: 42 }]);
    expect(rig.sent).toHaveLength(1);
    expect(rig.sent[0]?.url).toBe('https://openai.test/v1/responses/input_tokens');
    expect(Object.keys(rig.sent[0]?.json ?? {}).toSorted()).toEqual(
      ['input', 'model', 'reasoning', 'tool_choice', 'tools'].toSorted(),
    );
    expect(rig.logged).toEqual([
      expect.objectContaining({ endpoint: 'responses', end: 'counted', prompt_tokens: 42 }),
    ]);
    expect(rig.quotas.calls).toEqual(['read']);
  });

  it.each<[string, BillingOptions, UpstreamScript]>([
    ['an upstream of another form', { channels: [{}] }, counted],
    ['an upstream without the path', {}, { status: 404, steps: ['{"error":{"message":"Invalid URL"}}'] }],
    ['an upstream that fails', {}, { status: 500 }],
  ])('is an estimate, marked as such, for %s', async (_why, options, upstream) => {
    const { answer } = await count(ask, options, upstream);
    expect(shown(answer)).toEqual([
      200,
      'true',
      { object: 'response.input_tokens', input_tokens: expect.any(Number) },
    ]);
    expect(JSON.parse(answer.text).input_tokens).toBeGreaterThan(5);
  });

  it('is requested in the form that refusals of the model taught', async () => {
    const rig = new BillingRig({ channels: [openai] }).granted(yuan);
    const body = { ...ask, reasoning: { effort: 'max' } };
    const message = "Unsupported value: 'max' for reasoning.effort. Supported values are: 'low' and 'high'.";
    const refusal = { status: 400, steps: [JSON.stringify({ error: { message } })] };
    rig.upstream(refusal, {
      headers: { 'content-type': 'application/json' },
      steps: [JSON.stringify({ object: 'response', status: 'completed', output: [] })],
    });
    await rig.post({ ...body, max_output_tokens: 100 }, { path: '/v1/responses' });
    rig.upstream(counted);
    const answer = await rig.post(body, { path });
    expect(shown(answer)).toEqual([200, undefined, { object: 'response.input_tokens', input_tokens: 42 }]);
    expect(rig.sent.at(-1)?.json['reasoning']).toMatchObject({ effort: 'high' });
  });

  it('needs an input, or a response to continue', async () => {
    const { answer } = await count({ model: 'm' });
    expect([answer.status, JSON.parse(answer.text).error.param]).toEqual([400, 'input']);
  });

  it('supports no other method', async () => {
    const { rig } = await count();
    const answer = await rig.post(undefined, { path, method: 'GET' });
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'POST']);
  });
});

describe('a count that continues a stored response', () => {
  it('counts its whole conversation, for keys that may store', async () => {
    const rig = new StoredRig();
    const { id } = JSON.parse((await rig.create({ input: 'many words '.repeat(100) })).text);
    const answer = await rig.post({ model: 'm', previous_response_id: id }, { path });
    expect(JSON.parse(answer.text).input_tokens).toBeGreaterThan(200);
    const headers = { authorization: `Bearer ${plainKey}` };
    const refused = await rig.post({ model: 'm', previous_response_id: id }, { path, headers });
    expect([refused.status, JSON.parse(refused.text).error.param]).toEqual([400, 'previous_response_id']);
  });

  it('reads the store no more often than it counts', async () => {
    const rig = new StoredRig({ beside: new StoredRig() });
    const { id } = JSON.parse((await rig.create({})).text);
    const statuses = [];
    for (let i = 0; i < 61; i += 1)
      statuses.push((await rig.post({ model: 'm', previous_response_id: id }, { path })).status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(60);
    rig.stored.failing = new Error('asked');
    expect((await rig.post({ model: 'm', previous_response_id: id }, { path })).status).toBe(429);
    expect(rig.faults).toEqual([]);
  });
});
