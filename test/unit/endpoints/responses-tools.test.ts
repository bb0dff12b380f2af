import { describe, expect, it } from 'vitest';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import {
  translateRequest,
  responsesEndpoint,
} from '../../../shared/endpoints/responses/responses-endpoint.ts';
import { ResponsesRequest } from '../../../shared/endpoints/responses/request.ts';

const convert = (more: object) =>
  translateRequest(parseRequest(ResponsesRequest, { model: 'm', input: 'x', ...more }));
const chatOf = (more: object) => convert(more).chat;
const readingOf = (more: object) => responsesEndpoint.read({ model: 'm', input: 'x', ...more }, {});
const namesOf = (more: object) => chatOf(more).tools?.map((tool) => (tool.function ?? tool.custom)?.name);
const bare = { model: 'm', messages: [{ role: 'user', content: 'x' }] };

const parameters = { type: 'object' };
const look = { type: 'function', name: 'look', description: 'Looks.', parameters };
const custom = (name: string, more: object = {}) => ({ type: 'custom', custom: { name, ...more } });
const named = (name: string, more: object = {}) => ({ type: 'function', function: { name, ...more } });
const files = {
  type: 'namespace',
  name: 'mcp__files',
  tools: [
    { type: 'function', name: 'list', parameters },
    { type: 'custom', name: 'edit' },
  ],
};
const search = { type: 'web_search', filters: { allowed_domains: ['a.example'] } };
const grammar = { definition: 's', syntax: 'lark' };

describe('tools', () => {
  it.each<[string, object[], object[]]>([
    [
      'a function is nested one level deeper',
      [{ ...look, strict: true }],
      [named('look', { description: 'Looks.', parameters, strict: true })],
    ],
    [
      'nulls of a function are dropped',
      [{ ...look, strict: null, parameters: null, description: null }],
      [named('look', { parameters: { type: 'object', properties: {} } })],
    ],
    [
      'the form of Chat Completions is understood, and no type',
      [named('look', { parameters }), { name: 'untyped', parameters }],
      [named('look', { parameters }), named('untyped', { parameters })],
    ],
    [
      'a grammar has the form of chat',
      [{ type: 'custom', name: 'p', description: 'd', format: { type: 'grammar', ...grammar } }],
      [custom('p', { description: 'd', format: { type: 'grammar', grammar } })],
    ],
    [
      'free text stays, and an unknown format is dropped',
      [
        { type: 'custom', name: 'p', format: { type: 'text' } },
        { type: 'custom', name: 'q', format: 'odd' },
      ],
      [custom('p', { format: { type: 'text' } }), custom('q')],
    ],
    [
      'the description of a group precedes that of its first tool',
      [{ type: 'namespace', name: 'n', description: 'Files.', tools: [look, { ...look, name: 'see' }] }],
      [
        named('n__look', { description: 'Files.\n\nLooks.', parameters }),
        named('n__see', { description: 'Looks.', parameters }),
      ],
    ],
    [
      'of two tools with one name the first counts',
      [look, { ...look, description: 'Other.' }],
      [named('look', { description: 'Looks.', parameters })],
    ],
    [
      'the tools of a namespace carry its name',
      [files],
      [named('mcp__files__list', { parameters }), custom('mcp__files__edit')],
    ],
  ])('%s', (_name, tools, expected) => {
    expect(chatOf({ tools }).tools).toEqual(expected);
  });

  it('that are hosted stay as sent for upstreams that may run them; unsupported ones are dropped', () => {
    const other = { type: 'tool_search', name: 'n'.repeat(65) };
    const tools = [search, look, other, { type: 'function' }, {}, { type: 'namespace', name: 'empty' }];
    const { chat, droppedTools } = convert({ tools });
    expect(chat.tools).toEqual([search, expect.objectContaining({ type: 'function' }), other]);
    expect(droppedTools).toBe(5);
  });

  it('that are all dropped leave neither tools nor a choice', () => {
    const tools = [{ type: 'function' }, { type: 'custom' }];
    expect(chatOf({ tools, tool_choice: 'required', parallel_tool_calls: true })).toEqual(bare);
  });

  it('with names that upstreams reject are renamed, always in the same way and without collisions', () => {
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

describe('tool_choice', () => {
  const tools = [look, { type: 'custom', name: 'patch' }, files, { type: 'web_search' }];
  it.each([
    [null, 'auto'],
    ['none', 'none'],
    ['required', 'required'],
    ['something new', 'auto'],
    [{ type: 'function', name: 'look' }, named('look')],
    [named('look'), named('look')],
    [{ type: 'function', name: 'patch' }, custom('patch')],
    [{ type: 'function', name: 'list', namespace: 'mcp__files' }, named('mcp__files__list')],
    [{ type: 'function', name: 'gone' }, 'auto'],
    [{ type: 'web_search' }, { type: 'web_search' }],
  ])('%j becomes %j', (choice, expected) => {
    expect(chatOf({ tools, tool_choice: choice }).tool_choice).toEqual(expected);
  });

  it('as a list of allowed tools keeps the known names; with none of them it means no tools', () => {
    const gone = { type: 'function', name: 'gone' };
    const edit = { type: 'custom', name: 'edit', namespace: 'mcp__files' };
    const choosing = (mode: string, ...allowed: object[]) =>
      chatOf({
        tools,
        tool_choice: { type: 'allowed_tools', mode, tools: allowed },
        parallel_tool_calls: true,
      });
    for (const [asked, mode] of [
      ['required', 'required'],
      ['odd', 'auto'],
    ] as const)
      expect(choosing(asked, look, search, gone, edit)).toMatchObject({
        tools: { length: 5 },
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode, tools: [named('look'), custom('mcp__files__edit')] },
        },
      });
    expect(choosing('required', search)).toEqual(bare);
  });

  it('is sent with parallel_tool_calls, unless that is null', () => {
    expect(chatOf({ tools, parallel_tool_calls: false })).toMatchObject({ parallel_tool_calls: false });
    expect(chatOf({ tools, parallel_tool_calls: null })).not.toHaveProperty('parallel_tool_calls');
  });
});

const schema = { type: 'object', properties: {} };

describe('other fields', () => {
  it.each<[asked: object, chat: object]>([
    [
      {
        temperature: 0,
        top_p: 0.5,
        reasoning: { effort: 'low', summary: 'auto' },
        text: { verbosity: 'low' },
      },
      { temperature: 0, top_p: 0.5, reasoning_effort: 'low', verbosity: 'low' },
    ],
    [
      { stop: ['END'], n: 1, official: true },
      { stop: ['END'], official: true },
    ],
    [
      { text: { format: { type: 'json_schema', name: 'a', schema, strict: true, description: null } } },
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema, strict: true } } },
    ],
    [{ text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
    [{ text: { format: { type: 'text' } } }, {}],
    [{ instructions: null, reasoning: null, temperature: null, tools: null, conversation: null }, {}],
    [
      { text: null, reasoning: { effort: null }, metadata: 'odd', prompt_cache_key: 5, top_logprobs: 'odd' },
      {},
    ],
    [{ include: ['reasoning.encrypted_content'], store: false, client_metadata: {}, brand_new: {} }, {}],
    [{ top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
    [{ include: ['message.output_text.logprobs'] }, { logprobs: true }],
    [{ top_logprobs: 0 }, {}],
  ])('%j become %j in chat', (asked, chat) => {
    expect(chatOf(asked)).toEqual({ ...bare, ...chat });
  });

  it('that chat has too keep their names; the limit is handed on for the channel', () => {
    const same = { user: 'u', metadata: { a: 'b' }, safety_identifier: 's', service_tier: 'priority' };
    expect(chatOf(same)).toMatchObject(same);
    expect(readingOf(same).call.unknown).toEqual({});
    expect(convert({ max_output_tokens: 77 })).toMatchObject({ chat: bare, outputTokensMax: 77 });
  });

  it('that the relay does not know are sent unchanged, including unknown members of known fields', () => {
    const unknown = { truncation: 'auto', max_tool_calls: 3, brand_new: { deep: true } };
    const { call, keepsState } = readingOf({
      ...unknown,
      stream: true,
      store: false,
      nothing: null,
      client_metadata: { session: 's' },
      reasoning: { effort: 'low', summary: 'auto', context: null },
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs', 'file_search_call.results'],
    });
    expect(call).toMatchObject({
      form: 'responses',
      served: { reasoning: { summary: 'auto' } },
      unknown: { ...unknown, include: ['file_search_call.results'] },
    });
    expect(keepsState).toBe(true);
    const plain = readingOf({ reasoning: { effort: 'low' } });
    expect(plain).toMatchObject({ keepsState: false, call: { unknown: {}, served: {} } });
  });
});
