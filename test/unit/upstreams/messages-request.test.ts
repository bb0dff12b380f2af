import { describe, expect, it } from 'vitest';
import { type RequestSettings, type SentBody, CannotCarry } from '../../../shared/upstreams/dialect.ts';
import {
  messages as dialect,
  buildMessagesBody,
} from '../../../shared/upstreams/dialects/messages/request.ts';
import { defaultQuirks } from '../../../shared/upstreams/quirks.ts';
import type { CanonicalCall, ChatMessage } from '../../../shared/wire/canonical-call.ts';
import type { JsonRecord } from '../../../shared/wire/json.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';

const hi: ChatMessage[] = [{ role: 'user', content: 'hi' }];
const hiTurn = { role: 'user', content: [{ type: 'text', text: 'hi' }] };
const send = (request: object, more: Partial<RequestSettings> = {}): SentBody =>
  buildMessagesBody(chatCall({ model: 'm', messages: hi, ...request }), settingsWith(more));
const weather = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: {} } },
};
const clock = { type: 'function', function: { name: 'clock' } };
const patch = { type: 'custom', custom: { name: 'patch', description: 'Patches.' } };
const named = (name: string): object => ({ type: 'function', function: { name } });
const newest = { model: 'us.anthropic.claude-opus-5-5' };

describe('the Messages request', () => {
  const base = { model: 'up', messages: [hiTurn], max_tokens: 16_384, stream: true };
  it.each<[string, object, Partial<RequestSettings>, object, string[]]>([
    ['always has a limit, by default if nobody set one', {}, {}, base, []],
    [
      'never has more than the balance covers',
      { max_tokens: 900 },
      { outputTokensLimit: 80 },
      { ...base, max_tokens: 80 },
      [],
    ],
    [
      "never has more than the model's maximum",
      { max_tokens: 900_000 },
      { model: 'claude-haiku-4-5' },
      { ...base, model: 'claude-haiku-4-5', max_tokens: 64_000 },
      [],
    ],
    [
      'has the documented maximum when the limit was refused',
      { max_tokens: 900_000 },
      { model: 'claude-opus-4-7', omissions: new Set(['limit' as const]) },
      { ...base, model: 'claude-opus-4-7', max_tokens: 128_000 },
      [],
    ],
    [
      'has a limit that all models accept when a higher one was rejected and no maximum is known',
      { max_tokens: 90_000 },
      { omissions: new Set(['limit' as const]) },
      { ...base, max_tokens: 4096 },
      [],
    ],
    [
      "overrides all fields with the channel's",
      {},
      { set: { max_tokens: 5, speed: 'fast' } },
      { ...base, max_tokens: 5, speed: 'fast' },
      [],
    ],
    [
      'names dropped fields',
      {
        seed: 1,
        logprobs: true,
        top_logprobs: 2,
        prompt_cache_key: 'k',
        metadata: {},
        service_tier: 'flex',
      },
      {},
      base,
      ['metadata', 'prompt_cache_key', 'seed', 'logprobs', 'top_logprobs', 'service_tier'],
    ],
    [
      'has one of temperature and top_p',
      { temperature: 0.2, top_p: 0.9, top_k: 4 },
      {},
      { ...base, temperature: 0.2, top_k: 4 },
      ['top_p'],
    ],
    [
      'has no sampling from 2026-10-21 on, even by default',
      { temperature: 1, top_p: 1, top_k: 0 },
      { apiVersion: '2026-10-21' },
      base,
      ['temperature', 'top_p', 'top_k'],
    ],
  ])('%s', (_case, request, more, expected, dropped) => {
    const sent = send(request, more);
    expect(JSON.parse(JSON.stringify(sent.body))).toEqual(JSON.parse(JSON.stringify(expected)));
    expect(sent.dropped).toEqual(dropped);
    expect(sent.wrappedTools.size).toBe(0);
  });

  it.each([
    [{ user: 'u' }, 'u', []],
    [{ user: 'same', safety_identifier: 'same' }, 'same', []],
    [{ user: 'u', safety_identifier: 's', metadata: { user_id: 'm' } }, 'm', ['user', 'safety_identifier']],
    [{ metadata: { user_id: 'm', order: 7 } }, 'm', ['metadata']],
  ])('has the most specific name of the end user from %j', (asked, name, dropped) => {
    const sent = send(asked, {});
    expect(sent.body['metadata']).toEqual({ user_id: name });
    expect(sent.dropped).toEqual(dropped);
  });

  it.each<[string, object, string]>([
    ['a stop at much white space', { stop: '\n'.repeat(257) }, 'stop'],
    [
      'audio',
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] },
      'messages[0].content[0].type',
    ],
    [
      'an uploaded file',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] },
      'messages[0].content[0].file',
    ],
    [
      'an image of another scheme',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'ftp://a/b' } }] }] },
      'messages[0].content[0].image_url.url',
    ],
  ])("can't contain %s", (_case, request, param) => {
    const refused = expect.objectContaining({ name: 'CannotCarry', param });
    expect(() => send(request)).toThrow(CannotCarry);
    expect(() => send(request)).toThrow(refused);
  });
});

describe('the request headers', () => {
  it.each([
    ['the version that all know', 'up', undefined, { 'anthropic-version': '2023-06-01' }],
    ['the version of the row', 'up', '2026-10-21', { 'anthropic-version': '2026-10-21' }],
    [
      'the beta for bound thinking if a model binds it',
      'claude-fable-5-2',
      undefined,
      { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'thinking-binding-controls-2026-08-01' },
    ],
  ])('contain %s', (_case, model, apiVersion, expected) => {
    expect(dialect.headers?.(settingsWith({ model, apiVersion }))).toEqual(expected);
  });
});

describe('thinking', () => {
  const adaptive = { type: 'adaptive', display: 'summarized' };
  const bound = { ...adaptive, block_binding: { prefix_mismatch_behavior: 'drop_block' } };
  it.each<[string, string, object, Partial<RequestSettings>, unknown, unknown, string | undefined]>([
    ['is not requested unless the client asks', 'up', {}, {}, undefined, undefined, undefined],
    [
      'is turned on by an effort',
      'up',
      { reasoning_effort: 'max' },
      {},
      adaptive,
      { effort: 'max' },
      undefined,
    ],
    ['has the nearest effort', 'up', { reasoning_effort: 'minimal' }, {}, adaptive, { effort: 'low' }, 'low'],
    [
      'knows no xhigh before 4.7',
      'claude-sonnet-4-6',
      { reasoning_effort: 'xhigh' },
      {},
      adaptive,
      { effort: 'high' },
      'high',
    ],
    [
      'is least on Sonnet 5.5',
      'claude-sonnet-5-5',
      { reasoning_effort: 'none' },
      {},
      { type: 'between_tools' },
      undefined,
      undefined,
    ],
    [
      "is minimal if it can't be disabled",
      'claude-fable-5-1',
      { reasoning_effort: 'none' },
      {},
      bound,
      { effort: 'low' },
      'low',
    ],
    [
      'has a budget on older models',
      'claude-sonnet-4-5-20250929',
      { reasoning_effort: 'high' },
      {},
      { type: 'enabled', budget_tokens: 15_360 },
      undefined,
      undefined,
    ],
  ])('%s', (_case, model, request, more, thinking, outputConfig, effort) => {
    const sent = send(request, { model, ...more });
    expect(sent.body['thinking']).toEqual(thinking);
    expect(sent.body['output_config']).toEqual(outputConfig);
    expect(sent.effort).toBe(effort);
  });

  it.each([
    ['an effort', 'up', { reasoning_effort: 'low' }],
    ['thinking by default', 'claude-opus-5', {}],
  ])('removes sampling from a call with %s', (_case, model, request) => {
    const { body, dropped } = send({ ...request, temperature: 0.5, top_k: 3 }, { model });
    expect(body).not.toHaveProperty('temperature');
    expect(body).not.toHaveProperty('top_k');
    expect(dropped).toEqual(['temperature', 'top_k']);
  });

  it('requires a limit above its budget', () => {
    const sent = send({ reasoning_effort: 'low', max_tokens: 2000 }, { model: 'claude-haiku-4-5' });
    expect(sent.body).not.toHaveProperty('thinking');
    expect(sent.dropped).toEqual(['reasoning_effort']);
  });

  it('with a budget is disabled in a loop of calls whose thinking is lost', () => {
    const loop = [
      ...hi,
      {
        role: 'assistant',
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: '' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
    ];
    const sent = send({ messages: loop, reasoning_effort: 'low' }, { model: 'claude-haiku-4-5' });
    expect(sent.body).not.toHaveProperty('thinking');
    expect(sent.dropped).toEqual(['reasoning_effort']);
  });
});

describe('the output limit', () => {
  it.each<[string, object, Partial<RequestSettings>, number | undefined, boolean]>([
    ['as the lowest useful limit', { max_tokens: 100 }, {}, 100, true],
    ['as one that a retry may lower', { max_tokens: 90_000 }, {}, 90_000, false],
    ["as the model's maximum", { max_tokens: 900_000 }, { model: 'claude-opus-4-7' }, 128_000, true],
    ['as the channel sets it', { max_tokens: 90_000 }, { set: { max_tokens: 5 } }, 5, true],
    ['as undefined if the channel drops it', { max_tokens: 5 }, { drop: ['max_tokens'] }, undefined, true],
  ])('that is reported %s', (_case, request, more, outputTokensMax, isLimitLowest) => {
    const sent = send(request, more);
    expect(sent).toMatchObject({ isLimitLowest });
    expect(sent.outputTokensMax).toBe(outputTokensMax);
  });
});

describe('tools', () => {
  const weatherTool = { name: 'weather', input_schema: { type: 'object', properties: {} } };
  const clockTool = { name: 'clock', input_schema: { type: 'object', properties: {} } };
  const both = [weatherTool, clockTool];
  const allowed = (mode: string, ...names: string[]): object => ({
    type: 'allowed_tools',
    allowed_tools: { mode, tools: names.map(named) },
  });
  it.each<[string, object, Partial<RequestSettings>, unknown, unknown, 'auto' | undefined]>([
    [
      'are free when the named one is not there',
      { tool_choice: named('other') },
      {},
      both,
      undefined,
      'auto',
    ],
    [
      'are those that are allowed',
      { tool_choice: allowed('auto', 'clock') },
      {},
      [clockTool],
      undefined,
      undefined,
    ],
    [
      'are dropped when none is allowed',
      { tool_choice: allowed('required', 'gone') },
      {},
      undefined,
      undefined,
      undefined,
    ],
    [
      'are a free choice if a model rejects forced calls',
      { tool_choice: 'required' },
      newest,
      both,
      undefined,
      'auto',
    ],
    [
      'are reduced to the named one if a model rejects forced calls',
      { tool_choice: named('clock') },
      newest,
      [clockTool],
      undefined,
      'auto',
    ],
    [
      'are forced on a model that thinks by default if the client does not mention thinking',
      { tool_choice: 'required' },
      { model: 'claude-haiku-5-5' },
      both,
      { type: 'any' },
      undefined,
    ],
  ])('%s', (_case, request, more, tools, choice, changed) => {
    const sent = send({ tools: [weather, clock], ...request }, more);
    expect(sent.body['tools']).toEqual(tools);
    expect(sent.body['tool_choice']).toEqual(choice);
    expect(sent.toolChoice).toBe(changed);
    expect(sent.dropped).toEqual([]);
  });

  it('of free text are named, with their grammar in words', () => {
    const format = { type: 'grammar', grammar: { definition: 'start: "x"', syntax: 'lark' } };
    const { body, wrappedTools: wrapped } = send({
      tools: [{ type: 'custom', custom: { ...patch.custom, format } }],
    });
    expect([...wrapped]).toEqual(['patch']);
    expect(JSON.stringify(body['tools'])).toContain('grammar (lark):\\nstart: \\"x\\"');
  });

  it('that run elsewhere are dropped unless the row allows them', () => {
    const search = { type: 'web_search_20260209', name: 'web_search' };
    expect(send({ tools: [search], tool_choice: { type: 'web_search' } })).toMatchObject({
      dropped: ['tools', 'tool_choice'],
    });
    expect(send({ tools: [search, weather], tool_choice: { type: 'web_search' } }).toolChoice).toBe('auto');
    expect(send({ tools: [search] }).body).not.toHaveProperty('tools');
    expect(send({ tools: [search] }, { allow: [search.type] }).body['tools']).toEqual([search]);
  });
});

describe('tools that an input item adds', () => {
  const binding = { quirks: { ...defaultQuirks, bindsThinking: true } };
  const asked = { role: 'user' as const, content: 'The weather?' };
  const system = { role: 'system' as const, content: 'Be brief.' };
  const answered = { role: 'assistant' as const, content: 'Sunny.' };
  const more = { role: 'user' as const, content: 'And the time?' };
  const item = { type: 'additional_tools', role: 'developer' };
  /** Places the item after `place`. */
  const sentAfter = (place: ChatMessage, settings: Partial<RequestSettings> = binding) => {
    const call: CanonicalCall = {
      form: 'responses',
      request: { model: 'm', messages: [system, asked, answered, more], tools: [weather, clock] },
      unknown: {},
      items: {
        after: new Map([[place, [item]]]),
        instead: new Map(),
        tools: new Map([[clock, item]]),
        effort: undefined,
        lost: [],
      },
    };
    const used = settingsWith(settings);
    const sent = buildMessagesBody(call, used);
    const { tools, messages } = sent.body as { tools: JsonRecord[]; messages: JsonRecord[] };
    return {
      tools: tools.map(({ name }) => name),
      turns: messages.map(({ role }) => role),
      added: messages.find(({ role }) => role === 'system')?.['content'],
      betas: dialect.headers?.(used, call, sent)['anthropic-beta'],
    };
  };
  const definition = { name: 'clock', input_schema: { type: 'object', properties: {} } };

  it.each([
    ['behind the user turn that they follow', asked, ['user', 'system', 'assistant', 'user']],
    ['behind the next user turn after an answer', answered, ['user', 'assistant', 'user', 'system']],
    ['behind the last user turn', more, ['user', 'assistant', 'user', 'system']],
  ])('are placed %s if thinking is bound to its prefix', (_where, place, turns) => {
    const sent = sentAfter(place);
    expect(sent).toMatchObject({ tools: ['weather'], turns });
    expect(sent.added).toEqual([{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }]);
    expect(sent.betas).toContain('inline-tools-');
  });

  it.each<[string, ChatMessage, Partial<RequestSettings>]>([
    ['if they were there from the beginning', system, binding],
    ['if nothing is bound', asked, {}],
    ['if the vendor rejected that', asked, { ...binding, refusedFeatures: ['inline-tools-2026-09-15'] }],
  ])('are placed with the others %s', (_where, place, settings) => {
    const sent = sentAfter(place, settings);
    expect(sent).toMatchObject({ tools: ['weather', 'clock'], added: undefined });
    expect(sent.betas ?? '').not.toContain('inline-tools-');
  });
});
