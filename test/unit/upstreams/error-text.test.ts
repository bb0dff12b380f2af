import { describe, expect, it } from 'vitest';
import { scrub, listWithheldTexts } from '../../../shared/upstreams/error-text.ts';

const known = {
  secret: 'aZ09-the-secret-value',
  host: 'my-resource.openai.azure.com',
  region: 'us-west-2',
  model: 'us.anthropic.claude-opus-5-5-20260801-v1:0',
  publicModel: 'smart',
  vendors: ['openai', 'azure', 'bedrock'],
};
const shown = (text: string, more: Partial<typeof known> = {}) =>
  scrub(text, listWithheldTexts({ ...known, ...more }));

describe("the relay's data about a channel is hidden from clients:", () => {
  it.each([
    [
      'The model us.anthropic.claude-opus-5-5-20260801-v1:0 does not exist',
      /^The model \[removed\] does not exist$/,
    ],
    ['model: anthropic.claude-opus-5-5-20260801-v1:0', /^model: \[removed\]$/],
    ['model `CLAUDE-OPUS-5-5` is overloaded', /^model `\[removed\]` is overloaded$/],
    ['claude-opus-5-5-20260801 is not enabled', /^\[removed\] is not enabled$/],
    ['us.anthropic.claude-opus-5-5-20260801-v1%3A0', /^\[removed\]$/],
    ['Invalid key aZ09-the-secret-value given', /^Invalid key \[removed\] given$/],
    [
      'Resource my-resource was not found in us-west-2',
      /^Resource \[removed\] was not found in \[removed\]$/,
    ],
    ['Could not reach my-resource.openai.azure.com:443/x', /^Could not reach \[removed\]\/x$/],
  ])('%s', (text, expected) => {
    expect(shown(text)).toMatch(expected);
  });

  it.each([
    ['openai/gpt-4o', 'The model gpt-4o-2024-08-06 failed', 'The model [removed] failed'],
    ['gpt-4o', 'gpt-4o. 3 retries', '[removed]. 3 retries'],
    ['large', 'The input is too large for model large', 'The input is too large for model [removed]'],
    ['large', "Unknown model 'large'", "Unknown model '[removed]'"],
    ['chat', 'A chat must start with a user message', 'A chat must start with a user message'],
    ['my-deployment', 'my-deployments are many', 'my-deployments are many'],
  ])('the name %s in: %s', (model, text, expected) => {
    expect(shown(text, { model })).toBe(expected);
  });

  it.each([
    [{ model: 'MyProd' }, 'MyProd is not ready', '[removed] is not ready'],
    [{ model: 'MyProd' }, 'no myprod. MyProducts', 'no [removed]. MyProducts'],
    [{ host: 'vllm.corp' }, 'VLLM.CORP is down', '[removed] is down'],
    [{ host: 'vllm.corp' }, 'the Vllm of corp', 'the [removed] of [removed]'],
    [{ region: 'us-east-1' }, 'not in Us-East-1 or US-EAST-1a', 'not in [removed] or [removed]a'],
    [{ host: 'myresource.openai.azure.com' }, 'MYRESOURCE is paused', '[removed] is paused'],
    [{ host: 'myresource.openai.azure.com' }, 'an API error of Azure OpenAI', 'an API error of Azure OpenAI'],
    [{ host: 'api.deepseek.com', publicModel: 'deepseek-chat' }, 'no deepseek-chat', 'no deepseek-chat'],
    [
      { host: 'bedrock-runtime.us-east-1.amazonaws.com' },
      'a bedrock-runtime error',
      'a bedrock-runtime error',
    ],
    [{ host: '10.1.2.30' }, 'at most 30 tokens', 'at most 30 tokens'],
    [{ secret: 'test' }, 'the latest test of test-key', 'the latest [removed] of [removed]-key'],
    [{ secret: 'a+b' }, 'key a+b, a+bc, A+B', 'key [removed], a+bc, A+B'],
  ])('%j in: %s', (more, text, expected) => {
    expect(shown(text, more)).toBe(expected);
  });

  it('a name that the client itself used is shown', () => {
    expect(shown('The model gpt-4o failed', { model: 'gpt-4o', publicModel: 'gpt-4o' })).toBe(
      'The model gpt-4o failed',
    );
    const both = { model: 'openai/gpt-4o', publicModel: 'gpt-4o' };
    expect(shown('No openai/gpt-4o; gpt-4o failed', both)).toBe('No [removed]; gpt-4o failed');
  });

  it('an empty secret or region removes nothing', () => {
    expect(scrub('a b', listWithheldTexts({ ...known, secret: undefined, region: undefined }))).toBe('a b');
  });
});

describe('text in the form of an account, a key or a place is hidden too:', () => {
  it.each([
    'arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.x-v1:0',
    'arn:aws-us-gov:iam::123456789012:role/relay',
    '123456789012',
    '1234-5678-9012',
    'org-A1b2C3d4E5f6',
    'proj_a1b2c3d4e5',
    'wrkspc_01VQLazKdXNeiKgtrAY1JMbo',
    'sk-abc***************wxyz',
    'AIzaSyA-1234567890abcdefghij',
    'ASIAABCDEFGHIJKL2345',
    'gsk_AbCdEfGh12345678901234567890',
    'xai-AbCdEfGhIjKlMnOpQrStUvWx1',
    'nvapi-AbCdEfGhIjKlMnOpQrStUvWx12345',
    'tgp_v1_AbCdEfGhIjKlMnOpQrStUvWxYz1234',
    'ABSKQmVkcm9ja0FQSUtleS1hYmNkZWZnaA==',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklmnop',
    '6f8c1247-b44f-478b-b12b-ad61437594f0',
    'projects/my-project/locations/global',
    'https://10.0.0.1/v1?key=1',
    '10.1.2.3:8080',
    '[fe80::1%eth0]:80',
    'vllm-0.models.svc',
    'bedrock-mantle.us-east-1.api.aws',
    '/var/task/index.js',
  ])('%s', (revealing) => {
    for (const text of [`not for ${revealing} now`, `"${revealing}"`, `(${revealing})`, `x=${revealing},`]) {
      const said = scrub(text, []) ?? '';
      expect(said).toContain('[removed]');
      expect(said).not.toContain(revealing.slice(0, 9));
    }
  });

  it('a project’s number', () => {
    expect(scrub('Disabled in project 7640860 or project_number:7640860', [])).toBe(
      'Disabled in project [removed] or project [removed]',
    );
  });

  it('an empty account of the operator, which a client would take for its own', () => {
    const text =
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.';
    expect(scrub(text, [])).toBeUndefined();
  });
});

it.each([
  "Invalid value for 'temperature': expected a number between 0 and 2.",
  'messages.3.content.0: unexpected `tool_use_id` found in `tool_result` blocks: call_8f3a',
  'Function tools with reasoning_effort are not supported, use key-value-pairs or org_wide_settings.',
  "This model's maximum context length is 128000 tokens. However, you requested 131072 tokens.",
  'Tool names must match ^[a-zA-Z0-9_-]{1,64}$; 12 tools were given, the project-wide limit is 128.',
  'prompt is too long: 210000 tokens > 200000 maximum, i.e. 5 % too many',
  'Unknown name "seed": Cannot find field.',
  'hf_hub_download_of_a_model_2 and fw-block-of-the-project-1 are no functions',
])('an ordinary sentence is unchanged: %s', (sentence) => {
  expect(shown(sentence)).toBe(sentence);
});

it('hostile texts are processed quickly', () => {
  const hostile = [
    'a.'.repeat(2000),
    '<'.repeat(4000),
    'arn:aws:'.repeat(600),
    'claude-opus-5-5-1'.repeat(300),
  ];
  for (const text of [...hostile, `org-${'a'.repeat(4000)}`, '1-'.repeat(2000), '/a'.repeat(2000)])
    expect((shown(text) ?? '').length).toBeLessThanOrEqual(600);
});

it('only the start of a text is read', () => {
  expect(shown(`Bad value.${' '.repeat(2400)}And more.`)).toBe('Bad value.');
  expect(shown('x'.repeat(100_000))).toHaveLength(600);
});
