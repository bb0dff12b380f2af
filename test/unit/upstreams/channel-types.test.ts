import { describe, expect, it } from 'vitest';
import { type ChannelRow, readChannel } from '../../../shared/config/rows/channel-row.ts';
import { dialectOf, buildRequest } from '../../../shared/upstreams/called-channel.ts';
import { dialectNames, loadDialect } from '../../../shared/upstreams/dialects/dialects.ts';
import { callIds, chatCall } from '../../support/dialect-parts.ts';
import type { CanonicalCall, ChatRequest } from '../../../shared/wire/canonical-call.ts';

const dialects = new Map(
  await Promise.all(dialectNames.map(async (name) => [name as string, await loadDialect(name)] as const)),
);
const message = { role: 'user' as const, content: 'hi' };

function rowOf(attributes: Record<string, unknown>): ChannelRow {
  const reading = readChannel({ id: 'c', models: ['m'], state: true, ...attributes }, { local: false });
  if ('problem' in reading) throw new Error(reading.problem);
  return reading.row;
}

function sent(
  attributes: Record<string, unknown>,
  request: Partial<ChatRequest> = {},
  limit?: number,
  more: Partial<CanonicalCall> = {},
) {
  const row = rowOf(attributes);
  const model = 'up/stream';
  const dialect = dialects.get(dialectOf(row, model));
  if (!dialect) throw new Error('no dialect');
  const { request: built } = buildRequest(row, {
    dialect,
    call: { ...chatCall({ model: 'public', messages: [message], ...request }), ...more },
    outputTokensDefault: 16_384,
    states: new Map(),
    callIds,
    omissions: new Set(),
    model,
    secret: 'secret' in attributes ? 'the-key' : undefined,
    outputTokensLimit: limit,
  });
  return { ...built, body: JSON.parse(built.body) as Record<string, unknown> };
}

const secret = 'ssm:/relay/relay/x';
const openai = { endpoint: 'https://api.example.com/v1/', secret };
const azure = { type: 'azure', endpoint: 'https://r.openai.azure.com', api_version: '2024-10-21', secret };
const azureV1 = { type: 'azure', endpoint: 'https://r.openai.azure.com/openai/v1/', secret };
const bedrock = { type: 'bedrock', region: 'us-west-2' };
const claude = { type: 'anthropic', secret };
const anthropic = { ...claude, dialect: 'chat' };
const gemini = { type: 'gemini', secret };

describe('address and credentials', () => {
  it.each([
    ['openai', openai, 'https://api.example.com/v1/chat/completions', { authorization: 'Bearer the-key' }],
    [
      'azure, dated version',
      azure,
      'https://r.openai.azure.com/openai/deployments/up%2Fstream/chat/completions?api-version=2024-10-21',
      { 'api-key': 'the-key' },
    ],
    [
      'azure, base with /openai',
      { ...azure, endpoint: 'https://r.openai.azure.com/openai/' },
      'https://r.openai.azure.com/openai/deployments/up%2Fstream/chat/completions?api-version=2024-10-21',
      { 'api-key': 'the-key' },
    ],
    [
      'azure, newer form',
      azureV1,
      'https://r.openai.azure.com/openai/v1/chat/completions',
      { 'api-key': 'the-key' },
    ],
    [
      'azure, newer form with a version',
      { ...azureV1, api_version: 'preview' },
      'https://r.openai.azure.com/openai/v1/chat/completions?api-version=preview',
      { 'api-key': 'the-key' },
    ],
    [
      'anthropic in its compatible form',
      anthropic,
      'https://api.anthropic.com/v1/chat/completions',
      { authorization: 'Bearer the-key' },
    ],
    [
      'gemini',
      gemini,
      'https://generativelanguage.googleapis.com/v1beta/openai/chat/completions',
      { authorization: 'Bearer the-key' },
    ],
    ['bedrock', bedrock, 'https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions', {}],
  ])('%s', (_name, row, url, credentials) => {
    const request = sent(row);
    expect(request.url).toBe(url);
    expect(request.headers).toEqual({
      'content-type': 'application/json',
      accept: expect.stringMatching(/^text\/event-stream, .*application\/json$/) as unknown,
      ...credentials,
    });
    expect(request.body).toMatchObject({ model: 'up/stream', messages: [message], stream: true });
  });

  it('are signed for Bedrock only, for its region', () => {
    expect(sent(bedrock).awsScope).toEqual({ service: 'bedrock', region: 'us-west-2' });
    for (const row of [openai, azure, anthropic, gemini]) expect(sent(row)).not.toHaveProperty('awsScope');
  });
});

describe('the field of a default limit', () => {
  it.each([
    ['another endpoint', openai, 'max_tokens'],
    ['OpenAI itself', { ...openai, endpoint: 'https://api.openai.com/v1' }, 'max_completion_tokens'],
    ['azure', azure, 'max_completion_tokens'],
    ['azure, as its row says', { ...azure, max_tokens_field: 'max_tokens' }, 'max_tokens'],
    ['bedrock', bedrock, 'max_completion_tokens'],
    ['anthropic', anthropic, 'max_tokens'],
    ['gemini', gemini, 'max_tokens'],
  ])('%s', (_name, row, field) => {
    const { body } = sent(row, {}, 99);
    expect(Object.keys(body).filter((name) => name.includes('max_'))).toEqual([field]);
    expect(body[field]).toBe(99);
  });
});

describe('the request for a reasoning summary', () => {
  const mantle = { endpoint: 'https://bedrock-mantle.us-east-1.api.aws/v1', secret, dialect: 'responses' };
  const call = { form: 'responses', unknown: { reasoning: { summary: 'detailed' } } };
  it.each([
    ['auto at Bedrock, which refuses others', { ...bedrock, dialect: 'responses' }, 'auto'],
    ["auto at Bedrock's endpoints for keys", mantle, 'auto'],
    [
      'auto at the other of them',
      { ...mantle, endpoint: 'https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1' },
      'auto',
    ],
    ['as the client asks for it elsewhere', { ...openai, dialect: 'responses' }, 'detailed'],
  ])('is sent as %s', (_, row, expected) => {
    expect(sent(row, {}, undefined, call).body['reasoning']).toMatchObject({ summary: expected });
  });
});

describe('usage of a stream', () => {
  const asked = { stream_options: { include_usage: true } };

  it.each([openai, azure, azureV1, bedrock, anthropic, gemini])('is requested: %j', (row) => {
    expect(sent(row).body).toMatchObject(asked);
  });

  it.each(['2024-06-01', '2024-07-01-preview'])(
    'is not requested from Azure %s, which rejects the field',
    (version) => {
      expect(sent({ ...azure, api_version: version }, asked).body).not.toHaveProperty('stream_options');
    },
  );
});

describe('unknown fields', () => {
  const foreign = { seed: 1, store: false, metadata: {}, frequency_penalty: 0.1, top_k: 4, min_p: 0.1 };

  it('reach upstreams that accept or ignore unknown fields', () => {
    for (const row of [openai, azure, bedrock, anthropic])
      expect(sent(row, foreign).body).toMatchObject(foreign);
  });

  it('do not reach Gemini, which rejects every unknown name, but known fields do', () => {
    const known = {
      temperature: 1.5,
      top_p: 0.9,
      n: 2,
      stop: ['x'],
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: 'auto',
      response_format: { type: 'json_object' },
      reasoning_effort: 'low',
      max_tokens: 5,
    };
    const { body } = sent(gemini, { ...foreign, ...known });
    expect(body).toEqual({
      ...known,
      model: 'up/stream',
      messages: [message],
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});
