import { describe, expect, it } from 'vitest';
import { chatEndpoint } from '../../../shared/endpoints/chat/chat-endpoint.ts';
import { InvalidRequest } from '../../../shared/wire/invalid-request.ts';

async function read(body: object) {
  const reader = (await chatEndpoint.otherForm?.(body)) ?? chatEndpoint;
  return reader.read(body, {});
}
const callOf = async (body: object) => (await read({ model: 'm', ...body })).call;
const refusalOf = async (body: object) => {
  const error: unknown = await read({ model: 'm', ...body }).catch((each: unknown) => each);
  if (!(error instanceof InvalidRequest)) throw error;
  return `${error.code} ${error.param}`;
};

const hi = { role: 'user', content: 'hi' };
const parameters = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const readFile = { name: 'ReadFile', description: 'Read a file.', parameters };
const nested = { type: 'function', function: readFile };
const grammar = { syntax: 'lark', definition: 'start: begin_patch hunk end_patch' };
const patch = { name: 'ApplyPatch', description: 'Use this tool to edit files.' };
const nestedPatch = {
  type: 'custom',
  custom: { ...patch, format: { type: 'grammar', grammar } },
};

/** As Cursor's agent sends it to an OpenAI model. */
const agentBody = {
  model: 'gpt-5.6-sol',
  user: 'google-oauth2|user_01',
  stream: true,
  store: false,
  include: ['reasoning.encrypted_content'],
  reasoning: { effort: 'high', summary: 'auto' },
  text: { verbosity: 'low' },
  stream_options: { include_usage: true },
  prompt_cache_retention: '24h',
  metadata: { cursorConversationId: 'c0ffee' },
  max_output_tokens: 4_000,
  input: [
    { role: 'system', content: 'You are a coding agent in Cursor.' },
    { role: 'user', content: [{ type: 'input_text', text: 'create out.md' }] },
    { role: 'assistant', content: [{ type: 'output_text', text: 'I look first.' }] },
    { type: 'function_call', call_id: 'call_1', name: 'ReadFile', arguments: '{"path":"out.md"}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'no such file' },
    { type: 'custom_tool_call', call_id: 'call_2', name: 'ApplyPatch', input: '*** Begin Patch' },
    { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
  ],
  tools: [
    nested,
    { type: 'function', ...readFile, name: 'Grep' },
    { type: 'custom', ...patch, format: { type: 'grammar', ...grammar } },
  ],
  tool_choice: 'auto',
};

describe('a body with input instead of messages', () => {
  it('is read as on Responses, with its tools in any form, and keeps fields of chat', async () => {
    const { call, outputTokensMax } = await read(agentBody);
    expect(call.form).toBe('responses');
    expect(call.request).toEqual({
      model: 'gpt-5.6-sol',
      user: 'google-oauth2|user_01',
      metadata: { cursorConversationId: 'c0ffee' },
      stream: true,
      stream_options: { include_usage: true },
      reasoning_effort: 'high',
      verbosity: 'low',
      tool_choice: 'auto',
      messages: [
        { role: 'system', content: 'You are a coding agent in Cursor.' },
        { role: 'user', content: 'create out.md' },
        {
          role: 'assistant',
          content: 'I look first.',
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'ReadFile', arguments: '{"path":"out.md"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'no such file' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'call_2', type: 'custom', custom: { name: 'ApplyPatch', input: '*** Begin Patch' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_2', content: 'done' },
      ],
      tools: [nested, { type: 'function', function: { ...readFile, name: 'Grep' } }, nestedPatch],
    });
    expect(call.unknown).toEqual({ prompt_cache_retention: '24h' });
    expect(outputTokensMax).toBe(4_000);
  });

  it('is answered as chat', async () => {
    const reading = await read({ model: 'm', input: 'hi', stream: true });
    const identity = { requestId: 'r', created: 1, model: 'm' };
    expect([...reading.renderer(identity, {} as never).end()].join('')).toBe('data: [DONE]\n\n');
  });

  it('may be a text beside empty messages, and may have chat-only fields', async () => {
    const { request, unknown } = await callOf({
      input: 'hi',
      messages: [],
      seed: 7,
      max_tokens: 9,
      response_format: { type: 'json_object' },
    });
    expect(request).toEqual({
      model: 'm',
      messages: [hi],
      seed: 7,
      max_tokens: 9,
      response_format: { type: 'json_object' },
    });
    expect(unknown).toEqual({});
  });

  it.each<[string, object, string]>([
    ['additional messages', { input: 'hi', messages: [hi] }, 'invalid_value input'],
    ['no input in it', { input: [] }, 'invalid_value input'],
    ['an unknown item', { input: [{ type: 'odd' }] }, 'unsupported_input_item input[0].type'],
    ['a wish for a summary', { input: [hi, { type: 'compaction_trigger' }] }, 'unsupported_input_item input'],
    [
      'a stored response',
      { input: 'hi', previous_response_id: 'resp_1' },
      'unsupported_parameter previous_response_id',
    ],
    [
      'a limit that log probabilities cannot have',
      { input: 'hi', top_logprobs: 20, max_output_tokens: 1_000_000 },
      'logprobs_too_many top_logprobs',
    ],
    ['a wrong field of chat', { input: 'hi', seed: 'x' }, 'invalid_type seed'],
    [
      'a name that the answer could not repeat',
      { input: 'hi', tools: [{ type: 'function', name: 'a.b' }] },
      'invalid_value tools',
    ],
    [
      'a name beyond the limit',
      { input: 'hi', tools: [{ name: 'n'.repeat(65), input_schema: {} }] },
      'string_above_max_length tools[0].name',
    ],
  ])('with %s is rejected with the invalid field', async (_what, body, refusal) => {
    expect(await refusalOf(body)).toBe(refusal);
  });
});

describe('messages with terms of other endpoints', () => {
  it.each<[string, unknown, unknown]>([
    [
      'a flat function',
      { type: 'function', ...readFile, strict: true },
      { type: 'function', function: { ...readFile, strict: true } },
    ],
    [
      'a flat custom tool with a grammar',
      { type: 'custom', ...patch, format: { type: 'grammar', ...grammar } },
      nestedPatch,
    ],
    [
      'a nested custom tool with a flat grammar',
      { type: 'custom', custom: { ...patch, format: { type: 'grammar', ...grammar } } },
      nestedPatch,
    ],
    [
      'a flat custom tool of text',
      { type: 'custom', ...patch, format: { type: 'text' } },
      { type: 'custom', custom: { ...patch, format: { type: 'text' } } },
    ],
    [
      'a tool of Messages, with its mark for the cache',
      {
        name: 'ReadFile',
        description: 'Read a file.',
        input_schema: parameters,
        cache_control: { type: 'ephemeral' },
      },
      { ...nested, cache_control: { type: 'ephemeral' } },
    ],
    [
      'a custom tool of Messages',
      { type: 'custom', name: 'ReadFile', description: 'Read a file.', input_schema: parameters },
      nested,
    ],
    [
      'a function that may run beside the answer',
      { type: 'function', ...readFile, async: true },
      { ...nested, async: true },
    ],
    ['a nested function, whose own name counts', { ...nested, name: 'other' }, nested],
    ['a nested tool', nested, nested],
    [
      "a vendor's tool",
      { type: 'web_search_20250305', name: 'web_search' },
      { type: 'web_search_20250305', name: 'web_search' },
    ],
  ])('convert %s to chat', async (_what, tool, expected) => {
    const { request, form } = await callOf({ messages: [hi], tools: [nested, tool] });
    expect(request.tools).toEqual([nested, expected]);
    expect(form).toBe('chat');
  });

  it.each<[unknown, unknown]>([
    [
      { type: 'function', name: 'ReadFile' },
      { type: 'function', function: { name: 'ReadFile' } },
    ],
    [
      { type: 'custom', name: 'ApplyPatch' },
      { type: 'custom', custom: { name: 'ApplyPatch' } },
    ],
    [
      { type: 'tool', name: 'ReadFile' },
      { type: 'function', function: { name: 'ReadFile' } },
    ],
    [{ type: 'any' }, 'required'],
    [{ type: 'auto' }, 'auto'],
    [{ type: 'constructor' }, { type: 'constructor' }],
    [
      { type: 'function', function: { name: 'ReadFile' } },
      { type: 'function', function: { name: 'ReadFile' } },
    ],
  ])('convert the choice %j to %j', async (choice, expected) => {
    const { request } = await callOf({ messages: [hi], tools: [nested], tool_choice: choice });
    expect(request.tool_choice).toEqual(expected);
  });

  it('convert parts of Responses to parts of chat', async () => {
    const url = 'data:image/png;base64,QUJD';
    const { request } = await callOf({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'look', cache_control: { type: 'ephemeral' } },
            { type: 'input_image', image_url: url, detail: 'low' },
            { type: 'text', text: 'as it is' },
          ],
        },
        { role: 'assistant', content: [{ type: 'output_text', text: 'seen' }] },
      ],
    });
    expect(request.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look', cache_control: { type: 'ephemeral' } },
          { type: 'image_url', image_url: { url, detail: 'low' } },
          { type: 'text', text: 'as it is' },
        ],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'seen' }] },
    ]);
  });

  /** As Cursor sends it to a model whose name begins with claude. */
  it('convert calls and results of Messages to tool calls and tool messages', async () => {
    const { request, messageFields } = await callOf({
      system: [{ type: 'text', text: 'You are a coding agent.', cache_control: { type: 'ephemeral' } }],
      messages: [
        { role: 'user', content: 'list files' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'of a vendor' },
            { type: 'text', text: 'Let me check.' },
            { type: 'tool_use', id: 'toolu_1', name: 'ListDir', input: { path: '.' } },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [{ type: 'text', text: 'a.txt' }],
              cache_control: { type: 'ephemeral' },
            },
            { type: 'text', text: 'now summarize' },
          ],
        },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_2', name: 'ListDir', input: {} }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'toolu_2', content: 'no', is_error: true }],
        },
        {
          role: 'user',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'QUJD' } }],
        },
      ],
    });
    expect(request.messages).toEqual([
      {
        role: 'system',
        content: [{ type: 'text', text: 'You are a coding agent.', cache_control: { type: 'ephemeral' } }],
      },
      { role: 'user', content: 'list files' },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'Let me check.' }],
        tool_calls: [
          { id: 'toolu_1', type: 'function', function: { name: 'ListDir', arguments: '{"path":"."}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'a.txt', cache_control: { type: 'ephemeral' } },
      { role: 'user', content: [{ type: 'text', text: 'now summarize' }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'toolu_2', type: 'function', function: { name: 'ListDir', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'Error: no' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } }] },
    ]);
    expect(messageFields).toEqual(['reasoning']);
  });

  it("convert fields of Responses to chat, where chat's own fields take precedence", async () => {
    const words = { reasoning: { effort: 'low' }, text: { verbosity: 'high' }, max_output_tokens: 9 };
    const { request, unknown } = await callOf({ messages: [hi], ...words });
    expect(request).toEqual({
      model: 'm',
      messages: [hi],
      reasoning_effort: 'low',
      verbosity: 'high',
      max_completion_tokens: 9,
    });
    expect(unknown).toEqual({});
    const both = await callOf({
      messages: [hi],
      ...words,
      reasoning_effort: 'high',
      max_completion_tokens: 5,
    });
    expect(both.request).toMatchObject({ reasoning_effort: 'high', max_completion_tokens: 5 });
  });

  it("keep another server's fields of the same names", async () => {
    const own = { reasoning: { max_tokens: 100 }, text: { speed: 1 }, input: [] };
    const { request, unknown } = await callOf({ messages: [hi], ...own });
    expect(request).toEqual({ model: 'm', messages: [hi] });
    expect(unknown).toEqual({ reasoning: { max_tokens: 100 }, text: { speed: 1 } });
  });

  it.each<[object, string]>([
    [
      { messages: [{ role: 'user', content: [{ type: 'input_image' }] }] },
      'missing_required_parameter messages[0].content[0].image_url',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'input_text' }] }] },
      'invalid_type messages[0].content[0].text',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file' } }] }] },
      'unsupported_content_type messages[0].content[0].type',
    ],
    [{ messages: [hi], max_output_tokens: 0 }, 'invalid_value max_output_tokens'],
    [{ messages: [hi], reasoning: { effort: 3 } }, 'invalid_type reasoning.effort'],
    [{ messages: [null], system: 'x' }, 'invalid_type messages[0]'],
    [{ messages: 'x', system: 'x' }, 'invalid_type messages'],
    [{ messages: [hi], system: [{ type: 'image' }] }, 'invalid_type system'],
    [
      { messages: [hi], tools: [{ type: 'function', name: 'n'.repeat(65) }] },
      'string_above_max_length tools[0].function.name',
    ],
  ])('%j are rejected with the invalid field', async (body, refusal) => {
    expect(await refusalOf(body)).toBe(refusal);
  });
});

describe('a chat body', () => {
  it.each<object>([
    { messages: [hi] },
    {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
      tools: [nested],
      tool_choice: 'auto',
    },
    { messages: [hi], tools: [nested], tool_choice: nested },
    { messages: [hi], input: null, system: null },
  ])("%j is read without the other endpoints' terms", async (body) => {
    expect(await chatEndpoint.otherForm?.(body)).toBeUndefined();
  });
});
