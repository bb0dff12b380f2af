/** Faulty Messages upstreams, and callers that try to get more than they pay for or may name. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CoreRig,
  data,
  delta,
  demoKey,
  done,
  finish,
  usage,
  type Answer,
} from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const path = '/v1/messages';
const claude = { type: 'anthropic', endpoint: 'https://claude.test/v1', mapper: { m: 'claude-opus-5' } };
const base = { model: 'm', max_tokens: 4_000, messages: [{ role: 'user', content: 'hi' }] };
const event = (value: Json): string => `event: ${String(value['type'])}\n${data(value)}`;
const begin = { type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } };
const start = (index: number, block: Json) => ({ type: 'content_block_start', index, content_block: block });
const piece = (index: number, delta: Json) => ({ type: 'content_block_delta', index, delta });
const text = (index: number, said: string) => piece(index, { type: 'text_delta', text: said });
const input = (index: number, json: string) => piece(index, { type: 'input_json_delta', partial_json: json });
const stop = (index: number) => ({ type: 'content_block_stop', index });
const call = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
const empty = { type: 'text', text: '' };
const finished = {
  type: 'message_delta',
  delta: { stop_reason: 'end_turn', stop_sequence: null },
  usage: { output_tokens: 20 },
};
const ended = [finished, { type: 'message_stop' }];

async function ask(
  body: object,
  {
    steps,
    headers = {},
    channels = [claude],
  }: { steps: string[]; headers?: Json; channels?: Json[] | undefined },
) {
  const rig = new CoreRig({ channels });
  rig.upstream({ steps });
  const answer = await rig.post(body, {
    path,
    headers: { 'x-api-key': demoKey, ...(headers as Record<string, string>) },
  });
  expect(rig.faults).toEqual([]);
  return { rig, answer };
}

const eventsOf = ({ text: body }: Answer): Json[] =>
  body
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => JSON.parse(/^event: \w+\ndata: (.*)$/s.exec(frame)?.[1] ?? '') as Json);

/** Clients abort a session on any other order. */
function expectOrder(events: Json[]): void {
  let open: number | undefined;
  let next = 0;
  for (const { type, index } of events) {
    if (type === 'content_block_start') expect([open, index]).toEqual([undefined, next++]);
    if (type === 'content_block_start') open = index as number;
    if (type === 'content_block_delta' || type === 'content_block_stop') expect(index).toBe(open);
    if (type === 'content_block_stop') open = undefined;
  }
  expect(open).toBeUndefined();
  expect(events.map(({ type }) => type).filter((type) => !String(type).startsWith('content'))).toEqual([
    'message_start',
    'message_delta',
    'message_stop',
  ]);
}

/** The same with an upstream that speaks chat. */
function asChat({ index, content_block: block, delta: piece }: Json): string[] {
  const { type, id, name } = (block ?? {}) as Json;
  const { text: content, partial_json: args = '' } = (piece ?? {}) as Json;
  const called = {
    index,
    ...(type === 'tool_use' && { id, type: 'function' }),
    function: { name, arguments: args },
  };
  if (typeof content === 'string') return [delta(content)];
  const isCall = type === 'tool_use' || args !== '';
  return isCall ? [data({ choices: [{ index: 0, delta: { tool_calls: [called] } }] })] : [];
}

const said = (value: string) => ({ type: 'text', text: value });
const called = (id: string, value: unknown) => ({ ...call(id), input: value });

describe('blocks of an upstream', () => {
  it.each<[string, Json[], Json[]]>([
    [
      'that interleave are sorted one after the other',
      [
        start(0, call('a')),
        start(1, call('b')),
        input(1, '{"b"'),
        input(0, '{"a":1'),
        input(1, ':2}'),
        stop(1),
        input(0, '}'),
        stop(0),
      ],
      [called('a', { a: 1 }), called('b', { b: 2 })],
    ],
    [
      'that the vendor runs are complete, too',
      [
        start(0, { ...call('s'), type: 'server_tool_use' }),
        input(0, '{"a":'),
        start(1, empty),
        text(1, 'x'),
        input(0, '1}'),
        stop(0),
        stop(1),
      ],
      [{ ...called('s', { a: 1 }), type: 'server_tool_use' }, said('x')],
    ],
    [
      'that begin twice are merged',
      [start(0, call('a')), start(0, call('a')), input(0, '{}')],
      [called('a', {})],
    ],
    [
      'without an end are ended',
      [
        start(0, empty),
        text(0, 'x'),
        start(1, call('a')),
        input(1, '{"a":1}'),
        start(2, empty),
        text(2, 'y'),
      ],
      [said('x'), called('a', { a: 1 }), said('y')],
    ],
    [
      'of one kind without an end are as many as begin',
      [
        start(0, empty),
        text(0, 'x'),
        start(1, empty),
        text(1, 'y'),
        start(2, { type: 'x' }),
        start(3, { type: 'x' }),
      ],
      [said('x'), said('y'), { type: 'x' }, { type: 'x' }],
    ],
    [
      'without content are dropped',
      [
        { type: 'content_block_start', index: 0 },
        start(0, empty),
        { type: 'content_block_delta', index: 0 },
        text(0, 'x'),
      ],
      [said('x')],
    ],
    ['without a beginning begin', [text(0, 'x'), text(0, 'y')], [said('xy')]],
    [
      'that continue after their end become another block',
      [start(0, empty), stop(0), text(0, 'x')],
      [said(''), said('x')],
    ],
    [
      'that change their kind are two',
      [start(0, empty), text(0, 'x'), piece(0, { type: 'thinking_delta', thinking: 'h' })],
      [said('x'), { type: 'thinking', thinking: 'h', signature: '' }],
    ],
    [
      'that are used again are two',
      [start(0, call('a')), input(0, '{}'), start(0, call('b'))],
      [called('a', {}), called('b', {})],
    ],
    [
      'without an index are those that are open',
      [start(0, empty), { ...text(0, 'x'), index: undefined }],
      [said('x')],
    ],
    [
      'of a call without a beginning are dropped',
      [input(0, '{"a":1}'), start(1, empty), text(1, 'x'), stop(1)],
      [said('x')],
    ],
    ['that end before they begin are dropped', [stop(4), start(0, empty), text(0, 'x')], [said('x')]],
    [
      'of an unknown event type are dropped',
      [{ type: 'x_event', index: 0 }, start(0, empty), text(0, 'x')],
      [said('x')],
    ],
  ])('%s', async (_what, events, content) => {
    const steps = [begin, ...events, ...ended].map(event);
    const streamed = await ask({ ...base, stream: true }, { steps });
    expectOrder(eventsOf(streamed.answer));
    expect(JSON.parse((await ask(base, { steps })).answer.text)).toMatchObject({ content });
  });

  it('in any order are sorted one after the other, and lose nothing', async () => {
    const block = fc.oneof(
      fc.record({ name: fc.uuid(), pieces: fc.constantFrom(['{"a":', '"b"', '}'], ['{}'], ['{"c":[1]}']) }),
      fc.array(fc.constantFrom('x', 'yy', 'z'), { minLength: 1, maxLength: 4 }),
    );
    const some = fc.array(block, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(some, fc.infiniteStream(fc.nat()), fc.boolean(), async (blocks, order, ends) => {
        const queues = blocks.map((one, index) => {
          const isText = Array.isArray(one);
          const begun = start(index, isText ? empty : call(one.name));
          const pieces = isText
            ? one.map((each) => text(index, each))
            : one.pieces.map((each) => input(index, each));
          return [begun, ...pieces, ...(ends ? [stop(index)] : [])];
        });
        const events: Json[] = [];
        while (queues.some(({ length }) => length > 0)) {
          const left = queues.filter(({ length }) => length > 0);
          events.push(left[order.next().value! % left.length]!.shift()!);
        }
        const inputs = blocks.flatMap((one) => (Array.isArray(one) ? [] : [one.pieces.join('')]));
        const length = blocks.filter(Array.isArray).flat().join('').length;
        const native = [begin, ...events, ...ended].map(event);
        const other = [...events.flatMap(asChat), finish('tool_calls'), usage(9, 20), done];
        for (const { steps, channels } of [{ steps: native }, { steps: other, channels: [{}] }]) {
          expectOrder(eventsOf((await ask({ ...base, stream: true }, { steps, channels })).answer));
          const { content } = JSON.parse((await ask(base, { steps, channels })).answer.text) as {
            content: Json[];
          };
          const found = content
            .filter(({ type }) => type === 'tool_use')
            .map((one) => JSON.stringify(one['input']));
          expect(found.toSorted()).toEqual(inputs.toSorted());
          expect(content.map(({ text: one }) => (typeof one === 'string' ? one : '')).join('')).toHaveLength(
            length,
          );
        }
      }),
      { numRuns: 40, seed: 26 },
    );
  });

  it('in message_start are the answer, unless they also come as events', async () => {
    const early = { ...begin, message: { ...begin.message, role: 'assistant', content: [said('early')] } };
    const whole = await ask({ ...base, stream: true }, { steps: [early, ...ended].map(event) });
    expectOrder(eventsOf(whole.answer));
    expect(whole.answer.text).toContain('early');
    const again = [early, start(0, empty), text(0, 'early'), stop(0), ...ended].map(event);
    expect(JSON.parse((await ask(base, { steps: again })).answer.text)).toMatchObject({
      content: [said('early')],
    });
  });

  it('without a stop reason end like those with one', async () => {
    const nothing = { type: 'message_delta', delta: { stop_reason: null }, usage: { output_tokens: 20 } };
    const steps = [begin, start(0, empty), text(0, 'x'), stop(0), nothing, { type: 'message_stop' }].map(
      event,
    );
    expect(JSON.parse((await ask(base, { steps })).answer.text)).toMatchObject({ stop_reason: 'end_turn' });
  });

  it('after the end are ignored, and so is an error', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'x' } };
    const steps = [begin, start(0, empty), text(0, 'x'), stop(0), ...ended, text(0, 'y'), error].map(event);
    const { answer } = await ask({ ...base, stream: true }, { steps });
    expectOrder(eventsOf(answer));
    expect(answer.text).not.toContain('"y"');
  });

  it('that wait for another block are limited in size', async () => {
    const long = Array.from({ length: 30 }, () => input(1, 'x'.repeat(400_000)));
    const { answer } = await ask(base, { steps: [begin, start(0, call('a')), ...long, ...ended].map(event) });
    expect(answer.status).toBe(502);
  });

  it('before an error are broken off with it', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'x' } };
    const steps = [begin, start(0, empty), text(0, 'x'), error].map(event);
    const { answer } = await ask({ ...base, stream: true }, { steps });
    expect(eventsOf(answer).at(-1)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
    expect(answer.text).not.toContain('message_delta');
  });
});

describe('restricted fields of a caller:', () => {
  const steps = [begin, start(0, empty), text(0, 'x'), stop(0), ...ended].map(event);
  const upOf = async (more: object, headers: Json = {}, allow: string[] = []) => {
    const channels = [{ ...claude, secret: 'claude', params: { allow } }];
    const { rig, answer } = await ask({ ...base, ...more }, { steps, headers, channels });
    return { up: rig.sent[0], status: answer.status, dropped: answer.headers['x-relay-dropped'], answer };
  };

  it.each<[string, unknown, string?]>([
    ['speed', 'fast', 'fast-mode-2026-02-01'],
    ['service_tier', 'priority'],
    ['inference_geo', 'us'],
    ['container', 'c_1', 'skills-2025-10-02'],
    ['mcp_servers', [{ type: 'url', url: 'https://mcp.test' }], 'mcp-client-2025-11-20'],
    ['fallbacks', ['x'], 'server-side-fallback-2026-06-01'],
    ['context_management', { edits: [{ type: 'compact_20260112' }] }, 'compact-2026-01-12'],
    ['context_management', { edits: [{ type: 'clear_tool_uses_20250919' }], runs: 3 }],
    ['compaction', { type: 'summarize' }, 'compact-2026-09-04'],
    ['diagnostics', { previous_message_id: 'msg_1' }, 'cache-diagnosis-2026-04-07'],
    ['billing_policy', { type: 'billing_policy' }, 'user-profiles-billing-2026-10-01'],
    ['fallback_credit_token', 'x', 'fallback-credit-2026-07-01'],
    ['Inference-Geo', 'us'],
    ['anthropic_beta', ['x']],
  ])(
    '%s %j is dropped by name with its beta, and is sent if the row allows it',
    async (field, value, beta) => {
      const headers = { 'anthropic-beta': ['x-kept', ...(beta ? [beta] : [])].join(',') };
      const refused = await upOf({ [field]: value }, headers);
      expect([refused.status, refused.dropped]).toEqual([200, field]);
      expect(refused.up?.json).not.toHaveProperty([field]);
      expect(refused.up?.headers['anthropic-beta']).toBe('x-kept');
      const allowed = await upOf({ [field]: value }, headers, [field]);
      expect([allowed.dropped, allowed.up?.json[field]]).toEqual([undefined, value]);
      expect(allowed.up?.headers['anthropic-beta']).toBe(headers['anthropic-beta']);
    },
  );

  it('official stays in the relay, and other members of metadata are sent', async () => {
    const { up } = await upOf({ official: false, metadata: { user_id: 'alice', x_team: 1 } });
    expect(up?.json).not.toHaveProperty('official');
    expect(up?.json['metadata']).toEqual({
      user_id: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      x_team: 1,
    });
  });

  it('tools that run at the vendor are dropped together with a choice of them', async () => {
    const hosted = { type: 'web_search_20250305', name: 'web_search' };
    const own = { type: 'text_editor_20250728', name: 'edit' };
    const choice = { tool_choice: { type: 'tool', name: 'web_search' } };
    const refused = await upOf({ tools: [own, hosted], ...choice });
    expect(refused.up?.json).toMatchObject({ tools: [own] });
    expect([refused.up?.json['tool_choice'], refused.dropped]).toEqual([undefined, 'tools, tool_choice']);
    const allowed = await upOf({ tools: [own, hosted], ...choice }, {}, [hosted.type]);
    expect(allowed.up?.json).toMatchObject({ tools: [own, hosted], ...choice });
    expect(allowed.dropped).toBeUndefined();
  });

  it.each<[string, Json, string]>([
    ['a file', { type: 'document', source: { type: 'file', file_id: 'f' } }, 'file_id'],
    ['an upload', { type: 'container_upload', file_id: 'f' }, 'container_upload'],
    ['an id', { type: 'x_block', x: [{ deep: { vector_store_ids: ['v'] } }] }, 'vector_store_ids'],
    [
      'a result',
      {
        type: 'tool_result',
        tool_use_id: 't',
        content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }],
      },
      'file_id',
    ],
  ])('%s stored at the vendor is a 400, unless the row allows it', async (_what, block, name) => {
    const messages = [{ role: 'user', content: [block] }];
    const { status, answer } = await upOf({ messages });
    expect([status, JSON.parse(answer.text).error.type]).toEqual([400, 'invalid_request_error']);
    const allowed = await upOf({ messages }, {}, [name, 'file_id']);
    expect([allowed.status, allowed.up?.json['messages']]).toEqual([200, messages]);
  });

  it("the arguments of a caller's tool may have any names", async () => {
    const use = { ...call('t'), input: { file_id: 'f', thread_id: 't', source: { type: 'file' } } };
    const messages = [...base.messages, { role: 'assistant', content: [use] }, ...base.messages];
    const { status, up } = await upOf({ messages });
    expect([status, up?.json['messages']]).toEqual([200, messages]);
  });

  it.each<[string, Json]>([
    ['an image', { type: 'image', source: { type: 'url', url: 'http://10.0.0.1/' } }],
    ['a text', { type: 'document', source: { type: 'text', data: 'http://ok', url: 'http://10.0.0.1/' } }],
    ['a block', { type: 'x_block', link: 'file:///etc/passwd' }],
  ])('an address of %s that is not public is a 400', async (_what, block) => {
    const { status } = await upOf({ messages: [{ role: 'user', content: [block] }] });
    expect(status).toBe(400);
  });

  it('an hour-long cache without a price is shortened to minutes, wherever it appears', async () => {
    const hour = { type: 'ephemeral', ttl: '1h' };
    const part = { type: 'text', text: 'x', cache_control: hour };
    const body = {
      ...base,
      cache_control: hour,
      system: [part],
      tools: [{ name: 'f', input_schema: {}, cache_control: { ...hour, ttl: '24h' } }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 't', content: [part] },
            { type: 'document', source: { type: 'content', content: [part] } },
          ],
        },
      ],
    };
    const charges = [{ id: 1, type: 'token-billing', models: ['m'], input: 1, output: 1 }];
    const rig = new CoreRig({ channels: [claude], charges });
    rig.quotas.grant('acme', 10n ** 15n);
    rig.upstream({ steps });
    const answer = await rig.post(body, { path, headers: { 'x-api-key': demoKey } });
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'cache_control.ttl']);
    expect(rig.sent[0]?.body).not.toMatch(/ttl/);
    expect(rig.sent[0]?.body.match(/cache_control/g)).toHaveLength(5);
  });

  it.each([
    [2_500, { type: 'enabled', budget_tokens: 1_476 }, undefined],
    [1_500, undefined, 'thinking'],
  ])('a thinking budget above a limit of %s becomes %j', async (limit, thinking, dropped) => {
    const rig = new CoreRig({ channels: [{ ...claude, params: { max_output_tokens: limit } }] });
    const edits = ['clear_thinking_20251015', 'clear_tool_uses_20250919'].map((type) => ({ type }));
    const body = {
      ...base,
      thinking: { type: 'enabled', budget_tokens: 3_000 },
      context_management: { edits },
    };
    const answer = await rig.upstream({ steps }).post(body, { path, headers: { 'x-api-key': demoKey } });
    const { max_tokens: sent, thinking: asked, context_management: management } = rig.sent[0]?.json ?? {};
    expect([sent, asked, answer.headers['x-relay-dropped']]).toEqual([limit, thinking, dropped]);
    // The vendor rejects clearing content that does not exist.
    expect(management).toEqual({ edits: thinking ? edits : edits.slice(1) });
  });

  it("a feature that the channel's account may not use is omitted, and the channel continues to serve", async () => {
    const error = { type: 'error', error: { type: 'permission_error', message: 'Not for you.' } };
    const denied = {
      status: 403,
      headers: { 'content-type': 'application/json' },
      steps: [JSON.stringify(error)],
    };
    const rig = new CoreRig({ channels: [claude] }).upstream(denied, { steps });
    const headers = { 'x-api-key': demoKey, 'anthropic-beta': 'x-secret-1' };
    expect((await rig.post(base, { path, headers })).status).toBe(200);
    expect(rig.sent.map((one) => one.headers['anthropic-beta'])).toEqual(['x-secret-1', undefined]);
    expect((await rig.post(base, { path, headers: { 'x-api-key': demoKey } })).status).toBe(200);
    expect(rig.sent).toHaveLength(3);
  });

  it('the API version selects the header of the key', async () => {
    const older = await upOf({}, { 'anthropic-version': '2023-06-01' });
    expect(older.up?.headers).toMatchObject({ 'x-api-key': 'upstream-secret-value' });
    const newer = await upOf({}, { 'anthropic-version': '2026-10-21' });
    expect(newer.up?.headers).toMatchObject({ authorization: 'Bearer upstream-secret-value' });
    expect(newer.up?.headers).not.toHaveProperty('x-api-key');
  });
});

describe('a hostile body', () => {
  const steps = [begin, start(0, empty), text(0, 'x'), stop(0), ...ended].map(event);
  const chat = [delta('x'), finish(), usage(9, 1), done];
  const many = Array.from({ length: 100_000 }, () => ({ type: 'text', text: 'x' }));
  const tools = Array.from({ length: 10_000 }, (_, i) => ({ name: `tool_${i}`, input_schema: {} }));
  const odd = JSON.parse('{"__proto__":{"x":1},"constructor":{"y":2}}') as Json;
  const user = (content: unknown) => ({ role: 'user', content });
  const use = call('same');
  const result = { type: 'tool_result', tool_use_id: 'same', content: null };

  it.each<[string, number, object]>([
    ['100,000 blocks', 200, { messages: [user(many)] }],
    ['10,000 tools', 200, { tools }],
    ['names of prototypes', 200, { ...odd, messages: [user([{ type: 'x', ...odd }])] }],
    ['no content', 200, { messages: [user([])] }],
    ['an answer to continue', 200, { messages: [user('x'), { role: 'assistant', content: 'The ' }] }],
    ['a result without a call', 200, { messages: [user([result])] }],
    [
      'one id of two calls',
      200,
      { messages: [user('x'), { role: 'assistant', content: [use, use] }, user([result, result])] },
    ],
    ['a long name', 200, { tools: [{ name: 'n'.repeat(128), input_schema: {} }] }],
    ['nulls', 200, { tools: null, system: null, thinking: null, metadata: null, stop_sequences: null }],
    ['a list for metadata', 400, { metadata: [] }],
    ['null for content', 400, { messages: [user(null)] }],
    ['an invalid block', 400, { messages: [user([null])] }],
    ['a block without a type', 400, { messages: [user([{ text: 'x' }])] }],
    ['an invalid role', 400, { messages: [{ role: 'tool', content: 'x' }] }],
    ['no messages', 400, { messages: [] }],
    ['half a token', 400, { max_tokens: 0.5 }],
    ['a text for tools', 400, { tools: 'f' }],
  ])('with %s is answered with status %i', async (_what, status, more) => {
    const native = await ask({ ...base, ...more }, { steps });
    const other = await ask({ ...base, ...more }, { steps: chat, channels: [{}] });
    expect([native.answer.status, other.answer.status]).toEqual([
      status,
      'messages' in more && JSON.stringify(more.messages).includes('"type":"x"') ? 400 : status,
    ]);
    if (status === 200)
      expect(JSON.stringify(native.rig.sent[0]?.json)).toContain(
        JSON.stringify({ ...base, ...more }.messages),
      );
    expect(({} as Json)['x']).toBeUndefined();
  });

  it("with a name too long for other dialects is answered under the client's name", async () => {
    const name = 'n'.repeat(100);
    const body = { ...base, tools: [{ name, input_schema: {} }], tool_choice: { type: 'tool', name } };
    const calling = (called: string) => {
      const one = { index: 0, id: 'c', type: 'function', function: { name: called, arguments: '{}' } };
      return [data({ choices: [{ index: 0, delta: { tool_calls: [one] } }] }), finish(), usage(9, 20), done];
    };
    const { rig } = await ask(body, { channels: [{}], steps: calling('x') });
    const sent = rig.sent[0]?.json as { tools: [{ function: { name: string } }]; tool_choice: Json };
    const short = sent.tools[0].function.name;
    expect([short.length, sent.tool_choice]).toEqual([64, { type: 'function', function: { name: short } }]);
    const { answer } = await ask(body, { channels: [{}], steps: calling(short) });
    expect(JSON.parse(answer.text)).toMatchObject({ content: [{ type: 'tool_use', name }] });
  });
});
