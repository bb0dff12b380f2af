import { describe, expect, it } from 'vitest';
import { convertCall } from '../../../shared/upstreams/called-channel.ts';
import { responses, buildResponsesBody } from '../../../shared/upstreams/dialects/responses/request.ts';
import { CannotCarry, type RequestSettings, type SentBody } from '../../../shared/upstreams/dialect.ts';
import { defaultQuirks, type Quirks } from '../../../shared/upstreams/quirks.ts';
import type { JsonRecord } from '../../../shared/wire/json.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';

const messages = [{ role: 'user' as const, content: 'hi' }];
const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }];
const include = ['reasoning.encrypted_content'];
const base = { model: 'up', input, store: false, include, stream: true };

const sent = (request: object, more: Partial<RequestSettings> = {}): SentBody =>
  buildResponsesBody(chatCall({ model: 'm', messages, ...request }), settingsWith(more));
const quirks = (more: Partial<Quirks>): Partial<RequestSettings> => ({
  quirks: { ...defaultQuirks, ...more },
});
/** A call of a client that speaks this dialect's own form. */
const ownForm = (unknown: JsonRecord, request: object = {}, more: Partial<RequestSettings> = {}): SentBody =>
  convertCall(
    { ...responses, name: 'responses' },
    { form: 'responses', request: { model: 'm', messages, ...request }, unknown },
    { ...settingsWith(more), dropsUnknown: true },
  );

const functionTool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const parameters = { type: 'object', properties: {} };
const sentFunction = { type: 'function', name: 'f', parameters, strict: false };

describe('the fields of a Responses request', () => {
  it.each<[string, object, Partial<RequestSettings>, object]>([
    ['store nothing and ask for encrypted reasoning', {}, {}, {}],
    [
      'omit the include if it was rejected',
      {},
      { omissions: new Set(['include'] as const) },
      { include: undefined },
    ],
    ["do not stream if the channel can't", { stream: true }, { stream: false }, { stream: undefined }],
    ['have the limit that the balance covers', {}, { outputTokensLimit: 40 }, { max_output_tokens: 40 }],
    ['have no limit unless one is set', {}, { maxOutputTokens: 500 }, {}],
    ['have no limit if it was rejected', { max_tokens: 900 }, { omissions: new Set(['limit'] as const) }, {}],
    ['contain the verbosity', { verbosity: 'low' }, {}, { text: { verbosity: 'low' } }],
    ['contain the effort', { reasoning_effort: 'high' }, {}, { reasoning: { effort: 'high' } }],
    ['contain a supported effort', { reasoning_effort: 'max' }, {}, { reasoning: { effort: 'xhigh' } }],
    [
      'contain an effort that the row lists',
      { reasoning_effort: 'xhigh' },
      quirks({ efforts: ['low'] }),
      { reasoning: { effort: 'low' } },
    ],
    ['have a tier', { service_tier: 'flex' }, {}, { service_tier: 'flex' }],
    [
      'contain the fields that the row sets',
      { temperature: 1 },
      { set: { temperature: 0 } },
      { temperature: 0 },
    ],
    ['lack the fields that the row drops', { temperature: 1 }, { drop: ['temperature'] }, {}],
    ['have no choice without tools', { tools: [], tool_choice: 'auto', parallel_tool_calls: true }, {}, {}],
    [
      'choose nothing that is not sent',
      { tools: [functionTool], tool_choice: { type: 'function', function: { name: 'other' } } },
      {},
      { tools: [sentFunction], tool_choice: 'auto' },
    ],
    [
      'allow the tool that a model refuses to be forced to call',
      {
        tools: [functionTool],
        tool_choice: { type: 'function', function: { name: functionTool.function.name } },
      },
      quirks({ supportsForcedCalls: false }),
      {
        tools: [sentFunction],
        tool_choice: {
          type: 'allowed_tools',
          mode: 'auto',
          tools: [{ type: 'function', name: functionTool.function.name }],
        },
      },
    ],
    [
      'force a call of such a model while it does not think',
      { tools: [functionTool], tool_choice: 'required', reasoning_effort: 'none' },
      quirks({ supportsForcedCalls: false }),
      { tools: [sentFunction], tool_choice: 'required', reasoning: { effort: 'none' } },
    ],
    [
      'force no call of such a model with another effort than none',
      { tools: [functionTool], tool_choice: 'required', reasoning_effort: 'none' },
      quirks({ supportsForcedCalls: false, efforts: ['low'] }),
      { tools: [sentFunction], tool_choice: 'auto', reasoning: { effort: 'low' } },
    ],
    [
      'allow no tool if none of the allowed ones is sent',
      {
        tools: [functionTool],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } },
      },
      {},
      { tools: [sentFunction], tool_choice: 'none' },
    ],
  ])('%s', (_case, request, more, expected) => {
    expect(sent(request, more).body).toEqual({ ...base, ...expected });
  });

  it('report a limit that the vendor would reject as too low, and the raised one', () => {
    const { body, outputTokensMax } = sent({ max_tokens: 1 });
    expect({ limit: body['max_output_tokens'], outputTokensMax }).toEqual({ limit: 16, outputTokensMax: 16 });
  });

  it.each([
    ['max', undefined, 'xhigh'],
    ['minimal', undefined, 'low'],
    ['high', undefined, undefined],
    ['none', ['low'], 'low'],
  ])('report the effort that is sent for %s', (effort, efforts, expected) => {
    expect(sent({ reasoning_effort: effort }, quirks({ efforts })).effort).toBe(expected);
  });
});

describe('a field that a Responses upstream does not support', () => {
  const content = (part: object): object => ({ messages: [{ role: 'user', content: [part] }] });
  it.each([
    ['stop', { stop: Array(17).fill('x') }],
    ['stop', { stop: ['x'.repeat(257)] }],
    ['n', { n: 2 }],
    ['response_format', { response_format: { type: 'grammar' } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'v' } }],
    ['messages[0].content[0]', content({ type: 'input_audio', input_audio: { data: '', format: 'wav' } })],
    ['messages[0].content[0]', content({ type: 'file', file: { filename: 'a.pdf' } })],
  ])('is rejected by name: %s', (param, request) => {
    let thrown: unknown;
    try {
      sent(request);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(CannotCarry);
    expect((thrown as CannotCarry).param).toBe(param);
  });

  it('is accepted if it changes nothing', () => {
    expect(() => sent({ stop: [], n: 1, modalities: ['text'], store: true })).not.toThrow();
    expect(sent({ stop: [], n: 1, official: false }).dropped).toEqual([]);
  });

  it.each<[string, object, Partial<RequestSettings>, string[]]>([
    [
      'sampling',
      { seed: 1, top_k: 1, presence_penalty: 1, frequency_penalty: 1, repetition_penalty: 1 },
      {},
      ['seed', 'top_k', 'presence_penalty', 'frequency_penalty', 'repetition_penalty'],
    ],
  ])('is dropped and named: %s', (_case, request, more, dropped) => {
    const { body, ...rest } = sent(request, more);
    expect(rest.dropped).toEqual(dropped);
    for (const field of dropped) expect(body).not.toHaveProperty(field);
  });
});

describe('sampling depends on the sent effort', () => {
  it.each<[string, object, Partial<Quirks>, Partial<RequestSettings>, boolean]>([
    ['none is known', { reasoning_effort: 'none' }, {}, {}, true],
    ['none becomes another', { reasoning_effort: 'none' }, { efforts: ['low'] }, {}, false],
    ['there is none', {}, {}, {}, false],
    ['the row sets none', {}, {}, { set: { reasoning: { effort: 'none' } } }, true],
    ['the model takes no sampling at all', { reasoning_effort: 'none' }, { sampling: 'none' }, {}, false],
  ])('%s', (_case, request, more, settings, isSent) => {
    const rules = quirks({ sampling: 'without_reasoning', ...more });
    const { body, dropped } = sent({ temperature: 0.3, ...request }, { ...rules, ...settings });
    expect(body['temperature']).toBe(isSent ? 0.3 : undefined);
    expect(dropped).toEqual(isSent ? [] : ['temperature']);
  });
});

describe('the fields of a Responses client', () => {
  it('are sent unchanged, without those that belong to the relay', () => {
    const owned = {
      store: true,
      stream: false,
      previous_response_id: 'r',
      conversation: 'c',
      background: true,
      prompt: { id: 'p' },
      input: 'x',
      model: 'x',
    };
    const { body, dropped } = ownForm({ truncation: 'auto', max_tool_calls: 3, nothing: null, ...owned });
    expect(body).toEqual({ ...base, truncation: 'auto', max_tool_calls: 3 });
    expect(dropped).not.toContain('truncation');
    expect(dropped).toContain('previous_response_id');
  });

  it('may contain hosted tools if the row allows them', () => {
    const tools = [{ type: 'web_search', filters: {} }, functionTool];
    const choice = { tool_choice: { type: 'web_search' } };
    expect(ownForm({}, { tools, ...choice }, { allow: ['web_search'] }).body).toMatchObject({
      tools: [{ type: 'web_search', filters: {} }, { name: 'f' }],
      tool_choice: { type: 'web_search' },
    });
    expect(ownForm({}, { tools, ...choice })).toMatchObject({
      body: { tools: [{ name: 'f' }], tool_choice: 'auto' },
      dropped: ['tools'],
    });
  });

  it('leave it to the vendor whether a function is strict', () => {
    expect(ownForm({}, { tools: [functionTool] }).body['tools']).toEqual([
      { type: 'function', name: 'f', parameters },
    ]);
  });
});

describe('instructions', () => {
  const instructions = { role: 'system' as const, content: 'Be brief.' };
  const call = {
    form: 'responses',
    request: { model: 'm', messages: [instructions, ...messages] },
    unknown: {},
  };
  const early = { type: 'additional_tools', role: 'developer' };
  const tool = { type: 'function', function: { name: 'f' } };
  const items = {
    after: new Map([[instructions, [early]]]),
    instead: new Map(),
    tools: new Map([[tool, early]]),
    effort: undefined,
    lost: [],
  };
  const bound = settingsWith(quirks({ bindsPrefix: true }));
  const first = (role: string) => ({
    type: 'message',
    role,
    content: [{ type: 'input_text', text: 'Be brief.' }],
  });

  it('stay a field if they are of one turn, and are otherwise the first item', () => {
    const own = { ...call, instructions };
    expect(buildResponsesBody(own, bound).body).toEqual({ ...base, instructions: 'Be brief.' });
    expect(buildResponsesBody(own, settingsWith({})).body).toEqual({
      ...base,
      input: [first('system'), ...input],
    });
  });

  it('keep the items after them in place', () => {
    const withItems = { ...call, request: { ...call.request, tools: [tool] }, items, instructions };
    const { body } = buildResponsesBody(withItems, bound);
    expect(body['input']).toMatchObject([{ type: 'additional_tools', tools: [{ name: 'f' }] }, ...input]);
  });

  it('of a client of another form become the first developer message', () => {
    expect(buildResponsesBody(call, bound).body).toEqual({ ...base, input: [first('developer'), ...input] });
  });
});
