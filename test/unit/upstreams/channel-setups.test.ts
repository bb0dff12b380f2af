import { describe, expect, it } from 'vitest';
import { type UpstreamModelList } from '../../../shared/upstreams/channel-type.ts';
import { channelSetups, type ChannelTypeName } from '../../../shared/upstreams/types/channel-types.ts';

function listOf(type: ChannelTypeName): UpstreamModelList {
  const { models } = channelSetups[type];
  if ('unlisted' in models) throw new Error(models.unlisted);
  return models;
}

const endpoint = 'https://api.example.com/v1';
const entries = [{ id: 'b', object: 'model' }, { id: 'a' }];

describe('the model list', () => {
  it('of Anthropic is read page by page, with the headers of its own API', () => {
    const { address, headers, read } = listOf('anthropic');
    expect(address({ endpoint }, undefined)).toBe(`${endpoint}/models?limit=1000`);
    expect(address({ endpoint }, 'a/b')).toBe(`${endpoint}/models?limit=1000&after_id=a%2Fb`);
    expect(headers?.('key')).toEqual({ 'x-api-key': 'key', 'anthropic-version': '2023-06-01' });
    const rules = new Map(entries.map(({ id }) => [id, {}]));
    const page = { models: ['b', 'a'], rules };
    expect(read({ data: entries, has_more: true, last_id: 'a' })).toEqual({ ...page, after: 'a' });
    expect(read({ data: entries, has_more: false, last_id: 'a' })).toEqual(page);
    expect(read({ data: entries, has_more: true, last_id: null })).toEqual(page);
  });

  it('of Gemini loses the prefix that requests omit', () => {
    expect(listOf('gemini').read({ data: [{ id: 'models/gemini-x' }, { id: 'gemini-y' }] })).toEqual({
      models: ['gemini-x', 'gemini-y'],
    });
  });

  it.each([undefined, null, 'text', {}, { data: {} }, { data: ['a'] }, { data: [{ id: 1 }] }, [{}]])(
    'rejects %j',
    (body) => {
      expect(listOf('openai').read(body)).toBeUndefined();
    },
  );

  it('is unsupported for Azure and Bedrock, with a reason', () => {
    expect(channelSetups.azure.models).toEqual({
      unlisted: expect.stringContaining('deployments') as string,
    });
    expect(channelSetups.bedrock.models).toEqual({ unlisted: expect.stringContaining('own role') as string });
  });
});

describe('the questions of init', () => {
  /** Like init: skips questions with a known or needless answer. */
  const asked = (type: ChannelTypeName, answers: Record<string, string>): string[] =>
    channelSetups[type].questions
      .filter((question) => !question.isNeedless?.({ endpoint: '', ...answers }))
      .map(({ attribute }) => attribute);

  it.each([
    ['openai', {}, ['endpoint']],
    ['azure', { endpoint: 'https://r.openai.azure.com' }, ['endpoint', 'api_version']],
    ['azure', { endpoint: 'https://r.openai.azure.com/openai/v1/' }, ['endpoint']],
    ['bedrock', {}, ['region']],
    ['anthropic', {}, []],
    ['gemini', {}, []],
  ] as const)('for %s with the answers %j', (type, answers, attributes) => {
    expect(asked(type, answers)).toEqual(attributes);
  });
});
