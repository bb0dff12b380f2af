import { describe, expect, it } from 'vitest';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import {
  responsesToChat,
  responsesEndpoint,
} from '../../../shared/endpoints/responses/responses-endpoint.ts';
import { ResponsesRequest } from '../../../shared/endpoints/responses/request.ts';

const convert = (more: object) =>
  responsesToChat(parseRequest(ResponsesRequest, { model: 'm', input: 'x', ...more }));
const chatOf = (more: object) => convert(more).chat;
const callOf = (more: object) => responsesEndpoint.read({ model: 'm', input: 'x', ...more }, {}).call;
const namesOf = (more: object) => chatOf(more).tools?.map((tool) => (tool.function ?? tool.custom)?.name);

const look = { type: 'function', name: 'look', description: 'Looks.', parameters: { type: 'object' } };
const files = {
  type: 'namespace',
  name: 'mcp__files',
  description: 'Files.',
  tools: [
    { type: 'function', name: 'list', parameters: { type: 'object' } },
    { type: 'custom', name: 'edit' },
  ],
};

describe('tools', () => {
  it('a function goes down one level, with strict when it is said', () => {
    expect(chatOf({ tools: [{ ...look, strict: true }] }).tools).toEqual([
      {
        type: 'function',
        function: { name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: true },
      },
    ]);
    expect(chatOf({ tools: [{ ...look, strict: null, parameters: null, description: null }] }).tools).toEqual(
      [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
    );
  });

  it('a function in the form of Chat Completions, or without a type, is understood', () => {
    const nested = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
    expect(chatOf({ tools: [nested, { name: 'untyped' }] }).tools).toMatchObject([
      nested,
      { type: 'function', function: { name: 'untyped' } },
    ]);
  });

  it('hosted tools stay as they were sent, for upstreams that may run them; what nobody can have is left out', () => {
    const search = { type: 'web_search', filters: { allowed_domains: ['a.example'] } };
    const other = { type: 'tool_search', name: 'n'.repeat(65) };
    const tools = [search, look, other, { type: 'function' }, {}, { type: 'namespace', name: 'empty' }];
    const { chat, droppedTools } = convert({ tools });
    expect(chat.tools).toEqual([search, expect.objectContaining({ type: 'function' }), other]);
    expect(droppedTools).toBe(5);
  });

  it('when nothing is left, neither tools nor a choice is sent', () => {
    const tools = [{ type: 'function' }, { type: 'custom' }];
    const chat = chatOf({ tools, tool_choice: 'required', parallel_tool_calls: true });
    expect(chat).toEqual({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
  });

  it.each([
    [
      { type: 'grammar', syntax: 'lark', definition: 's' },
      { type: 'grammar', grammar: { definition: 's', syntax: 'lark' } },
    ],
    [{ type: 'text' }, { type: 'text' }],
    [undefined, undefined],
    ['odd', undefined],
  ])('a custom tool stays one, with its format in the form of chat: %j', (format, chatFormat) => {
    const tool = { type: 'custom', name: 'patch', description: 'Edits.', format };
    expect(chatOf({ tools: [tool] }).tools).toEqual([
      {
        type: 'custom',
        custom: { name: 'patch', description: 'Edits.', ...(chatFormat && { format: chatFormat }) },
      },
    ]);
  });

  it('the tools of a namespace carry its name', () => {
    const { chat, declared } = convert({ tools: [look, files] });
    expect(chat.tools).toMatchObject([
      { type: 'function', function: { name: 'look' } },
      { type: 'function', function: { name: 'mcp__files__list' } },
      { type: 'custom', custom: { name: 'mcp__files__edit' } },
    ]);
    expect(declared.get('mcp__files__edit')).toEqual({
      kind: 'custom',
      name: 'edit',
      namespace: 'mcp__files',
    });
  });

  it('tools may stand in the input', () => {
    const input = [
      { type: 'additional_tools', role: 'developer', tools: [files] },
      { role: 'user', content: 'x' },
    ];
    expect(namesOf({ input, tools: [look] })).toEqual(['look', 'mcp__files__list', 'mcp__files__edit']);
  });

  it('of two tools with one name the first counts', () => {
    expect(chatOf({ tools: [look, { ...look, description: 'Other.' }] }).tools).toMatchObject([
      { function: { description: 'Looks.' } },
    ]);
  });

  it('names that upstreams refuse are mended, always in the same way, and stay apart', () => {
    const inner = ['files.list', 'files list', `${'long_'.repeat(12)}a`, `${'long_'.repeat(12)}b`];
    const tools = inner.map((name) => ({ type: 'function', name }));
    const space = (list: object[]) =>
      namesOf({ tools: [{ type: 'namespace', name: 'mcp', tools: list }] }) ?? [];
    const names = space(tools);
    expect(new Set(names).size).toBe(4);
    for (const name of names) expect(name).toMatch(/^mcp__[A-Za-z0-9_-]{1,59}$/);
    expect(space(tools.toReversed())).toEqual(names.toReversed());
  });
});

const named = (name: string) => ({ type: 'function', function: { name } });

describe('tool_choice', () => {
  const tools = [look, { type: 'custom', name: 'patch' }, files, { type: 'web_search' }];
  it.each([
    [undefined, 'auto'],
    [null, 'auto'],
    ['auto', 'auto'],
    ['none', 'none'],
    ['required', 'required'],
    ['something new', 'auto'],
    [{ type: 'function', name: 'look' }, named('look')],
    [{ type: 'function', function: { name: 'look' } }, named('look')],
    [
      { type: 'custom', name: 'patch' },
      { type: 'custom', custom: { name: 'patch' } },
    ],
    [
      { type: 'function', name: 'patch' },
      { type: 'custom', custom: { name: 'patch' } },
    ],
    [{ type: 'function', name: 'list', namespace: 'mcp__files' }, named('mcp__files__list')],
    [{ type: 'function', name: 'gone' }, 'auto'],
    [{ type: 'web_search' }, 'auto'],
  ])('%j is %j', (choice, expected) => {
    expect(chatOf({ tools, tool_choice: choice }).tool_choice).toEqual(expected);
  });

  it('a list of allowed tools stays one, with the names that are known', () => {
    const allowed = [
      { type: 'function', name: 'look' },
      { type: 'web_search' },
      { type: 'function', name: 'gone' },
      { type: 'custom', name: 'edit', namespace: 'mcp__files' },
    ];
    const choice = { type: 'allowed_tools', mode: 'required', tools: allowed };
    const edit = { type: 'custom', custom: { name: 'mcp__files__edit' } };
    const chat = chatOf({ tools, tool_choice: choice });
    expect(chat.tool_choice).toEqual({
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [named('look'), edit] },
    });
    expect(chat.tools).toHaveLength(5);
    expect(chatOf({ tools, tool_choice: { ...choice, mode: 'odd' } }).tool_choice).toMatchObject({
      allowed_tools: { mode: 'auto' },
    });
  });

  it('a list that allows no known name means no tools', () => {
    const choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'web_search' }] };
    const chat = chatOf({ tools, tool_choice: choice, parallel_tool_calls: true });
    expect(chat).toEqual({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
  });

  it('parallel_tool_calls goes along with tools', () => {
    expect(chatOf({ tools, parallel_tool_calls: false })).toMatchObject({ parallel_tool_calls: false });
    expect(chatOf({ tools, parallel_tool_calls: null })).not.toHaveProperty('parallel_tool_calls');
  });
});

describe('other fields', () => {
  it('sampling, effort and verbosity have their names in chat; the limit is handed on for the channel', () => {
    const converted = convert({
      temperature: 0,
      top_p: 0.5,
      max_output_tokens: 77,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { verbosity: 'low' },
      official: true,
    });
    expect(converted.chat).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
      temperature: 0,
      top_p: 0.5,
      reasoning_effort: 'low',
      verbosity: 'low',
      official: true,
    });
    expect(converted.outputTokensMax).toBe(77);
  });

  it('a stop of Chat Completions stops here, too, and one answer is what there is', () => {
    const { chat } = convert({ stop: ['END'], n: 1 });
    expect(chat).toEqual({ model: 'm', messages: [{ role: 'user', content: 'x' }], stop: ['END'] });
  });

  it('a JSON schema goes down one level', () => {
    const schema = { type: 'object', properties: {} };
    const format = { type: 'json_schema', name: 'answer', schema, strict: true, description: null };
    expect(chatOf({ text: { format } }).response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema, strict: true },
    });
    expect(chatOf({ text: { format: { type: 'json_object' } } }).response_format).toEqual({
      type: 'json_object',
    });
    expect(chatOf({ text: { format: { type: 'text' } } })).not.toHaveProperty('response_format');
  });

  it('null and unknown fields change nothing', () => {
    const odd = {
      instructions: null,
      reasoning: null,
      temperature: null,
      tools: null,
      tool_choice: null,
      text: {},
      previous_response_id: null,
      conversation: null,
      prompt: null,
      include: ['reasoning.encrypted_content'],
      store: false,
      metadata: 'odd',
      prompt_cache_key: 5,
      top_logprobs: 'odd',
      client_metadata: { a: 1 },
      brand_new: { deep: true },
    };
    expect(convert(odd).chat).toEqual({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    expect(chatOf({ text: null, reasoning: { effort: null } })).toEqual(convert(odd).chat);
  });

  it('fields that chat has too keep their names', () => {
    const same = {
      user: 'u',
      metadata: { a: 'b' },
      safety_identifier: 's',
      prompt_cache_key: 'k',
      service_tier: 'priority',
    };
    expect(chatOf(same)).toMatchObject(same);
    expect(callOf(same).unknown).toEqual({});
  });

  it.each([
    [{ top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
    [{ include: ['message.output_text.logprobs'] }, { logprobs: true }],
    [
      { include: ['message.output_text.logprobs'], top_logprobs: 3 },
      { logprobs: true, top_logprobs: 3 },
    ],
    [{ top_logprobs: 0 }, {}],
  ])('log probabilities: %j is %j', (asked, expected) => {
    const { logprobs, top_logprobs: top } = chatOf(asked);
    expect({ ...(logprobs && { logprobs }), ...(top && { top_logprobs: top }) }).toEqual(expected);
  });

  it('what the relay does not know goes along as it was sent, with what is left of the fields known in part', () => {
    const { unknown, form, served } = callOf({
      stream: true,
      store: false,
      instructions: 'Be brief.',
      truncation: 'auto',
      max_tool_calls: 3,
      prompt_cache_retention: '24h',
      brand_new: { deep: true },
      nothing: null,
      client_metadata: { session: 's' },
      reasoning: { effort: 'low', summary: 'auto', context: null },
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs', 'file_search_call.results'],
    });
    expect({ form, unknown, served }).toEqual({
      form: 'responses',
      served: { reasoning: { summary: 'auto' } },
      unknown: {
        truncation: 'auto',
        max_tool_calls: 3,
        prompt_cache_retention: '24h',
        brand_new: { deep: true },
        include: ['file_search_call.results'],
      },
    });
    const handled = { include: ['reasoning.encrypted_content'], reasoning: { effort: 'low' } };
    expect(callOf(handled)).toMatchObject({ unknown: {}, served: {} });
  });

  it.each([
    [{ include: ['reasoning.encrypted_content'] }, true],
    [{ include: ['file_search_call.results'] }, false],
    [{}, false],
  ])('%j says who keeps the state of the answer', (asked, expected) => {
    const { keepsState } = responsesEndpoint.read({ model: 'm', input: 'x', ...asked }, {});
    expect(keepsState).toBe(expected);
  });
});
