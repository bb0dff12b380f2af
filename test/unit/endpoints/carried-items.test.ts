/** Items that no message can hold, through the core: sent in their places, and converted for other dialects. */
import { describe, expect, it } from 'vitest';
import { estimateInput } from '../../../shared/billing/estimate/input-tokens.ts';
import { responsesEndpoint } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import { asRecord } from '../../../shared/wire/json.ts';
import { CoreRig, data, hello, type Step } from '../../support/core-rig.ts';

type Json = Record<string, unknown>;
const user = (text: string): Json => ({ role: 'user', content: text });
const tool = (name: string): Json => ({
  type: 'function',
  name,
  parameters: { type: 'object', properties: {} },
  strict: false,
});
const encrypted = { type: 'encrypted_content', encrypted_content: 'gAAAAABencrypted' };
const agentMessage = {
  type: 'agent_message',
  id: 'amsg_1',
  author: '/lead',
  recipient: '/lead/worker',
  content: [{ type: 'input_text', text: 'Read the log.' }, encrypted],
};
const update = { type: 'configuration_update', reasoning: { effort: 'high', mode: 'pro' } };
const added = { type: 'additional_tools', role: 'developer', tools: [tool('look')] };
const search = { type: 'tool_search_call', call_id: 'ts_1', execution: 'client', arguments: { query: 'x' } };
const found = {
  type: 'tool_search_output',
  call_id: 'ts_1',
  execution: 'client',
  tools: [tool('search'), { type: 'mcp', server_label: 's', server_url: 'https://a.example' }],
};
const ran = { type: 'mcp_call', id: 'mcp_1', server_label: 's', name: 'n', arguments: '{}', output: 'seen' };
const history = [
  user('one'),
  agentMessage,
  added,
  update,
  search,
  found,
  ran,
  { type: 'agent_reasoning', text: 'Hm.' },
  user('two'),
];

const answers: Record<string, Step[]> = {
  responses: [data({ type: 'response.completed', response: { status: 'completed', output: [] } })],
  messages: [
    data({ type: 'message_start', message: { role: 'assistant', content: [], usage: {} } }),
    data({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Yes.' } }),
    data({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: {} }),
    data({ type: 'message_stop' }),
  ],
};

async function sent(
  row: Json,
  body: Json,
): Promise<{ body: Json; status: number; dropped: string | undefined }> {
  const rig = new CoreRig({ channels: [row] }).upstream({ steps: answers[String(row['dialect'])] ?? hello });
  const { status, headers } = await rig.post({ model: 'm', ...body }, { path: '/v1/responses' });
  return { body: asRecord(rig.sent.at(-1)?.json), status, dropped: headers['x-relay-dropped'] };
}
const messageOf = (text: string): Json => ({
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text }],
});

describe('towards an upstream of the same form', () => {
  const row = { dialect: 'responses' };
  const { id: _id, ...ownMessage } = agentMessage;

  it("items are sent in their places, without paid or hosted tools, and the request's effort stays", async () => {
    const { body, dropped } = await sent(row, { input: history, reasoning: { effort: 'low' } });
    // Only the hosted tool: the names of dropped fields include no sent item.
    expect(dropped).toBe('tools');
    expect(body['input']).toEqual([
      messageOf('one'),
      ownMessage,
      added,
      { type: 'configuration_update', reasoning: { effort: 'high' } },
      search,
      { ...found, tools: [tool('search')] },
      ran,
      { type: 'agent_reasoning', text: 'Hm.' },
      messageOf('two'),
    ]);
    expect([body['tools'], body['reasoning']]).toEqual([undefined, { effort: 'low' }]);
  });

  it('tools added later change nothing before them', async () => {
    const base = { tools: [tool('base')], instructions: 'Be brief.' };
    const first = await sent(row, { ...base, input: [added, user('one')] });
    const next = [{ role: 'assistant', content: 'Yes.' }, { ...added, tools: [tool('more')] }, user('two')];
    const second = await sent(row, { ...base, input: [added, user('one'), ...next] });
    expect(second.body['tools']).toEqual(first.body['tools']);
    expect((second.body['input'] as Json[]).slice(0, 3)).toEqual(first.body['input']);
  });

  it('tools added before the result of a call follow that result, and never precede its turn', async () => {
    const call = { type: 'function_call', call_id: 'call_1', name: 'base', arguments: '{}' };
    const result = { type: 'function_call_output', call_id: 'call_1', output: 'seen' };
    const { body } = await sent(row, { tools: [tool('base')], input: [user('one'), call, added, result] });
    expect(body['input']).toEqual([messageOf('one'), call, result, added]);
  });

  it('an asynchronous call may be open, and its result stays in its place', async () => {
    const slow = { ...tool('slow'), async: true };
    const call = { type: 'function_call', call_id: 'call_1', async: true, name: 'slow', arguments: '{}' };
    const custom = {
      ...call,
      type: 'custom_tool_call',
      call_id: 'call_2',
      name: 'free',
      arguments: undefined,
    };
    const open = [user('one'), call, { ...custom, input: 'x' }, user('two')];
    const late = [
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
      { type: 'function_call_output', call_id: 'call_1', output: 'seen' },
    ];
    const tools = [slow, { type: 'custom', name: 'free', async: true }];
    const first = await sent(row, { tools, input: open });
    const second = await sent(row, { tools, input: [...open, ...late] });
    expect(first.body['input']).toEqual([messageOf('one'), ...open.slice(1, 3), messageOf('two')]);
    expect(second.body['input']).toEqual([...(first.body['input'] as Json[]), ...late]);
    expect([second.body['tools'], second.dropped]).toEqual([tools, undefined]);
  });

  it('a call of a tool declared as asynchronous is marked as such', async () => {
    const output = [{ type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'slow', arguments: '{}' }];
    const steps = [data({ type: 'response.completed', response: { status: 'completed', output } })];
    const rig = new CoreRig({ channels: [row] }).upstream({ steps });
    const tools = [{ ...tool('slow'), async: true }];
    const { text } = await rig.post({ model: 'm', input: 'one', tools }, { path: '/v1/responses' });
    expect(JSON.parse(text)).toMatchObject({ output: [{ type: 'function_call', async: true }] });
  });

  it("a tool declared only by an item can be chosen, and is called by the client's names", async () => {
    const files = { type: 'namespace', name: 'fs', tools: [tool('list')] };
    const { body } = await sent(row, {
      input: [{ ...added, tools: [files] }, user('one')],
      tool_choice: { type: 'function', name: 'list', namespace: 'fs' },
    });
    expect(body).toMatchObject({
      input: [{ ...added, tools: [tool('fs__list')] }, {}],
      tool_choice: { type: 'function', name: 'fs__list' },
    });
  });

  it('ids of objects stored at the vendor are not sent, unless the row allows it', async () => {
    const file = { type: 'input_file', file_id: 'file_1' };
    const properties = { file_id: { type: 'string' } };
    const schema = { type: 'object', properties, required: ['file_id'] };
    const listed = { type: 'mcp_list_tools', id: 'l', tools: [{ name: 'n', input_schema: schema }] };
    const asked = { ...search, arguments: { thread_id: 'of the caller' } };
    const input = [
      user('one'),
      { ...ran, output: [file] },
      { ...listed, tools: [file] },
      listed,
      asked,
      user('two'),
    ];
    const { body, dropped, status } = await sent(row, { input });
    expect([status, dropped]).toEqual([200, 'mcp_call, mcp_list_tools']);
    expect(body['input']).toEqual([messageOf('one'), listed, asked, messageOf('two')]);
    const author = await sent(row, { input: [{ ...agentMessage, author: file }] });
    expect(JSON.stringify(author.body)).not.toContain('file_1');
    const allowing = await sent({ ...row, params: { allow: ['file_id'] } }, { input });
    expect(allowing.body['input']).toContainEqual({ ...ran, output: [file] });
  });

  it('a text that Codex marks as encrypted is sent as text', async () => {
    const content = [{ ...encrypted, encrypted_content: 'Read the log.' }];
    const { body } = await sent(row, { input: [{ ...agentMessage, content }] });
    expect(body['input']).toEqual([
      { ...ownMessage, content: [{ type: 'input_text', text: 'Read the log.' }] },
    ]);
  });
});

it('an upstream that rejects such items is asked once more, as one of another form', async () => {
  const error = { message: "Invalid value: 'agent_message'.", param: 'input[1].type', code: 'invalid_value' };
  const refusal = { status: 400, steps: [JSON.stringify({ error })] };
  const rig = new CoreRig({ channels: [{ dialect: 'responses' }] }).upstream(refusal, {
    steps: answers['responses'] ?? [],
  });
  const body = { model: 'm', input: history, reasoning: { effort: 'low' } };
  const { status, headers } = await rig.post(body, { path: '/v1/responses' });
  expect([status, headers['x-relay-attempts'], rig.sent.length]).toEqual([200, '1', 2]);
  const again = asRecord(rig.sent.at(-1)?.json);
  const texts = ['one', 'Message from /lead to /lead/worker:\nRead the log.', 'two'];
  expect(again).toMatchObject({ input: texts.map(messageOf), reasoning: { effort: 'high' } });
  expect((again['tools'] as Json[]).map(({ name }) => name)).toEqual(['look', 'search']);
  expect(headers['x-relay-dropped']).toContain('mcp_call');
  const always = new CoreRig({ channels: [{ dialect: 'responses' }] }).upstream(refusal, refusal, refusal);
  expect((await always.post(body, { path: '/v1/responses' })).status).toBe(400);
  expect(always.sent).toHaveLength(2);
});

describe.each([
  ['chat', {}],
  ['messages', { dialect: 'messages' }],
])('towards an upstream of another form (%s)', (_form, row) => {
  it('agents speak as users, tools join those of the request, the last effort counts, and losses are named', async () => {
    const { body, status, dropped } = await sent(row, { input: history, reasoning: { effort: 'low' } });
    expect(status).toBe(200);
    const text = JSON.stringify(body['messages']);
    expect(text.indexOf('Message from /lead to /lead/worker:\\nRead the log.')).toBeGreaterThan(
      text.indexOf('one'),
    );
    expect(text).not.toMatch(/gAAAA|mcp_call|tool_search|configuration_update/);
    expect(JSON.stringify(body['tools'])).toMatch(/"look".*"search"/);
    expect(JSON.stringify(body)).toMatch(/"(reasoning_)?effort":"high"/);
    expect(dropped?.split(/, ?/)).toEqual(
      expect.arrayContaining(['agent_message', 'tool_search_call', 'tool_search_output', 'mcp_call']),
    );
  });

  it('an asynchronous tool is sent as an ordinary one and named, and its result follows its call', async () => {
    const call = { type: 'function_call', call_id: 'call_1', async: true, name: 'slow', arguments: '{}' };
    const result = { type: 'function_call_output', call_id: 'call_1', output: 'seen' };
    const tools = [{ ...tool('slow'), async: true }];
    const { body, dropped } = await sent(row, { tools, input: [user('one'), call, user('two'), result] });
    const text = JSON.stringify(body);
    expect(text).not.toContain('async');
    expect(text.indexOf('seen')).toBeLessThan(text.indexOf('two'));
    expect(dropped).toBe('async');
  });
});

it.each([
  { type: 'agent_message' },
  { type: 'agent_message', author: 5, recipient: null, content: null },
  { type: 'agent_message', content: [null, 5, { type: 'input_image', image_url: 'http://10.0.0.1/' }] },
  { type: 'agent_reasoning', content: [{ type: 'input_file', file_id: 'file_1' }] },
  { type: 'configuration_update', reasoning: 'high', text: [] },
  { type: 'tool_search_output', tools: 'none' },
  ...['list_tools', 'approval_request', 'approval_response'].map((one) => ({ type: `mcp_${one}`, id: 'x' })),
])('never rejects a history for %j', async (item) => {
  for (const row of [{}, { dialect: 'responses' }]) {
    const { status, body } = await sent(row, { input: [user('one'), item] });
    expect(status).toBe(200);
    expect(JSON.stringify(body)).not.toMatch(/10\.0\.0\.1|file_1/);
  }
});

it("accepts an upstream's count of items that no message holds", async () => {
  const usage = { input_tokens: 9_000, output_tokens: 1, total_tokens: 9_001 };
  const steps = [data({ type: 'response.completed', response: { status: 'completed', output: [], usage } })];
  const rig = new CoreRig({ channels: [{ dialect: 'responses' }] }).upstream({ steps });
  const input = [user('one'), { ...ran, output: 'seen '.repeat(9_000) }];
  const { text } = await rig.post({ model: 'm', input }, { path: '/v1/responses' });
  expect(asRecord(JSON.parse(text))['usage']).toMatchObject({ input_tokens: 9_000 });
});

it('counts items that no message holds in the reservation, but not in the lower bound', () => {
  const estimate = (output: string) =>
    estimateInput(responsesEndpoint.read({ model: 'm', input: [user('one'), { ...ran, output }] }, {}).call);
  const [short, long] = [estimate('seen'), estimate('seen '.repeat(1000))];
  expect(long.above - short.above).toBeGreaterThan(900);
  expect(long.below).toBe(short.below);
});

it('reads a body full of such items in linear time', () => {
  const input = [user('one'), ...Array.from({ length: 33_000 }, () => ({ type: 'agent_reasoning' }))];
  const startedMs = performance.now();
  responsesEndpoint.read({ model: 'm', input }, {});
  // About 100 ms; a quadratic version took 10 s, in which a server answers nobody.
  expect(performance.now() - startedMs).toBeLessThan(2_000);
});
