import { describe, expect, it } from 'vitest';
import { responsesBody } from '../../../shared/upstreams/dialects/responses/request.ts';
import { CannotCarry, type RequestSettings, type SentBody } from '../../../shared/upstreams/dialect.ts';
import { noQuirks, type Quirks } from '../../../shared/upstreams/quirks.ts';
import type { JsonRecord } from '../../../shared/wire/json.ts';
import { chatCall, settingsWith } from '../../support/dialect-parts.ts';

const messages = [{ role: 'user' as const, content: 'hi' }];
const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }];
const include = ['reasoning.encrypted_content'];
const base = { model: 'up', input, store: false, include, stream: true };

const sent = (request: object, more: Partial<RequestSettings> = {}): SentBody =>
  responsesBody(chatCall({ model: 'm', messages, ...request }), settingsWith(more));
const quirks = (more: Partial<Quirks>): Partial<RequestSettings> => ({ quirks: { ...noQuirks, ...more } });
/** A call of a client of this dialect's own form. */
const ownForm = (unknown: JsonRecord, request: object = {}, more: Partial<RequestSettings> = {}): SentBody =>
  responsesBody(
    { form: 'responses', request: { model: 'm', messages, ...request }, unknown },
    settingsWith(more),
  );

const functionTool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const customTool = {
  type: 'custom',
  custom: { name: 'c', format: { type: 'grammar', grammar: { definition: 'start: "x"', syntax: 'lark' } } },
};
const sentFunction = { type: 'function', name: 'f', parameters: { type: 'object' }, strict: false };
const sentCustom = {
  type: 'custom',
  name: 'c',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
};

describe('the fields of a Responses request', () => {
  it.each<[string, object, Partial<RequestSettings>, object]>([
    ['store nothing and ask for encrypted reasoning', {}, {}, {}],
    [
      'leave the include out where it was refused',
      {},
      { without: new Set(['include'] as const) },
      { include: undefined },
    ],
    ['do not stream where the channel cannot', { stream: true }, { stream: false }, { stream: undefined }],
    [
      'have one limit, the lowest',
      { max_tokens: 900, max_completion_tokens: 800 },
      { maxOutputTokens: 500 },
      { max_output_tokens: 500 },
    ],
    ['have the limit that the balance covers', {}, { outputTokensLimit: 40 }, { max_output_tokens: 40 }],
    ['have no limit that nobody set', {}, { maxOutputTokens: 500 }, {}],
    ['have no limit where it was refused', { max_tokens: 900 }, { without: new Set(['limit'] as const) }, {}],
    [
      'say the format',
      { response_format: { type: 'json_object' } },
      {},
      { text: { format: { type: 'json_object' } } },
    ],
    [
      'say the schema',
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 's', schema: { a: 1 }, strict: true, description: null },
        },
      },
      {},
      { text: { format: { type: 'json_schema', name: 's', schema: { a: 1 }, strict: true } } },
    ],
    ['say the verbosity', { verbosity: 'low' }, {}, { text: { verbosity: 'low' } }],
    ['say the effort', { reasoning_effort: 'high' }, {}, { reasoning: { effort: 'high' } }],
    ['say a known effort', { reasoning_effort: 'max' }, {}, { reasoning: { effort: 'xhigh' } }],
    [
      'say an effort that the row names',
      { reasoning_effort: 'xhigh' },
      quirks({ efforts: ['low'] }),
      { reasoning: { effort: 'low' } },
    ],
    [
      'send the lowest for an unknown none',
      { reasoning_effort: 'none' },
      quirks({ efforts: ['low'] }),
      { reasoning: { effort: 'low' } },
    ],
    [
      'ask for probabilities',
      { logprobs: true, top_logprobs: 3 },
      {},
      { top_logprobs: 3, include: [...include, 'message.output_text.logprobs'] },
    ],
    [
      'have the names of the client',
      {
        user: 'u',
        metadata: { a: 'b' },
        safety_identifier: 's',
        prompt_cache_key: 'k',
        temperature: 1,
        top_p: 0.5,
      },
      {},
      {
        user: 'u',
        metadata: { a: 'b' },
        safety_identifier: 's',
        prompt_cache_key: 'k',
        temperature: 1,
        top_p: 0.5,
      },
    ],
    ['have a tier', { service_tier: 'flex' }, {}, { service_tier: 'flex' }],
    ['have what the row sets', { temperature: 1 }, { set: { temperature: 0 } }, { temperature: 0 }],
    ['lack what the row drops', { temperature: 1 }, { drop: ['temperature'] }, {}],
    ['have no choice without tools', { tools: [], tool_choice: 'auto', parallel_tool_calls: true }, {}, {}],
    [
      'have tools',
      { tools: [functionTool, customTool], parallel_tool_calls: false, tool_choice: 'required' },
      {},
      { tools: [sentFunction, sentCustom], parallel_tool_calls: false, tool_choice: 'required' },
    ],
    [
      'choose a function',
      { tools: [functionTool], tool_choice: functionTool },
      {},
      { tools: [sentFunction], tool_choice: { type: 'function', name: 'f' } },
    ],
    [
      'choose a custom tool',
      { tools: [customTool], tool_choice: { type: 'custom', custom: { name: 'c' } } },
      {},
      { tools: [sentCustom], tool_choice: { type: 'custom', name: 'c' } },
    ],
    [
      'choose nothing that is not sent',
      { tools: [functionTool], tool_choice: { type: 'function', function: { name: 'other' } } },
      {},
      { tools: [sentFunction], tool_choice: 'auto' },
    ],
    [
      'allow some of the tools',
      {
        tools: [functionTool, customTool],
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: {
            mode: 'required',
            tools: [functionTool, { type: 'function', function: { name: 'gone' } }],
          },
        },
      },
      {},
      {
        tools: [sentFunction, sentCustom],
        tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'f' }] },
      },
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

  it('report the choice of a tool that is not sent', () => {
    const choice = { tool_choice: { type: 'function', function: { name: 'other' } } };
    expect(sent({ tools: [functionTool], ...choice }).toolChoice).toBe('auto');
    expect(sent({ tools: [functionTool], tool_choice: 'auto' }).toolChoice).toBeUndefined();
    expect(sent({ tools: [functionTool] }).toolChoice).toBeUndefined();
  });

  it('begin with what the next turn begins with', () => {
    const tools = [functionTool];
    const turn = JSON.stringify(sent({ tools, temperature: 1 }).body);
    const next = JSON.stringify(sent({ tools, temperature: 0, messages: [...messages, ...messages] }).body);
    const prefix = turn.slice(0, turn.indexOf(']}],"store') + 2);
    expect(prefix).toContain('"tools"');
    expect(next.startsWith(prefix)).toBe(true);
  });

  it('report a limit that the vendor would refuse as too low, and the raised one', () => {
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

describe('what a Responses upstream cannot be sent', () => {
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
  ])('is refused by name: %s', (param, request) => {
    let thrown: unknown;
    try {
      sent(request);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(CannotCarry);
    expect((thrown as CannotCarry).param).toBe(param);
  });

  it('is not refused where it changes nothing', () => {
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
    [
      'unknown fields of another form',
      { logit_bias: { 1: 1 }, reasoning: { effort: 'low' }, nothing: null },
      {},
      ['logit_bias', 'reasoning'],
    ],
    [
      'hosted tools of another form',
      { tools: [{ type: 'web_search' }] },
      { allow: ['web_search'] },
      ['tools'],
    ],
    ['a second sampling field', { temperature: 1, top_p: 1 }, quirks({ sampling: 'one' }), ['top_p']],
    [
      'sampling that a reasoning model refuses',
      { temperature: 0.5, top_p: 1 },
      quirks({ sampling: 'none' }),
      ['temperature'],
    ],
    [
      'no sampling of a model that does not reason now',
      { temperature: 0.5, reasoning_effort: 'none' },
      quirks({ sampling: 'none' }),
      [],
    ],
    [
      'fields that the model does not take',
      { temperature: 1, user: 'u' },
      quirks({ fields: new Set(['user']) }),
      ['temperature'],
    ],
  ])('is dropped and named: %s', (_case, request, more, dropped) => {
    const { body, ...rest } = sent(request, more);
    expect(rest.dropped).toEqual(dropped);
    for (const field of dropped) expect(body).not.toHaveProperty(field);
  });
});

describe('the fields of a client that wrote Responses', () => {
  it('go up unchanged, without those that belong to the relay', () => {
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

  it('keep what they say of summary, text and include', () => {
    const fields = {
      reasoning: { summary: 'auto', generate_summary: null },
      text: { other: 1 },
      include: ['web_search_call.action.sources', 'reasoning.encrypted_content'],
    };
    const { body, dropped } = ownForm(fields, { reasoning_effort: 'low', verbosity: 'high' });
    expect(body).toMatchObject({
      reasoning: { summary: 'auto', effort: 'low' },
      text: { other: 1, verbosity: 'high' },
      include: ['reasoning.encrypted_content', 'web_search_call.action.sources'],
    });
    expect(dropped).toEqual([]);
  });

  it('may hold hosted tools where the row allows them', () => {
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
      { type: 'function', name: 'f', parameters: { type: 'object' } },
    ]);
  });
});

describe('a custom tool for an upstream without such tools', () => {
  it('goes up as a function with one text', () => {
    const { body, wrapped } = sent({ tools: [customTool] }, quirks({ customTools: false }));
    expect([...wrapped]).toEqual(['c']);
    expect(body['tools']).toMatchObject([
      { type: 'function', name: 'c', parameters: { required: ['input'] } },
    ]);
    expect(JSON.stringify(body['tools'])).toContain('start: ');
  });
});
