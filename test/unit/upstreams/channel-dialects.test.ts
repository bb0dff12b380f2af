import { describe, expect, it } from 'vitest';
import { readChannel, type ChannelRow } from '../../../shared/config/rows/channel-row.ts';
import type { ChannelType } from '../../../shared/upstreams/channel-type.ts';
import { dialectOf, quirksOf } from '../../../shared/upstreams/called-channel.ts';
import { channelTypes, type OwnAttributeName } from '../../../shared/upstreams/types/channel-types.ts';

const secret = 'ssm:/relay/relay/x';
const openai = {
  endpoint: 'https://api.example.com/v1',
  secret: 'ssm:/relay/relay/channels/api.example.com/x',
};
const bedrock = { type: 'bedrock', region: 'us-west-2' };
const azure = {
  type: 'azure',
  endpoint: 'https://r.openai.azure.com',
  api_version: '2025-04-01-preview',
  secret,
};

const reading = (attributes: object) =>
  readChannel({ id: 'c', models: ['m'], state: true, ...attributes }, { local: false });

function rowOf(attributes: object): ChannelRow {
  const read = reading(attributes);
  if ('problem' in read) throw new Error(read.problem);
  return read.row;
}

describe('the dialect of a channel for a model', () => {
  it.each([
    [openai, 'gpt-5.6', 'chat'],
    [azure, 'gpt-5.6', 'chat'],
    [{ type: 'gemini', secret }, 'gemini-3-pro', 'chat'],
    [{ type: 'anthropic', secret }, 'claude-opus-5-5', 'messages'],
    [bedrock, 'anthropic.claude-opus-5-5-v1:0', 'messages'],
    [bedrock, 'us.anthropic.claude-opus-5-5-v1:0', 'messages'],
    [bedrock, 'global.anthropic.claude-opus-5-5-v1:0', 'messages'],
    [bedrock, 'us-gov.anthropic.claude-opus-5-5-v1:0', 'messages'],
    [bedrock, 'openai.gpt-5.6', 'responses'],
    [bedrock, 'eu.openai.gpt-5.6', 'responses'],
    [bedrock, 'openai.gpt-oss-120b-1:0', 'chat'],
    [bedrock, 'deepseek.v3-v1:0', 'chat'],
    [bedrock, 'qwen.qwen3-anthropic.openai', 'chat'],
    [bedrock, 'm', 'chat'],
  ])('%j, %s: %s', (row, name, dialect) => {
    expect(dialectOf(rowOf({ ...row, mapper: { m: name } }), 'm')).toBe(dialect);
  });

  it('is set by the row, for all models or for one', () => {
    expect(dialectOf(rowOf({ ...openai, dialect: 'messages' }), 'm')).toBe('messages');
    const row = rowOf({ ...openai, models: ['m', 'n'], dialect: { n: 'messages' } });
    expect(['m', 'n'].map((model) => dialectOf(row, model))).toEqual(['chat', 'messages']);
  });

  it.each([
    [{ dialect: 'palm' }, /^dialect: found "palm", expected "chat".*, or a map of public model name/],
    [{ dialect: { m: 'palm' } }, /^dialect.*expected "chat"/],
    [{ dialect: { other: 'chat' } }, /^dialect: found other, expected names from models/],
    [{ dialect: ['chat'] }, /^dialect: found \["chat"\], expected/],
    [{ params: { call_ids: 'max9' } }, /^params.call_ids: .*"max64", "max40" or "alnum9"/],
    [{ params: { efforts: ['huge'] } }, /^params.efforts\[0\]: found "huge", expected "none", /],
    [
      { params: { efforts: [] } },
      /^params.efforts: found \[\], expected a list of "none".*, or no attribute instead of an empty list$/,
    ],
    [{ params: { wants_back: 'all' } }, /^params.wants_back: /],
    [{ params: { think_tags: 'perhaps' } }, /^params.think_tags: .*true or false/],
    [{ params: { model_rules: [] } }, /^params.model_rules: .*a map of model name/],
    [{ params: { model_rules: { m: 'low' } } }, /^params.model_rules.m: .*a map of rules/],
    [{ params: { model_rules: { 'm n': {} } } }, /^params.model_rules/],
    [{ params: { model_rules: { '*a*b*c*': {} } } }, /^params.model_rules.*at most three/],
    [
      { params: { model_rules: { m: { thinking: 'deep' } } } },
      /^params.model_rules.m.thinking: found .*, expected "adaptive"/,
    ],
    [
      { params: { model_rules: { m: { efforts: ['huge'] } } } },
      /^params.model_rules.m.efforts\[0\]: found "huge", expected "none", /,
    ],
    [
      { params: { model_rules: { m: { forced_calls: 'no' } } } },
      /^params.model_rules.m.forced_calls: .*true or false/,
    ],
    [
      { params: { model_rules: { m: { cache_breakpoints: 5 } } } },
      /^params.model_rules.m.cache_breakpoints: .*from 0 to 4/,
    ],
    [{ can: { tools: true } }, /can: unknown attribute/],
  ])('%j is rejected', (more, problem) => {
    expect(reading({ ...openai, ...more })).toMatchObject({
      problem: expect.stringMatching(problem) as unknown,
    });
  });
});

describe('the quirks of a channel', () => {
  it.each([
    [openai, 'deepseek-v4-pro', { wantsBack: 'reasoning_content' }],
    [openai, 'deepseek/deepseek-chat', { wantsBack: 'reasoning_content' }],
    [openai, 'moonshotai/Kimi-K2.6', { wantsBack: 'reasoning_content' }],
    [openai, 'deepseek/deepseek-flash', { wantsBack: 'reasoning_content' }],
    [openai, 'DeepSeek-V3.2', { wantsBack: 'reasoning_content' }],
    [openai, 'k3', { wantsBack: 'reasoning_content' }],
    [openai, 'gemini-3-pro', { wantsBack: undefined }],
    [{ type: 'gemini', secret }, 'gemini-3-pro-preview', { wantsBack: 'thought_signature' }],
    [{ type: 'gemini', secret }, 'gemini-flash-latest', { wantsBack: 'thought_signature' }],
    [
      { type: 'gemini', secret },
      'gemini-2.5-pro',
      { wantsBack: undefined, acceptedEchoes: ['extra_content'] },
    ],
    [
      { ...openai, endpoint: 'https://api.openai.com/v1', secret },
      'gpt-4o',
      { acceptedEchoes: [], supportsCustomTools: true },
    ],
    [azure, 'gpt-4o', { acceptedEchoes: [], supportsCustomTools: true }],
    [openai, 'gpt-4o', { acceptedEchoes: undefined, supportsCustomTools: undefined }],
    [
      { ...openai, endpoint: 'https://api.openai.com/v1', secret },
      'gpt-5.6',
      { sampling: 'without_reasoning', limitField: 'max_completion_tokens' },
    ],
    [azure, 'o3-mini', { sampling: 'without_reasoning', limitField: 'max_completion_tokens' }],
    [azure, 'gpt-4o', { limitField: undefined }],
    [openai, 'gpt-5.6', { sampling: 'without_reasoning', limitField: undefined }],
    [{ ...azure, max_tokens_field: 'max_tokens' }, 'gpt-5.6', { limitField: undefined }],
  ])('need no setting: %j, %s', (row, name, quirks) => {
    const unset = {
      wantsBack: undefined,
      acceptedEchoes: undefined,
      supportsCustomTools: undefined,
      limitField: undefined,
    };
    expect({ ...unset, ...quirksOf(rowOf({ ...row, mapper: { m: name } }), 'm') }).toMatchObject(quirks);
  });

  it.each([
    ['gpt-5', 'minimal low medium high'],
    ['gpt-5-mini', 'minimal low medium high'],
    ['gpt-5-codex', 'low medium high'],
    ['gpt-5-pro', 'high'],
    ['gpt-5-chat-latest', ''],
    ['openai/gpt-5.1', 'none low medium high'],
    ['gpt-5.1-codex-max', 'low medium high xhigh'],
    ['gpt-5.2-chat-latest', 'medium'],
    ['gpt-5.4-pro', 'medium high xhigh'],
    ['gpt-5.5', 'none low medium high xhigh'],
    ['us.openai.gpt-5.6-luna', 'none low medium high xhigh max'],
    ['gpt-6-astra', 'low medium high xhigh max'],
    ['gpt-6-sol', 'none low medium high xhigh max'],
    ['gpt-6.1-sol', 'low medium high xhigh max'],
    ['gpt-6.1-terra', 'none low medium high xhigh max'],
    ['gpt-6.2-astra', 'low medium high xhigh max'],
    ['o3-pro', 'low medium high'],
    ['openai/gpt-oss-120b', 'low medium high'],
    ['gpt-4.1', ''],
    ['gemini-2.5-flash', 'none minimal low medium high'],
    ['gemini-2.5-pro', 'minimal low medium high'],
    ['gemini-3-pro-preview', 'low medium high'],
    ['gemini-3-flash-preview', 'minimal low medium high'],
    ['gemini-3.1-flash-lite', 'minimal low medium high'],
    ['gemini-3.8-flash', 'low medium high'],
    ['gemini-4-argon', 'low medium high'],
    ['models/gemini-flash-latest', 'low medium high'],
  ])('include the efforts of %s: %s', (name, efforts) => {
    const row = rowOf({ ...openai, mapper: { m: name } });
    expect(quirksOf(row, 'm').efforts?.join(' ')).toBe(efforts);
  });

  it.each([
    ['gemini-2.5-pro', 'any'],
    ['gemini-3.1-pro-preview', 'any'],
    ['gemini-3.5-flash', 'any'],
    ['gemini-3.5-flash-lite', 'user'],
    ['google/gemini-3.8-flash', 'user'],
    ['gemini-4-carbon', 'user'],
  ])('include the last turn of %s: %s', (name, lastTurn) => {
    expect(quirksOf(rowOf({ ...openai, mapper: { m: name } }), 'm').lastTurnRole).toBe(lastTurn);
  });

  it('are overridden by the row', () => {
    const params = {
      call_ids: 'alnum9',
      system: 'first',
      null_content: 'empty',
      think_tags: 'true',
      efforts: new Set(['low', 'high']),
      custom_tools: false,
      wants_back: 'thought_signature',
    };
    const row = rowOf({ ...openai, mapper: { m: 'kimi-k2.6' }, params });
    expect(quirksOf(row, 'm')).toMatchObject({
      callIdForm: 'alnum9',
      systemPosition: 'first',
      nullContent: 'empty',
      usesThinkTags: true,
      efforts: ['high', 'low'],
      supportsCustomTools: false,
      wantsBack: 'thought_signature',
    });
  });
});

describe('an address depends on the dialect', () => {
  it.each([
    [{ ...bedrock }, 'messages', 'https://bedrock-runtime.us-west-2.amazonaws.com/anthropic/v1/x'],
    [{ ...bedrock }, 'responses', 'https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/x'],
    [{ ...bedrock }, 'chat', 'https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/x'],
    [azure, 'responses', 'https://r.openai.azure.com/openai/x?api-version=2025-04-01-preview'],
    [
      { type: 'azure', endpoint: 'https://r.openai.azure.com/openai/v1', secret },
      'responses',
      'https://r.openai.azure.com/openai/v1/x',
    ],
  ])('%j in %s', (attributes, dialect, url) => {
    const row = rowOf(attributes);
    const type: ChannelType<OwnAttributeName> = channelTypes[row.type];
    expect(type.address?.(row, { model: 'm', dialect, path: '/x' })).toBe(url);
  });
});

describe('the result of a probe', () => {
  it('is read leniently from the mark', () => {
    const _can = { tools: true, images: 'maybe', efforts: new Set(['low', 'high']), dialects: [1], more: 1 };
    expect(rowOf({ ...openai, _can }).can).toEqual({ tools: true, efforts: ['high', 'low'] });
    expect(rowOf({ ...openai, _can: '{"tools":false}' }).can).toEqual({ tools: false });
    for (const mark of [undefined, null, 7, 'text', [], {}, { tools: 1 }])
      expect(rowOf({ ...openai, _can: mark, _note: 'x' })).not.toHaveProperty('can');
  });

  it.each([
    [{ dialect: 'messages' }, { dialects: ['chat'] }, /^dialect: is messages, .*found only chat$/],
    [
      {
        type: 'anthropic',
        endpoint: 'https://p.example.com/v1',
        secret: 'ssm:/relay/relay/channels/p.example.com/x',
      },
      { dialects: ['chat'] },
      /^dialect: is messages/,
    ],
    [{ params: { efforts: ['low', 'max'] } }, { efforts: ['low'] }, /^params.efforts: has max/],
    [{}, { system_anywhere: false }, /^params.system: is "anywhere"/],
    [{}, { usage_streaming: false }, /^params.include_usage: is true/],
  ])('raises a warning when it contradicts %j: %j', (row, _can, warning) => {
    expect(reading({ ...openai, ...row, _can })).toMatchObject({
      warning: expect.stringMatching(warning) as unknown,
    });
    expect(reading({ ...openai, ...row })).not.toHaveProperty('warning');
  });
});

it('model rules may be written as consoles write them, and may have no efforts', () => {
  const rules = { '*': { forced_calls: 'False', cache_min_tokens: '512', efforts: [], stop: null } };
  const row = rowOf({ ...openai, params: { model_rules: rules } });
  expect(row.params.model_rules).toEqual({
    '*': { forced_calls: false, cache_min_tokens: 512, efforts: [] },
  });
});

it.each([
  [{ max_output_tokens: 0 }, /max_output_tokens: found/],
  [{ cache_breakpoints: 5 }, /cache_breakpoints: found/],
  [{ thinking: 'Budget' }, /thinking: found/],
  [{ efforts: ['low', 'hi'] }, /efforts/],
])('an invalid value of a rule is rejected: %j', (rules, problem) => {
  const read = reading({ ...openai, params: { model_rules: { m: rules } } });
  expect(read).toMatchObject({ problem: expect.stringMatching(problem) as unknown });
});

it.each([
  [{ other: { stop: false } }, 'params.model_rules: has other, which is not a model of this channel'],
  [{ 'clau*': {} }, 'params.model_rules: has clau*, which is not a model of this channel'],
  [{ m: { effort: 'low', stop: true } }, 'params.model_rules.m: has effort, which is not a known rule'],
])('rules without effect raise a warning, and the row stays in use: %j', (rules, warning) => {
  const read = reading({ ...openai, params: { model_rules: rules } });
  expect(read).toMatchObject({ row: { models: ['m'] }, warning });
});

it.each([
  [{ set: { stream: true } }, 'params.set: overrides stream, which every call needs'],
  [{ set: { model: 'x', temperature: 1 } }, 'params.set: overrides model, which every call needs'],
  [{ drop: ['messages', 'seed'] }, 'params.drop: drops messages, which every call needs'],
  [{ drop: ['input'] }, 'params.drop: drops input, which every call needs'],
])('params that break every call raise a warning: %j', (params, warning) => {
  expect(reading({ ...openai, params })).toHaveProperty('warning', warning);
  expect(reading({ ...openai, params: { set: { top_p: 1 }, drop: ['seed'] } })).not.toHaveProperty('warning');
});
