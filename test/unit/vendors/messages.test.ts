import { EventStreamCodec } from '@smithy/core/event-streams';
import { describe, expect, test } from 'vitest';
import { messagesTool, user } from './examples.ts';
import { doubleOf, jsonOf, send, textOf, type Json, type Sent } from './rig.ts';

const tools = [messagesTool];
const opus = (said: string, more: Json = {}): Sent => ({
  body: { model: 'claude-opus-5-5', max_tokens: 4000, messages: [user(said)], ...more },
});
const shown = { thinking: { type: 'adaptive', display: 'summarized' } };
const contentOf = (reply: Json): Json[] => reply['content'] as Json[];

/** A changed second turn, after one with thinking and a call. */
async function secondTurn(change: {
  content?: (blocks: Json[]) => Json[];
  body?: Json;
  key?: string;
  headers?: Record<string, string>;
}) {
  const double = doubleOf('anthropic');
  const key = (value: string) => ({ 'x-api-key': value });
  const first = { ...opus('weather', { tools, ...shown }), headers: key('one') };
  const blocks = contentOf(jsonOf(await send(double, first)));
  const { id } = blocks.find(({ type }) => type === 'tool_use')!;
  const messages = [
    user('weather'),
    { role: 'assistant', content: change.content?.(blocks) ?? blocks },
    user([{ type: 'tool_result', tool_use_id: id, content: 'sunny' }]),
  ];
  const sent = opus('', { tools, messages, ...shown, ...change.body });
  return send(double, { ...sent, headers: { ...key(change.key ?? 'one'), ...change.headers } });
}

describe("Anthropic's thinking", () => {
  test('is accepted back as a whole', async () => {
    const reply = await secondTurn({});
    expect({ status: reply.status, notes: reply.notes }).toEqual({ status: 200, notes: [] });
  });

  test('is rejected if its text was changed', async () => {
    const content = (blocks: Json[]) =>
      blocks.map((block) => (block['thinking'] ? Object.assign({}, block, { thinking: 'other' }) : block));
    const reply = await secondTurn({ content });
    expect({ rule: reply.rule, status: reply.status }).toEqual({ rule: 'thinking-unchanged', status: 400 });
    expect(textOf(reply)).toContain('messages.1.content.0: `thinking` or `redacted_thinking` blocks');
  });

  test.each<[string, Parameters<typeof secondTurn>[0]]>([
    ['system', { body: { system: 'new' } }],
    ['tools', { body: { tools: [{ ...messagesTool, description: 'new' }] } }],
    ['account', { key: 'two' }],
    ['model', { body: { model: 'claude-fable-5-1' } }],
  ])('is rejected if the %s changed', async (_what, change) => {
    const reply = await secondTurn(change);
    expect(reply.rule).toBe('thinking-bound');
    expect(textOf(reply)).toContain('The block is bound to a different conversation');
  });

  test('of another conversation may be dropped by a beta', async () => {
    const thinking = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };
    const reply = await secondTurn({
      body: { system: 'new', thinking },
      headers: { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' },
    });
    expect({ status: reply.status, notes: reply.notes }).toEqual({
      status: 200,
      notes: ['thinking of another conversation'],
    });
  });

  test('stays valid when breakpoints are added and texts become blocks', async () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const reply = await secondTurn({ body: { tools: [{ ...messagesTool, ...mark }] } });
    expect(reply.status).toBe(200);
  });
});

describe('an Anthropic message thread', () => {
  const headers = { 'x-api-key': 'one', 'anthropic-beta': 'message-threads-2026-08-12' };
  const inThread = (thread: Json, more: Json = {}): Sent => ({
    ...opus('weather', { thread, ...more }),
    headers,
  });

  test('continues from its last answer with the earlier tools and messages', async () => {
    const double = doubleOf('anthropic');
    const first = jsonOf(await send(double, inThread({ type: 'create' }, { tools })));
    const { id } = contentOf(first).find(({ type }) => type === 'tool_use')!;
    const messages = [user([{ type: 'tool_result', tool_use_id: id, content: 'sunny' }])];
    const thread = { type: 'continue', previous_message_id: first['id'] };
    const second = await send(double, inThread(thread, { messages }));
    expect({ status: second.status, notes: second.notes }).toEqual({ status: 200, notes: [] });
    expect(textOf(second)).toContain('sunny');
  });

  test.each<[string, (id: unknown) => unknown, Json]>([
    ['an unknown id', () => 'msg_01Other', {}],
    ['the id of another account', (id) => id, { 'x-api-key': 'two' }],
  ])('is not found by %s', async (_id, change, more) => {
    const double = doubleOf('anthropic');
    const first = jsonOf(await send(double, inThread({ type: 'create' })));
    const thread = { type: 'continue', previous_message_id: change(first['id']) };
    const sent = inThread(thread);
    const reply = await send(double, { ...sent, headers: { ...headers, ...more } });
    expect(reply.status).toBe(404);
    expect(jsonOf(reply)['error']).toMatchObject({ details: { error_code: 'thread_not_found' } });
  });
});

describe("Anthropic's cache", () => {
  const marked = (ttl: '5m' | '1h', text = 'x'.repeat(8000)) => [
    { type: 'text', text, cache_control: { type: 'ephemeral', ttl } },
  ];
  const usageOf = async (double: ReturnType<typeof doubleOf>, sent: Sent) =>
    jsonOf(await send(double, sent))['usage'] as Record<string, number> & {
      cache_creation: Record<string, number>;
    };

  test.each(['5m', '1h'] as const)('writes at a breakpoint of %s, then reads', async (ttl) => {
    const double = doubleOf('anthropic');
    const first = await usageOf(double, opus('one', { system: marked(ttl) }));
    expect(first.cache_creation[`ephemeral_${ttl}_input_tokens`]).toBeGreaterThan(1999);
    expect(first['cache_read_input_tokens']).toBe(0);
    const second = await usageOf(double, opus('another', { system: marked(ttl) }));
    expect(second['cache_read_input_tokens']).toBe(first['cache_creation_input_tokens']);
    expect(second['cache_creation_input_tokens']).toBe(0);
  });

  test('writes nothing without a breakpoint, nor below the minimum of the model', async () => {
    const double = doubleOf('anthropic');
    for (const system of ['x'.repeat(8000), marked('5m', 'short')])
      expect(await usageOf(double, opus('one', { system }))).toMatchObject({
        cache_creation_input_tokens: 0,
      });
  });
});

describe('Bedrock', () => {
  const model = 'us.anthropic.claude-opus-5-5-v1:0';
  const asked = (said: string, accept: string): Sent => ({
    ...opus(said, { model, stream: true }),
    headers: { accept },
  });
  const codec = new EventStreamCodec(
    (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()),
    (text) => Buffer.from(text),
  );
  const decoded = async (sent: Sent) => {
    const { frames, headers } = await send(doubleOf('bedrock'), sent);
    expect(headers['content-type']).toBe('application/vnd.amazon.eventstream');
    return frames.map((frame) => codec.decode(frame as Uint8Array));
  };
  const jsonIn = (body: Uint8Array): Json => JSON.parse(Buffer.from(body).toString()) as Json;

  test('frames streams as AWS does if the request accepts it', async () => {
    const messages = await decoded(asked('hello', 'application/vnd.amazon.eventstream'));
    const events = messages.map(
      ({ body }) => JSON.parse(Buffer.from(String(jsonIn(body)['bytes']), 'base64').toString()) as Json,
    );
    expect(messages[0]?.headers[':event-type']?.value).toBe('chunk');
    expect([events[0]?.['type'], events.at(-1)?.['type']]).toEqual(['message_start', 'message_stop']);
  });
});
