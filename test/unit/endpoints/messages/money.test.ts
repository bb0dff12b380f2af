/**
 * The reservations and costs of Messages calls, compared with the same conversation over the other endpoints and with
 * the oracle.
 */
import { describe, expect, it } from 'vitest';
import { estimateInput, loadMediaReader } from '../../../../shared/billing/estimate/input-tokens.ts';
import { messagesEndpoint } from '../../../../shared/endpoints/messages/messages-endpoint.ts';
import { costOf, type ChargeText, type Tokens } from '../../../oracle/price-list.ts';
import { BillingRig, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import { base64, savedAgain } from '../../../support/pdf-files.ts';
import { data, demoKey, done, hang, type Answer, type Step } from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const price: ChargeText & Json = {
  id: 1,
  type: 'token-billing',
  models: ['m'],
  input: 0.0213,
  output: 0.1071,
  cached_input: 0.00213,
  cache_write: 0.026625,
  cache_write_1h: 0.0426,
};
const event = (type: string, more: object): Step => `event: ${type}\n${data({ type, ...more })}`;
const long = 'The ferry leaves at seven. '.repeat(40);

interface Endpoint {
  path: string;
  body: Json;
}
const schema = { type: 'object', properties: { a: { type: 'string' } } };
const endpoints: Endpoint[] = [
  {
    path: '/v1/messages',
    body: {
      max_tokens: 500,
      system: 'Be brief.',
      messages: [
        { role: 'user', content: long },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'f', input: { a: 'b' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'ok' }] },
      ],
      tools: [{ name: 'f', input_schema: schema }],
    },
  },
  {
    path: '/v1/chat/completions',
    body: {
      max_tokens: 500,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: long },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":"b"}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    },
  },
  {
    path: '/v1/responses',
    body: {
      max_output_tokens: 500,
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: long },
        { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"a":"b"}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
      ],
      tools: [{ type: 'function', name: 'f', parameters: schema }],
    },
  },
];

const text = 'It leaves at seven, and not a minute later.';
const usageOfClaude = {
  input_tokens: 101,
  cache_read_input_tokens: 207,
  cache_creation_input_tokens: 70,
  cache_creation: { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 40 },
  output_tokens: 23,
};
const claudes = (usage: object = usageOfClaude): Step[] => [
  event('message_start', { message: { role: 'assistant', usage: { ...usage, output_tokens: 1 } } }),
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  event('content_block_stop', { index: 0 }),
  event('message_delta', { delta: { stop_reason: 'end_turn' }, usage }),
  event('message_stop', {}),
];
const upstreams: Record<string, { steps: Step[]; tokens: Tokens }> = {
  messages: {
    steps: claudes(),
    tokens: { input: 378, cached: 207, written: 30, writtenForHour: 40, output: 23 },
  },
  chat: {
    steps: [
      data({ choices: [{ index: 0, delta: { content: text }, finish_reason: 'stop' }] }),
      data({
        choices: [],
        usage: {
          prompt_tokens: 378,
          completion_tokens: 23,
          total_tokens: 401,
          prompt_tokens_details: { cached_tokens: 207, cache_write_tokens: 70 },
        },
      }),
      done,
    ],
    tokens: { input: 378, cached: 207, written: 70, output: 23 },
  },
  responses: {
    steps: [
      event('response.created', { response: { status: 'in_progress', output: [] } }),
      event('response.output_text.delta', { output_index: 0, content_index: 0, item_id: 'a', delta: text }),
      event('response.completed', {
        response: {
          status: 'completed',
          output: [],
          usage: {
            input_tokens: 378,
            output_tokens: 23,
            total_tokens: 401,
            input_tokens_details: { cached_tokens: 207 },
          },
        },
      }),
    ],
    tokens: { input: 378, cached: 207, output: 23 },
  },
};

const rigOf = (options: BillingOptions = {}) =>
  new BillingRig({ charges: [price], channels: [{ dialect: 'messages' }], ...options }).granted(100n * yuan);
const shownOf = ({ text: body }: Answer): Json => (JSON.parse(body) as { usage: Json }).usage;

describe.each(Object.entries(upstreams))('a conversation on an upstream of %s', (dialect, up) => {
  it('costs the same over each endpoint, streamed or not, to the nano-yuan', async () => {
    for (const { path, body } of endpoints)
      for (const stream of [true, false]) {
        const rig = rigOf({ channels: [{ dialect }] }).upstream({ steps: up.steps });
        const answer = await rig.call({ model: 'm', stream, ...body }, { path });
        const { spent, settled, open } = rig.item ?? {};
        expect([path, answer.status, spent, settled, open?.size]).toEqual([
          path,
          200,
          costOf(price, up.tokens),
          1,
          0,
        ]);
      }
  });

  it('has the same token split for the client, the log and the ledger', async () => {
    const rig = rigOf({ channels: [{ dialect }] }).upstream({ steps: up.steps });
    const answer = await rig.call({ model: 'm', ...endpoints[0]?.body }, { path: '/v1/messages' });
    const { input, output, cached = 0, written = 0, writtenForHour = 0 } = up.tokens;
    expect(shownOf(answer)).toMatchObject({
      input_tokens: input - cached - written - writtenForHour,
      cache_read_input_tokens: cached,
      cache_creation_input_tokens: written + writtenForHour,
      cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: writtenForHour },
      output_tokens: output,
    });
    expect(rig.item?.last).toMatchObject({
      endpoint: 'messages',
      prompt_tokens: input,
      completion_tokens: output,
      cached_tokens: cached,
      ...(written > 0 && { cache_write_tokens: written }),
      ...(writtenForHour > 0 && { cache_write_1h_tokens: writtenForHour }),
    });
    expect(rig.logged[0]).toMatchObject({
      endpoint: 'messages',
      prompt_tokens: input,
      cached_tokens: cached,
    });
  });
});

describe('the reservation for a body', () => {
  const base = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };
  const above = async (more: object): Promise<number> => {
    const { call } = messagesEndpoint.read({ ...base, ...more }, {});
    const reader = await loadMediaReader(call, () => undefined);
    return estimateInput(call, reader?.(undefined)).above;
  };
  const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] });
  const said = (...content: object[]) => ({
    messages: [...base.messages, { role: 'assistant', content }, ...base.messages],
  });
  const words = 'word '.repeat(10_000);
  const window = 1_050_000;

  // The vendor's counts, from its pages of November 2026.
  it.each<[string, object, number]>([
    ['thinking', said({ type: 'thinking', thinking: words, signature: 'x' }), 10_000],
    ['hidden thinking', said({ type: 'redacted_thinking', data: 'AbC9'.repeat(10_000) }), 10_000],
    ['a result of the vendor', said({ type: 'web_search_tool_result', content: [{ x: words }] }), 10_000],
    ['a tool of the vendor', { tools: [{ type: 'computer_20250124', name: 'computer' }] }, 735 + 499],
    [
      'tools of the vendor',
      { tools: [{ type: 'bash_20250124' }, { type: 'text_editor_20250728' }] },
      245 + 700 + 346,
    ],
    [
      'examples of a tool',
      { tools: [{ name: 'f', input_schema: {}, input_examples: [{ a: words }] }] },
      10_000,
    ],
    [
      'an image by its address',
      user({ type: 'image', source: { type: 'url', url: 'https://a.test/b' } }),
      4_784,
    ],
    [
      'a document by its address',
      user({ type: 'document', source: { type: 'url', url: 'https://a.test/b' } }),
      window,
    ],
    [
      'the context of a document',
      user({
        type: 'document',
        context: words,
        source: { type: 'base64', media_type: 'application/pdf', data: '' },
      }),
      10_000,
    ],
    ['unknown content', user({ type: 'video', source: { type: 'base64', data: 'AAAA' } }), window],
    [
      'unknown content from a tool',
      user({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'video', source: {} }] }),
      window,
    ],
    ['an unknown block', user({ type: 'x_block', said: words }), 10_000],
    ['an unknown field', { x_field: words }, 10_000],
  ])('is an upper bound: %s', async (_what, more, least) => {
    expect(await above(more)).toBeGreaterThanOrEqual(least);
  });

  it('rejects a document by URL that the balance does not cover', async () => {
    const rig = rigOf().upstream({ steps: claudes() });
    rig.quotas.items.clear();
    rig.granted(yuan);
    const body = { ...base, ...user({ type: 'document', source: { type: 'url', url: 'https://a.test/b' } }) };
    const answer = await rig.call(body, { path: '/v1/messages' });
    expect([answer.status, JSON.parse(answer.text).error.type]).toEqual([402, 'billing_error']);
    expect(rig.sent).toEqual([]);
  });
});

describe('media in unusual places', () => {
  const byUrl = { type: 'document', source: { type: 'url', url: 'https://a.test/b' } };
  // 600 pages in 2 KB.
  const pdf = base64(savedAgain(600));
  const inline = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } };
  const unknown = { type: 'x_block', source: { type: 'x', ref: '1' } };
  const fetched = (content: object) => ({
    type: 'web_fetch_tool_result',
    tool_use_id: 's',
    content: { type: 'web_fetch_result', url: 'https://a.test/b', content },
  });
  const ran = (...content: object[]) => ({
    type: 'code_execution_tool_result',
    tool_use_id: 's',
    content: { type: 'code_execution_result', stdout: '', content },
  });
  const around = (content: object): [string, object][] => [
    ['alone', content],
    ['in a fetched page', fetched(content)],
    ['in the output of code', ran(content)],
    ['in the system text', { type: 'mid_conv_system', content: [content] }],
    ['in a result', { type: 'tool_result', tool_use_id: 't', content: [content] }],
    [
      'in a result of a result',
      { type: 'tool_result', content: [{ type: 'tool_result', content: [content] }] },
    ],
    ['in a document', { type: 'document', source: { type: 'content', content: [content] } }],
    ['beside a text', { type: 'text', text: 'hi', x_field: [content] }],
    ['beside a call', { type: 'tool_use', id: 't', name: 'f', input: {}, x_field: content }],
  ];
  const turns = { user: [], assistant: [{ role: 'user', content: 'hi' }] };
  const cases = Object.entries(turns).flatMap(([role, before]) =>
    Object.entries({ byUrl, inline, unknown }).flatMap(([kind, content]) =>
      around(content).map(([where, block]) => {
        const messages = [...before, { role, content: [block] }, { role: 'user', content: 'hi' }];
        return [`${kind} ${where} of the ${role}`, { model: 'm', max_tokens: 10, messages }] as const;
      }),
    ),
  );
  const path = '/v1/messages';
  const counted = (tokens: number) => claudes({ input_tokens: tokens, output_tokens: 23 });

  it.each(cases)('is reserved and charged for the most that it may hold: %s', async (_what, body) => {
    const poor = rigOf().upstream({ steps: counted(900_000) });
    poor.quotas.items.clear();
    expect((await poor.granted(20n * yuan).call(body, { path })).status).toBe(402);
    const rig = rigOf().upstream({ steps: counted(900_000) });
    expect((await rig.call(body, { path })).status).toBe(200);
    expect(rig.item?.last).toMatchObject({ prompt_tokens: 900_000, estimated: false });
    expect(rig.item?.spent).toBe(costOf(price, { input: 900_000, output: 23 }));
  });

  it.each(cases)('does not justify higher counts: %s', async (_what, body) => {
    const rig = rigOf().upstream({ steps: counted(1_200_000) });
    await rig.call(body, { path });
    expect(rig.item?.last).toMatchObject({ estimated: true, flag: 'input:high' });
    expect(rig.item?.last?.prompt_tokens).toBeLessThan(1_051_000);
  });

  it.each<[string, object]>([
    ['an address in words', { type: 'text', text: 'https://a.test/b' }],
    ['arguments', { type: 'tool_use', id: 't', name: 'f', input: { url: 'https://a.test/b', data: pdf } }],
    [
      'a page that was found',
      { type: 'web_search_result', url: 'https://a.test/b', title: 'https://a.test' },
    ],
    ['a page that was fetched', fetched({ type: 'document', source: { type: 'text', data: 'words' } })],
    ['hidden thinking', { type: 'redacted_thinking', data: pdf }],
    ['a citation', { type: 'text', text: 'a', citations: [{ url: 'https://a.test/b' }] }],
  ])('does not include %s', async (_what, block) => {
    const rig = rigOf().upstream({ steps: counted(900_000) });
    const messages = [...turns.assistant, { role: 'assistant', content: [block] }, ...turns.assistant];
    await rig.call({ model: 'm', max_tokens: 10, messages }, { path });
    expect(rig.item?.last).toMatchObject({ estimated: true, flag: 'input:high' });
  });
});

describe('several runs of one call', () => {
  const run = { input_tokens: 3_000, output_tokens: 900 };
  const usage = {
    ...run,
    iterations: [
      { ...run, type: 'compaction' },
      { ...run, type: 'message' },
    ],
  };
  const body = { model: 'm', max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] };
  const ask = async (management: object, allow: string[]) => {
    const rig = rigOf({ channels: [{ dialect: 'messages', params: { allow } }] });
    await rig
      .upstream({ steps: claudes(usage) })
      .call({ ...body, context_management: management }, { path: '/v1/messages' });
    return rig.item?.last;
  };

  it('are charged together if the row allows them', async () => {
    const last = await ask({ edits: [{ type: 'compact_20260112' }] }, ['context_management']);
    expect(last).toMatchObject({ prompt_tokens: 6_000, completion_tokens: 1_800, estimated: false });
  });

  it.each([true, false])("yield to the vendor's total when they are implausible (%s)", async (isInput) => {
    const own = { input_tokens: 9, output_tokens: 15 };
    const absurd = isInput ? { input_tokens: 9_000_000 } : { output_tokens: 9_000_000 };
    const rig = rigOf().upstream({ steps: claudes({ ...own, iterations: [{ ...own, ...absurd }] }) });
    await rig.call(body, { path: '/v1/messages' });
    expect(rig.item?.last).toMatchObject({ prompt_tokens: 9, completion_tokens: 15, estimated: false });
  });

  it.each([
    ['are ignored if the request did not ask for them', { edits: [{ type: 'compact_20260112' }] }],
    ['are ignored for a call that only clears', { edits: [{ type: 'clear_tool_uses_20250919' }] }],
  ])('%s', async (_what, management) => {
    const last = await ask(management, []);
    expect(last).toMatchObject({ estimated: true });
    expect(last?.prompt_tokens).toBeLessThan(100);
  });
});

describe('a limit of zero, which only fills the cache,', () => {
  const path = '/v1/messages';
  const breakpoint = { type: 'ephemeral', ttl: '1h' };
  const body = {
    model: 'm',
    max_tokens: 0,
    system: [{ type: 'text', text: long, cache_control: breakpoint }],
    messages: [{ role: 'user', content: 'warm' }],
  };
  const written = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 300 };
  const counts = {
    input_tokens: 3,
    cache_creation_input_tokens: 300,
    cache_creation: written,
    output_tokens: 0,
  };
  const warmed = {
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: 'max_tokens',
    usage: counts,
  };
  const events = [
    event('message_start', { message: { ...warmed, stop_reason: null } }),
    event('message_delta', { delta: { stop_reason: 'max_tokens' }, usage: counts }),
    event('message_stop', {}),
  ];
  const cost = costOf(price, { input: 303, writtenForHour: 300, output: 0 });

  it.each([
    ['as JSON', false, [JSON.stringify(warmed)]],
    ['as JSON to a client that streams', true, [JSON.stringify(warmed)]],
    ['as a stream', true, events],
  ])('is sent as zero, and its cache write is charged: %s', async (_how, stream, steps) => {
    const rig = rigOf({ channels: [{ dialect: 'messages', params: { set: { max_tokens: 900 } } }] });
    const answer = await rig.upstream({ steps }).call({ ...body, stream }, { path });
    expect(rig.sent[0]?.json).toMatchObject({ max_tokens: 0, system: body.system });
    // The vendor rejects streaming here.
    expect(rig.sent[0]?.json).not.toHaveProperty('stream');
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"stop_reason":"max_tokens"');
    expect(rig.item).toMatchObject({
      spent: cost,
      settled: 1,
      last: { completion_tokens: 0, estimated: false },
    });
  });

  it('reserves the dearest write of its input, and nothing for an answer', async () => {
    const held = async (more: object): Promise<bigint> => {
      const rig = rigOf().upstream({ steps: [JSON.stringify(warmed)] });
      const response = await rig.respond({ ...body, ...more }, { path });
      const { open } = rig;
      await rig.clock.run(response.done);
      return open[0]?.amount ?? 0n;
    };
    const none = await held({});
    expect(none).toBeGreaterThan(cost);
    expect((await held({ max_tokens: 1 })) - none).toBe(costOf(price, { input: 0, output: 1 }));
  });

  it('goes to a candidate that accepts it, and is rejected if there is none', async () => {
    const chat = { id: 'chat', priority: 2 };
    const both = rigOf({ channels: [chat, { id: 'claude', dialect: 'messages' }] });
    await both.upstream({ steps: [JSON.stringify(warmed)] }).call(body, { path });
    expect([both.sent.length, both.item?.spent]).toEqual([1, cost]);
    for (const dialect of ['chat', 'responses']) {
      const rig = rigOf({ channels: [{ dialect }] });
      const { status, text } = await rig.call(body, { path });
      expect([status, JSON.parse(text).error.param, rig.sent]).toEqual([400, 'max_tokens', []]);
      expect([rig.item?.spent, rig.item?.open.size]).toEqual([0n, 0]);
    }
  });

  it('may not be negative', async () => {
    const { status } = await rigOf().call({ ...body, max_tokens: -1 }, { path });
    expect(status).toBe(400);
  });
});

describe('several answers of one call', () => {
  const many = { n: 8, max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] };
  it.each<[path: string, dialect: string, body: Json, status: number, sent: unknown, dropped?: string]>([
    ['/v1/chat/completions', 'chat', many, 200, 8],
    ['/v1/chat/completions', 'messages', many, 400, undefined],
    ['/v1/chat/completions', 'responses', many, 400, undefined],
    ['/v1/messages', 'chat', many, 200, undefined, 'n'],
    ['/v1/messages', 'messages', many, 200, undefined, 'n'],
    ['/v1/messages', 'responses', many, 200, undefined, 'n'],
    ['/v1/responses', 'chat', { n: 8, input: 'hi' }, 400, undefined],
    ['/v1/responses', 'messages', { n: 8, input: 'hi' }, 400, undefined],
    ['/v1/responses', 'responses', { n: 8, input: 'hi' }, 400, undefined],
  ])(
    'over %s on an upstream of %s are reserved, dropped or rejected',
    async (path, dialect, body, status, sent, dropped) => {
      const rig = rigOf({ channels: [{ dialect }] }).upstream({ steps: upstreams[dialect]?.steps ?? [] });
      const answer = await rig.call({ model: 'm', ...body }, { path });
      expect([answer.status, rig.sent[0]?.json['n']]).toEqual([status, sent]);
      expect(answer.headers['x-relay-dropped']).toBe(dropped);
      if (status === 400) expect([rig.sent, rig.item?.spent]).toEqual([[], 0n]);
    },
  );
});

describe('a failing Messages call', () => {
  const body = { model: 'm', stream: true, ...endpoints[0]?.body };
  const path = '/v1/messages';

  it('is charged once for the received part when its stream breaks off', async () => {
    const rig = rigOf().upstream({ steps: claudes().slice(0, 3) });
    const answer = await rig.call(body, { path });
    expect(answer.text).toContain('event: error');
    expect(rig.item).toMatchObject({ settled: 1, last: { kind: 'settled', end: 'failed', estimated: true } });
    expect(rig.item?.spent).toBeGreaterThan(costOf(price, { ...upstreams['messages']!.tokens, output: 1 }));
  });

  it('is charged once and in full when its client hangs up early', async () => {
    const rig = rigOf().upstream({ steps: claudes() });
    await rig.call(body, { path, leaveAfter: 1 });
    expect(rig.item).toMatchObject({ settled: 1, spent: costOf(price, upstreams['messages']!.tokens) });
  });

  it('is free when it fails before its content, and nothing stays reserved', async () => {
    const rig = rigOf().upstream({ steps: [...claudes().slice(0, 2), hang] });
    const answer = await rig.call(body, { path });
    expect([answer.status, rig.item?.spent, rig.item?.open.size]).toEqual([200, 0n, 0]);
    expect(answer.text).toMatch(/event: error\ndata: .*timeout_error/);
  });

  it.each([
    [true, true],
    [false, true],
    [true, false],
    [false, false],
  ])('is charged once however often it is repeated (stream: %s, kept: %s)', async (stream, store) => {
    const rig = rigOf({ key: { store } }).upstream({ steps: claudes() });
    const headers = { 'x-api-key': demoKey, 'idempotency-key': 'k' };
    const first = await rig.call({ ...body, stream }, { path, headers });
    const again = await rig.call({ ...body, stream }, { path, headers });
    expect([first.status, again.status]).toEqual([200, store ? 200 : 409]);
    if (store) expect(again.text).toBe(first.text);
    else expect(JSON.parse(again.text)).toMatchObject({ error: { code: 'request_already_completed' } });
    expect(rig.sent).toHaveLength(1);
    expect(rig.item).toMatchObject({ settled: 1, spent: costOf(price, upstreams['messages']!.tokens) });
  });
});
