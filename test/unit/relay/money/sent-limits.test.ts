/** Which limit on output tokens goes upstream, by dialect, type of channel and payer. */
import { describe, expect, it } from 'vitest';
import { ask, BillingRig, byCall, byTokens, free, yuan } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';

interface Sent extends Record<string, unknown> {
  max_tokens?: number;
}

const openai = {};
const atOpenai = { endpoint: 'https://api.openai.com/v1' };
const azure = { type: 'azure', endpoint: 'https://r.openai.azure.com/openai/v1' };
const gemini = { type: 'gemini' };
const anthropic = { type: 'anthropic' };
const bedrock = { type: 'bedrock', region: 'us-west-2' };
const names = new Set(['max_tokens', 'max_completion_tokens', 'max_output_tokens']);

/** The limits of the request sent upstream. */
async function limits(row: object, { body = ask, ...options }: Options = {}): Promise<Sent> {
  const rig = new BillingRig({ channels: [row as Record<string, unknown>], ...options });
  await rig
    .upstream({ steps: hello })
    .granted(10_000n * yuan)
    .call(body);
  const json: Record<string, unknown> = rig.sent[0]?.json ?? {};
  return Object.fromEntries(Object.entries(json).filter(([field]) => names.has(field)));
}

type Options = ConstructorParameters<typeof BillingRig>[0] & { body?: object };

const usual = 16_384;
const table: [string, object, string, string][] = [
  ['openai', openai, 'm', 'max_tokens'],
  ["openai, at OpenAI's", atOpenai, 'm', 'max_completion_tokens'],
  ['openai, in responses', { ...openai, dialect: 'responses' }, 'm', 'max_output_tokens'],
  ['openai, in messages', { ...openai, dialect: 'messages' }, 'm', 'max_tokens'],
  [
    'openai, with a field named by the row',
    { max_tokens_field: 'max_completion_tokens' },
    'm',
    'max_completion_tokens',
  ],
  ['azure', azure, 'm', 'max_completion_tokens'],
  ['azure, in responses', { ...azure, dialect: 'responses' }, 'm', 'max_output_tokens'],
  ['gemini', gemini, 'gemini-3-pro', 'max_tokens'],
  ['anthropic', anthropic, 'claude-opus-4-7', 'max_tokens'],
  ['anthropic, in chat', { ...anthropic, dialect: 'chat' }, 'claude-opus-4-7', 'max_tokens'],
  ['bedrock, Claude', bedrock, 'anthropic.claude-opus-5-5-v1:0', 'max_tokens'],
  ['bedrock, GPT', bedrock, 'openai.gpt-5.6', 'max_output_tokens'],
  ['bedrock, others', bedrock, 'deepseek.v3-v1:0', 'max_completion_tokens'],
];

describe('a call paid by the balance sends the reserved limit', () => {
  it.each(table)('%s', async (_name, row, model, field) => {
    const mapped = { ...row, mapper: { m: model } };
    expect(await limits(mapped)).toEqual({ [field]: usual });
    expect(await limits({ ...mapped, params: { max_output_tokens: 900 } })).toEqual({ [field]: 900 });
    const model_rules = { [model]: { max_output_tokens: 1_200 } };
    expect(await limits({ ...mapped, params: { max_output_tokens: 900, model_rules } })).toEqual({
      [field]: 1_200,
    });
  });

  it.each([
    ['low', usual],
    ['medium', 2 * usual],
    ['high', 2 * usual],
    ['xhigh', 2 * usual],
    ['max', 2 * usual],
  ])('with effort %s: %i', async (effort, expected) => {
    const body = { ...ask, reasoning_effort: effort };
    expect(await limits(openai, { body })).toEqual({ max_tokens: expected });
  });

  it.each([
    ['the default of the rule', { default_output_tokens: 2_000 }, ask, 2_000],
    ['no more than the maximum of the rule', { max_output_tokens: 3_000 }, ask, 3_000],
    ["the client's own", { default_output_tokens: 2_000 }, { ...ask, max_tokens: 70 }, 70],
    [
      "the client's own, up to the maximum",
      { max_output_tokens: 3_000 },
      { ...ask, max_tokens: 70_000 },
      3_000,
    ],
  ])('%s', async (_name, rule, body, expected) => {
    const charges = [{ ...byTokens, ...rule }];
    expect(await limits(openai, { charges, body })).toEqual({ max_tokens: expected });
  });

  it('raised to the vendor’s minimum', async () => {
    const body = { ...ask, max_tokens: 1 };
    expect(await limits({ dialect: 'responses' }, { body })).toEqual({ max_output_tokens: 16 });
  });
});

describe('content of unknown size', () => {
  const body = { ...ask, messages: [{ role: 'user', content: [{ type: 'hologram', hologram: 'x' }] }] };
  const callIn = async (options: Options) => {
    const rig = new BillingRig(options).upstream({ steps: hello }).granted(10_000n * yuan);
    return { rig, answer: await rig.call(body) };
  };

  it('is rejected and named if the balance pays, and nothing is reserved', async () => {
    const { rig, answer } = await callIn({});
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text).error).toMatchObject({
      type: 'invalid_request_error',
      code: 'unsupported_content',
      param: 'messages[0].content[0]',
    });
    expect(rig.item?.available).toBe(10_000n * yuan);
    expect(rig.sent).toEqual([]);
  });

  it('is served if the balance does not pay', async () => {
    expect((await callIn({ charges: [free] })).answer.status).toBe(200);
    expect((await callIn({ charges: [byCall] })).answer.status).toBe(200);
  });
});
