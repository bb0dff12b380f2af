import { describe, expect, it } from 'vitest';
import {
  CoreRig,
  data,
  demoKey,
  delta,
  done,
  finish,
  hang,
  keyRow,
  usage,
  type Answer,
  type RigOptions,
  type Step,
} from '../../../support/core-rig.ts';
import { chunk, toolDelta } from '../../../support/upstream-frames.ts';

const path = '/v1/messages';
const ask = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] };
const claude = { type: 'anthropic', endpoint: 'https://claude.test/v1' };

async function post(
  body: object,
  { steps, headers = {}, ...options }: RigOptions & { steps: Step[]; headers?: Record<string, string> },
): Promise<{ rig: CoreRig; answer: Answer }> {
  const rig = new CoreRig(options);
  rig.upstream({ steps });
  const answer = await rig.post(body, { path, headers: { 'x-api-key': demoKey, ...headers } });
  expect(rig.faults).toEqual([]);
  return { rig, answer };
}

/** The events of a stream, each with its name line. */
const eventsOf = ({ text }: Answer): Record<string, unknown>[] =>
  text
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => {
      const [, name, json = ''] = /^event: (\w+)\ndata: (.*)$/s.exec(frame) ?? [];
      const value = JSON.parse(json) as Record<string, unknown>;
      expect(value['type']).toBe(name);
      return value;
    });

const types = (answer: Answer): unknown[] =>
  eventsOf(answer).map((event) => {
    const {
      type,
      index,
      content_block: block,
      delta: piece,
    } = event as { type: string; index?: number } & Record<'content_block' | 'delta', { type?: string }>;
    return [type, index, block?.type ?? piece?.type]
      .filter((each) => each !== undefined)
      .map(String)
      .join(' ');
  });

const event = (value: { type: string; [field: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;

describe('an answer of an upstream that speaks chat', () => {
  const steps = [
    data(chunk({ role: 'assistant', reasoning_content: 'Hm.' })),
    delta('Let me see.'),
    data(
      chunk(toolDelta(0, { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"a"' } })),
    ),
    data(
      chunk(toolDelta(1, { id: 'call_2', type: 'function', function: { name: 'list', arguments: '{}' } })),
    ),
    data(chunk(toolDelta(0, { function: { arguments: ':1}' } }))),
    finish('tool_calls'),
    usage(20, 9),
    done,
  ];
  const tools = ['read', 'list'].map((name) => ({ name, input_schema: { type: 'object' } }));
  const body = { ...ask, tools, thinking: { type: 'adaptive' } };

  it('is streamed block after block, with parallel calls one at a time', async () => {
    const { answer } = await post({ ...body, stream: true }, { steps });
    expect(answer.status).toBe(200);
    expect(types(answer)).toEqual([
      'message_start',
      'content_block_start 0 thinking',
      'content_block_delta 0 thinking_delta',
      'content_block_delta 0 signature_delta',
      'content_block_stop 0',
      'content_block_start 1 text',
      'content_block_delta 1 text_delta',
      'content_block_stop 1',
      // The state that came with the calls.
      'content_block_start 2 thinking',
      'content_block_delta 2 signature_delta',
      'content_block_stop 2',
      'content_block_start 3 tool_use',
      'content_block_delta 3 input_json_delta',
      'content_block_delta 3 input_json_delta',
      'content_block_stop 3',
      'content_block_start 4 tool_use',
      'content_block_delta 4 input_json_delta',
      'content_block_stop 4',
      'message_delta',
      'message_stop',
    ]);
    expect(eventsOf(answer).at(-2)).toMatchObject({
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { input_tokens: 20, output_tokens: 9, cache_read_input_tokens: 0 },
    });
  });

  it('is the same message as JSON', async () => {
    const { answer } = await post(body, { steps });
    expect(JSON.parse(answer.text)).toMatchObject({
      id: 'msg_01testrequest0000000000000',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'text', text: 'Let me see.' },
        { type: 'thinking', thinking: '' },
        { type: 'tool_use', name: 'read', input: { a: 1 } },
        { type: 'tool_use', name: 'list', input: {} },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 20, output_tokens: 9 },
    });
    expect(answer.headers).toMatchObject({
      'request-id': '01testrequest0000000000000',
      'x-request-id': '01testrequest0000000000000',
    });
  });

  it('orders its calls even if none was complete before the next', async () => {
    const pieces = ['a', 'b', 'c'].map((name, index) =>
      data(chunk(toolDelta(index, { id: name, function: { name, arguments: '{"x":' } }))),
    );
    const ends = [2, 0, 1].map((index) =>
      data(chunk(toolDelta(index, { function: { arguments: `${index}}` } }))),
    );
    const said = [...pieces, ...ends, finish('tool_calls'), usage(9, 9), done];
    const { answer } = await post({ ...ask, tools }, { steps: said });
    expect(JSON.parse(answer.text).content).toMatchObject([
      { name: 'a', input: { x: 0 } },
      { name: 'b', input: { x: 1 } },
      { name: 'c', input: { x: 2 } },
    ]);
  });

  it('names the stop sequence at which it ends', async () => {
    const said = [delta('one END'), delta(' two'), finish(), usage(5, 4), done];
    const { answer, rig } = await post({ ...ask, stop_sequences: ['END'] }, { steps: said });
    expect(JSON.parse(answer.text)).toMatchObject({
      content: [{ type: 'text', text: 'one ' }],
      stop_reason: 'stop_sequence',
      stop_sequence: 'END',
    });
    expect(rig.sent[0]?.json).toMatchObject({ stop: ['END'] });
  });
});

describe('a conversation for an upstream that speaks chat', () => {
  it('is translated block by block, and names what has no other form', async () => {
    const messages = [
      { role: 'user', content: [{ type: 'text', text: 'Look', cache_control: { type: 'ephemeral' } }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'x', signature: 'of-the-vendor' },
          { type: 'text', text: 'I call.' },
          { type: 'tool_use', id: 'toolu_1', name: 'read', input: { a: 1 } },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [{ type: 'text', text: 'gone' }],
            is_error: true,
          },
          { type: 'text', text: 'And now?' },
        ],
      },
    ];
    const body = {
      ...ask,
      messages,
      system: [{ type: 'text', text: 'Be brief.' }],
      tools: [
        { name: 'read', description: 'Reads.', input_schema: { type: 'object' } },
        { type: 'web_search_20250305', name: 'web_search' },
      ],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      metadata: { user_id: 'u' },
      mcp_servers: [{ url: 'https://mcp.test' }],
    };
    const { rig, answer } = await post(body, { steps: [delta('ok'), finish(), usage(9, 1), done] });
    const { messages: sent, ...fields } = rig.sent[0]?.json ?? {};
    expect(sent).toEqual([
      { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
      { role: 'user', content: [{ type: 'text', text: 'Look' }] },
      {
        role: 'assistant',
        content: 'I call.',
        tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'read', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'Error: gone' },
      { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
    ]);
    expect(fields).toMatchObject({
      max_tokens: 100,
      tool_choice: 'required',
      parallel_tool_calls: false,
      tools: [
        {
          type: 'function',
          function: { name: 'read', description: 'Reads.', parameters: { type: 'object' } },
        },
      ],
    });
    expect(fields).not.toHaveProperty('stop_sequences');
    const dropped = answer.headers['x-relay-dropped']?.split(', ').toSorted();
    expect(dropped).toEqual(['mcp_servers', 'metadata.user_id', 'reasoning', 'tools']);
  });

  it('is rejected before any charge if a block has no other form', async () => {
    const messages = [{ role: 'user', content: [{ type: 'video', source: {} }] }];
    const { rig, answer } = await post({ ...ask, messages }, { steps: [] });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', param: 'messages[0].content[0].type' },
      request_id: '01testrequest0000000000000',
    });
    expect(rig.sent).toEqual([]);
  });
});

describe('an upstream that speaks Messages', () => {
  const said = [
    event({
      type: 'message_start',
      message: { id: 'x', usage: { input_tokens: 9, output_tokens: 1 } },
    }),
    event({
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'thinking', thinking: '', signature: '' },
    }),
    event({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'thinking_delta', thinking: 'Hm' },
    }),
    event({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'signature_delta', signature: 'c2ln' },
    }),
    event({ type: 'content_block_stop', index: 0 }),
    event({
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'future_block', data: [1, { a: null }] },
    }),
    event({ type: 'content_block_stop', index: 1 }),
    event({
      type: 'content_block_start',
      index: 2,
      content_block: { type: 'tool_use', id: 'toolu_9', name: 'read', input: {} },
    }),
    event({
      type: 'content_block_delta',
      index: 2,
      delta: { type: 'input_json_delta', partial_json: '{"a":1}' },
    }),
    event({ type: 'content_block_stop', index: 2 }),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { input_tokens: 9, cache_read_input_tokens: 4, output_tokens: 7 },
    }),
    event({ type: 'message_stop' }),
  ];
  const resultOf = (...content: object[]) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }],
  });
  const body = {
    ...ask,
    system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
    messages: [
      { role: 'user', content: 'Look' },
      {
        role: 'assistant',
        content: [
          { type: 'redacted_thinking', data: 'ZGF0YQ==' },
          { type: 'server_tool_use', id: 's', name: 'x', input: {} },
          { type: 'tool_use', id: 'toolu_1', name: 'read', input: {} },
        ],
      },
      resultOf({ type: 'tool_reference', tool_name: 'read' }),
    ],
    tools: [{ name: 'read', input_schema: { type: 'object' }, defer_loading: true }],
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'max' },
    context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
  };

  it('receives the body unchanged except for model, limit and end user', async () => {
    const headers = {
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'context-management-2025-06-27,x-1',
    };
    const { rig } = await post(body, {
      steps: said,
      channels: [{ ...claude, mapper: { m: 'claude-opus-5' } }],
      headers,
    });
    const metadata = { user_id: expect.stringMatching(/^[0-9a-f]{64}$/) };
    expect(rig.sent[0]?.json).toEqual({ ...body, model: 'claude-opus-5', stream: true, metadata });
    expect(rig.sent[0]?.headers).toMatchObject(headers);
  });

  it.each([
    // Bedrock names none.
    ['invalid beta flag', undefined, 'context_management, tools.defer_loading'],
    [
      'Unexpected value(s) `context-management-2025-06-27` for the `anthropic-beta` header.',
      'x-1',
      'context_management',
    ],
    [
      'tools.0.custom.defer_loading: Extra inputs are not permitted',
      'context-management-2025-06-27,x-1',
      'tools.defer_loading',
    ],
  ])('that rejects a feature or its field is asked again without: %s', async (message, left, dropped) => {
    const rig = new CoreRig({ channels: [claude] });
    const refusal = { type: 'error', error: { type: 'invalid_request_error', message } };
    const headers = { 'content-type': 'application/json' };
    rig.upstream({ status: 400, headers, steps: [JSON.stringify(refusal)] }, { steps: said });
    const betas = { 'x-api-key': demoKey, 'anthropic-beta': 'context-management-2025-06-27,x-1' };
    const answer = await rig.post(body, { path, headers: betas });
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, dropped]);
    const { metadata } = rig.sent[0]?.json ?? {};
    const sent: Record<string, unknown> = { ...body, model: 'm', stream: true, metadata };
    if (dropped.includes('context_management')) delete sent['context_management'];
    if (dropped.includes('tools')) {
      sent['tools'] = [{ name: 'read', input_schema: { type: 'object' } }];
      const words = resultOf({ type: 'text', text: 'Found the tool read.' });
      sent['messages'] = [...body.messages.slice(0, -1), words];
    }
    expect(rig.sent[1]?.json).toEqual(sent);
    expect(rig.sent[1]?.headers['anthropic-beta']).toBe(left);
  });

  it('has its blocks passed on unchanged, streamed or not', async () => {
    const channels = [claude];
    const { answer } = await post({ ...body, stream: true }, { steps: said, channels });
    expect(types(answer)).toEqual([
      'message_start',
      'content_block_start 0 thinking',
      'content_block_delta 0 thinking_delta',
      'content_block_delta 0 signature_delta',
      'content_block_stop 0',
      'content_block_start 1 future_block',
      'content_block_stop 1',
      'content_block_start 2 tool_use',
      'content_block_delta 2 input_json_delta',
      'content_block_stop 2',
      'message_delta',
      'message_stop',
    ]);
    const whole = await post(body, { steps: said, channels });
    expect(JSON.parse(whole.answer.text)).toMatchObject({
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
        { type: 'future_block', data: [1, { a: null }] },
        { type: 'tool_use', id: 'toolu_9', name: 'read', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 9, cache_read_input_tokens: 4, output_tokens: 7 },
    });
    expect(whole.rig.logged[0]).toMatchObject({ endpoint: 'messages', cached_tokens: 4, prompt_tokens: 13 });
  });
});

describe('a silent upstream', () => {
  const kinds = ({ said }: Answer): object[] =>
    said.map(({ atMs, text }) => ({ atMs, kinds: text.match(/(?<=^event: ).*/gm) }));
  const patient = { channels: [{ first_content_seconds: 60 }] };

  it('causes pings, the first one after the start of the message', async () => {
    const steps = [50_000, delta('a'), 16_000, delta('b'), finish(), usage(3, 2), done];
    const { answer } = await post({ ...ask, stream: true }, { steps, ...patient });
    expect(kinds(answer)).toEqual([
      { atMs: 20_000, kinds: ['message_start', 'ping'] },
      { atMs: 35_000, kinds: ['ping'] },
      { atMs: 50_000, kinds: ['content_block_start', 'content_block_delta'] },
      { atMs: 65_000, kinds: ['ping'] },
      { atMs: 66_000, kinds: ['content_block_delta'] },
      { atMs: 66_000, kinds: ['content_block_stop', 'message_delta', 'message_stop'] },
    ]);
  });

  it('that never answers ends in a time-out error, without an end of the message', async () => {
    const { answer } = await post({ ...ask, stream: true }, { steps: [hang], ...patient });
    expect(eventsOf(answer).map(({ type }) => type)).toEqual([
      'message_start',
      'ping',
      'ping',
      'ping',
      'error',
    ]);
    expect(eventsOf(answer).at(-1)).toMatchObject({ error: { type: 'timeout_error' } });
  });
});

describe('a tool loop on another vendor', () => {
  it("returns its state inside the client's thinking blocks", async () => {
    const rig = new CoreRig({ channels: [{ models: ['m'] }] });
    const signed = { extra_content: { google: { thought_signature: 'sig' } } };
    const call = { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{}' }, ...signed };
    rig.upstream({ steps: [data(chunk(toolDelta(0, call))), finish('tool_calls'), usage(5, 2), done] });
    const tools = [{ name: 'read', input_schema: { type: 'object' } }];
    const first = { ...ask, tools, thinking: { type: 'adaptive' } };
    const headers = { 'x-api-key': demoKey };
    const { content } = JSON.parse((await rig.post(first, { path, headers })).text) as {
      content: { type: string; id: string; signature?: string }[];
    };
    expect(content.map(({ type }) => type)).toEqual(['thinking', 'tool_use']);
    const result = { type: 'tool_result', tool_use_id: content[1]?.id, content: 'text' };
    const messages = [...ask.messages, { role: 'assistant', content }, { role: 'user', content: [result] }];
    await rig.post({ ...first, messages }, { path, headers });
    const back = rig.sent[1]?.json['messages'] as { tool_calls?: object[] }[];
    expect(back[1]?.tool_calls?.[0]).toMatchObject(signed);
  });
});

describe('a key', () => {
  const steps = [delta('ok'), finish(), usage(3, 1), done];
  it.each([
    ['in x-api-key', { 'x-api-key': demoKey }, 200],
    ['as a bearer token', { authorization: `Bearer ${demoKey}` }, 200],
    ['in both', { 'x-api-key': demoKey, authorization: `Bearer ${demoKey}` }, 200],
    ['that differs between both', { 'x-api-key': 'sk-other', authorization: `Bearer ${demoKey}` }, 401],
    ['in neither', {}, 401],
  ])('%s gets this answer', async (_where, headers, status) => {
    const rig = new CoreRig();
    rig.upstream({ steps });
    const answer = await rig.post(ask, { path, headers });
    expect(answer.status).toBe(status);
    if (status !== 401) return;
    const error = { type: 'authentication_error', code: 'invalid_api_key' };
    expect(JSON.parse(answer.text)).toMatchObject({ error });
    expect(answer.headers['x-should-retry']).toBe('false');
  });
});

describe('a Messages refusal', () => {
  const priced = [{ id: 1, type: 'token-billing', models: ['m'], input: 1, output: 1 }];
  const overloaded = [429, 529].map((status) => ({
    status,
    headers: { 'content-type': 'application/json' },
    steps: [JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } })],
  }));
  it.each([
    ['without max_tokens', { model: 'm', messages: ask.messages }, {}, 400, 'invalid_request_error'],
    ['for an unknown model', { ...ask, model: 'x' }, {}, 404, 'not_found_error'],
    [
      'for a model outside the whitelist',
      ask,
      { keys: { [demoKey]: { row: keyRow({ models: ['x'] }) } } },
      403,
      'permission_error',
    ],
    ['for a balance that does not cover the call', ask, { charges: priced }, 402, 'billing_error'],
  ])('%s has the type that clients act on', async (_why, body, options, status, type) => {
    const { answer } = await post(body, { steps: [], ...options });
    expect([answer.status, JSON.parse(answer.text).error.type]).toEqual([status, type]);
  });

  it('of all candidates because of load is an overload', async () => {
    const rig = new CoreRig({ channels: [{ id: 'a' }, { id: 'b' }] });
    rig.upstream(...overloaded);
    const answer = await rig.post(ask, { path });
    expect([answer.status, JSON.parse(answer.text).error.type]).toEqual([529, 'overloaded_error']);
  });
});
