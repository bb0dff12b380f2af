import { describe, expect, it } from 'vitest';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import { responsesToChat } from '../../../shared/endpoints/responses/read.ts';
import { ResponsesRequest } from '../../../shared/endpoints/responses/responses-request.ts';

const convert = (more: object) =>
  responsesToChat(parseRequest(ResponsesRequest, { model: 'm', input: 'x', ...more }));
const chatOf = (more: object) => convert(more).chat;
const namesOf = (more: object) => chatOf(more).tools?.map((tool) => tool.function?.name);

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

  it('what a chat upstream cannot have is left out and counted', () => {
    const tools = [
      { type: 'web_search' },
      look,
      { type: 'tool_search', name: 'search' },
      { type: 'function' },
      {},
    ];
    expect(convert({ tools })).toMatchObject({ droppedTools: 4, chat: { tools: [{}] } });
  });

  it('when nothing is left, neither tools nor a choice is sent', () => {
    const chat = chatOf({
      tools: [{ type: 'web_search' }],
      tool_choice: 'required',
      parallel_tool_calls: true,
    });
    expect(chat).toEqual({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
  });

  it('a custom tool is a function of one text, which tells its grammar', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' };
    const [tool] =
      chatOf({ tools: [{ type: 'custom', name: 'patch', description: 'Edits.', format }] }).tools ?? [];
    expect(tool?.function).toMatchObject({
      name: 'patch',
      description: 'Edits.\n\nThe input must match this grammar:\nstart: "x"',
      parameters: { properties: { input: { type: 'string' } }, required: ['input'] },
    });
  });

  it('the tools of a namespace carry its name', () => {
    const { chat, declared } = convert({ tools: [look, files] });
    expect(chat.tools?.map((tool) => tool.function?.name)).toEqual([
      'look',
      'mcp__files__list',
      'mcp__files__edit',
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
    const odd = ['files.list', 'files list', `${'long_'.repeat(20)}a`, `${'long_'.repeat(20)}b`];
    const tools = odd.map((name) => ({ type: 'function', name }));
    const names = namesOf({ tools }) ?? [];
    expect(new Set(names).size).toBe(4);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(namesOf({ tools: tools.toReversed() })).toEqual(names.toReversed());
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
    [{ type: 'custom', name: 'patch' }, named('patch')],
    [{ type: 'function', name: 'list', namespace: 'mcp__files' }, named('mcp__files__list')],
    [{ type: 'function', name: 'gone' }, 'auto'],
    [{ type: 'web_search' }, 'auto'],
  ])('%j is %j', (choice, expected) => {
    expect(chatOf({ tools, tool_choice: choice }).tool_choice).toEqual(expected);
  });

  it('a list of allowed tools leaves the others out', () => {
    const allowed = [{ type: 'function', name: 'look' }, { type: 'web_search' }];
    const choice = { type: 'allowed_tools', mode: 'required', tools: allowed };
    expect(chatOf({ tools, tool_choice: choice })).toMatchObject({
      tools: [{ function: { name: 'look' } }],
      tool_choice: 'required',
    });
    expect(chatOf({ tools, tool_choice: { ...choice, mode: 'auto' } }).tool_choice).toBe('auto');
  });

  it('a list that allows only dropped tools leaves the choice to the model', () => {
    const choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'web_search' }] };
    expect(chatOf({ tools, tool_choice: choice })).toMatchObject({ tool_choice: 'auto' });
    expect(namesOf({ tools, tool_choice: choice })).toHaveLength(4);
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
      include: ['reasoning.encrypted_content'],
      store: false,
      prompt_cache_key: 'k',
      client_metadata: { a: 1 },
      service_tier: 'priority',
      user: 'u',
      brand_new: { deep: true },
    };
    expect(convert(odd).chat).toEqual({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    expect(chatOf({ text: null, reasoning: { effort: null } })).toEqual(convert(odd).chat);
  });
});
