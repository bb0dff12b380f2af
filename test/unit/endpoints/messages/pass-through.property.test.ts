/** Between a client and an upstream that both speak Messages, only the relay's own decisions change the body. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CoreRig, data, demoKey, type Answer } from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const path = '/v1/messages';
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const json = fc.jsonValue({ maxDepth: 2 }).filter((value) => value !== null);
const word = fc.string({ minLength: 1, maxLength: 12 });
const cache = fc.constantFrom(
  {},
  { cache_control: { type: 'ephemeral' } },
  { cache_control: { type: 'ephemeral', ttl: '1h' } },
);
const future = fc.dictionary(
  fc.stringMatching(/^x_[a-z]{1,6}$/),
  json.filter((value) => !/"type"|:\/\//.test(JSON.stringify(value))),
  { maxKeys: 2 },
);
const block = (type: string, fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Json> =>
  fc.tuple(fc.record(fields), cache, future).map(([own, ...more]) => Object.assign({ type }, own, ...more));

const text = block('text', { text: word });
const image = fc.constant({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
});
const unknown = block('future_block', { x_data: json });
const use = block('tool_use', {
  id: fc.constantFrom('toolu_1', 'toolu_2'),
  name: fc.constantFrom('read', 'n'.repeat(100)),
  input: fc.oneof(future, fc.constant({ file_id: 'f', source: { type: 'file' }, agent_id: 'a' })),
});
const said = fc.oneof(
  text,
  use,
  block('thinking', { thinking: word, signature: word }),
  block('redacted_thinking', { data: word }),
  block('server_tool_use', { id: word, name: word, input: future }),
  unknown,
);
const results = block('tool_result', {
  tool_use_id: fc.constantFrom('toolu_1', 'none'),
  is_error: fc.boolean(),
  content: fc.oneof(word, fc.array(fc.oneof(text, image, unknown), { maxLength: 3 })),
});
const turn = fc.oneof(
  fc.record({ role: fc.constant('user'), content: fc.oneof(word, fc.array(fc.oneof(text, image, results))) }),
  fc.record({ role: fc.constant('system'), content: fc.array(text, { maxLength: 2 }) }),
  fc.record({ role: fc.constant('assistant'), content: fc.oneof(word, fc.array(said)) }),
);
const tool = fc.tuple(future, cache).map(([example, more]) => {
  const own = { name: 'read', input_schema: { type: 'object' }, input_examples: [example] };
  return Object.assign(own, { defer_loading: true }, more);
});
const bodies = fc
  .record({
    messages: fc.array(turn, { minLength: 1, maxLength: 6 }),
    system: fc.oneof(word, fc.array(text, { minLength: 1, maxLength: 2 })),
    tools: fc.array(fc.oneof(tool, fc.constant({ type: 'bash_20250124', name: 'bash' })), {
      minLength: 1,
      maxLength: 3,
    }),
    stop_sequences: fc.array(word, { minLength: 1, maxLength: 2 }),
    thinking: fc.constantFrom(
      { type: 'adaptive', display: 'omitted' },
      { type: 'enabled', budget_tokens: 3_000 },
    ),
    tool_choice: fc.constant({ type: 'auto', disable_parallel_tool_use: true }),
    output_config: fc.constant({ effort: 'high', task_budget: { type: 'tokens', total: 9_000 } }),
    temperature: fc.constant(1),
    context_management: fc.constant({ edits: [{ type: 'clear_tool_uses_20250919', keep: { value: 2 } }] }),
    cache_control: fc.constant({ type: 'ephemeral' }),
  })
  .map((own) => plain({ model: 'm', max_tokens: 5_000, ...own }));

const channel = { type: 'anthropic', endpoint: 'https://claude.test/v1', mapper: { m: 'claude-opus-5' } };
const event = (value: Json): string => `event: ${String(value['type'])}\n${data(value)}`;
const usage = { input_tokens: 9, output_tokens: 4_000 };
const ends = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
  { type: 'message_stop' },
];

async function ask(body: object, steps: string[], headers: Record<string, string> = {}) {
  const rig = new CoreRig({ channels: [channel] });
  rig.upstream({ steps });
  const answer = await rig.post(body, { path, headers: { 'x-api-key': demoKey, ...headers } });
  expect(rig.faults).toEqual([]);
  return { rig, answer };
}

const version = '2026-10-21';
const betas = 'context-management-2025-06-27,x_future-2030-01-01';

it("the relay sends the client's Messages request, changing only model, limit, stream and end user", async () => {
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      const steps = [{ type: 'message_start', message: { usage } }, ...ends].map(event);
      const headers = { 'anthropic-version': version, 'anthropic-beta': betas };
      const { rig, answer } = await ask(body, steps, headers);
      expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, undefined]);
      const metadata = { user_id: expect.stringMatching(/^[0-9a-f]{64}$/) };
      expect(rig.sent[0]?.json).toEqual({ ...body, model: 'claude-opus-5', stream: true, metadata });
      // Caches match from the start of a prompt.
      const up = String(rig.sent[0]?.body);
      expect(up).toContain(JSON.stringify(body.messages));
      expect(rig.sent[0]?.headers).toMatchObject(headers);
    }),
    { numRuns: 40, seed: 26 },
  );
});

interface SaidBlock {
  block: Json;
  events: Json[];
}
const pieces = (whole: string): string[] => whole.match(/[^]{1,5}/gu) ?? [];

/** A block with the events that deliver it. */
const streamed = ({ ...block }: Json): SaidBlock => {
  const { type } = block;
  const start: Json = { ...block };
  const deltas: Json[] = [];
  const cut = (field: string, delta: string, name = field): void => {
    if (typeof block[field] !== 'string') return;
    start[field] = '';
    for (const piece of pieces(block[field])) deltas.push({ type: delta, [name]: piece });
  };
  if (type === 'text') cut('text', 'text_delta');
  if (type === 'text' && Array.isArray(block['citations'])) {
    start['citations'] = [];
    for (const citation of block['citations']) deltas.push({ type: 'citations_delta', citation });
  }
  if (type === 'thinking') cut('thinking', 'thinking_delta');
  if (type === 'thinking') cut('signature', 'signature_delta');
  if (type === 'compaction') cut('content', 'compaction_delta');
  if (type === 'tool_use' || type === 'server_tool_use') {
    start['input'] = {};
    for (const piece of pieces(JSON.stringify(block['input'])))
      deltas.push({ type: 'input_json_delta', partial_json: piece });
  }
  return { block, events: [{ start }, ...deltas.map((delta) => ({ delta })), {}] };
};

const answers = fc.record({
  blocks: fc.array(
    fc.oneof(
      block('text', { text: word, citations: fc.constantFrom(null, [], [{ type: 'x', x_a: 1 }]) }),
      block('thinking', { thinking: word, signature: word }),
      block('redacted_thinking', { data: word }),
      block('tool_use', { id: fc.uuid(), name: fc.constant('n'.repeat(100)), input: future }),
      block('server_tool_use', { id: fc.uuid(), name: word, input: future }),
      block('compaction', { content: word }),
      unknown,
    ),
    { minLength: 1, maxLength: 6 },
  ),
  more: future,
  delta: fc.record({
    stop_reason: fc.constantFrom('end_turn', 'stop_sequence', 'pause_turn', 'x_new'),
    stop_sequence: fc.constantFrom(null, 'END'),
  }),
});

const shown = { input_tokens: 9, output_tokens: 4_000, cache_read_input_tokens: 0 };

function eventsOf({ text: body }: Answer): Json[] {
  return body
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => JSON.parse(/^event: \w+\ndata: (.*)$/s.exec(frame)?.[1] ?? '') as Json);
}

describe("the relay returns the upstream's Messages answer, changing only id, model and usage,", () => {
  it('streamed or not, from a stream or from a complete message', async () => {
    await fc.assert(
      fc.asyncProperty(answers, async (answer) => {
        const { blocks, more, delta } = plain(answer);
        const said = blocks.map(streamed);
        const message = { id: 'msg_x', type: 'message', role: 'assistant', model: 'up', ...more };
        const begun = { ...message, content: [], stop_reason: null, stop_sequence: null, usage };
        const names = ['content_block_start', 'content_block_delta', 'content_block_stop'];
        const within = said.flatMap(({ events }, index) =>
          events.map(({ start, delta: piece }): Json => ({
            type: start ? names[0] : piece ? names[1] : names[2],
            index,
            ...(start !== undefined && { content_block: start }),
            ...(piece !== undefined && { delta: piece }),
          })),
        );
        const sent: Json[] = [
          { type: 'message_start', message: begun },
          { type: 'ping' },
          ...within,
          { type: 'message_delta', delta, usage, x_applied: 1 },
          { type: 'message_stop' },
        ];
        const whole = { ...message, content: said.map((one) => one.block), ...delta, usage };
        const own = { id: 'msg_01testrequest0000000000000', model: 'm' };
        const asked = { model: 'm', max_tokens: 5_000, messages: [{ role: 'user', content: 'hi' }] };

        const down = eventsOf((await ask({ ...asked, stream: true }, sent.map(event))).answer);
        expect(down[0]).toMatchObject({ message: { ...begun, ...own, usage: {} } });
        expect(down.slice(1, -2)).toEqual(within);
        expect(down.at(-2)).toMatchObject({ delta, usage: shown, x_applied: 1 });
        expect(down.at(-1)).toEqual({ type: 'message_stop' });

        const folded = JSON.parse((await ask(asked, sent.map(event))).answer.text) as Json;
        expect(folded).toEqual({
          ...whole,
          ...own,
          x_applied: 1,
          usage: expect.objectContaining(shown) as object,
        });
        const { x_applied: _, ...same } = folded;
        expect(JSON.parse((await ask(asked, [JSON.stringify(whole)])).answer.text)).toEqual(same);
      }),
      { numRuns: 40, seed: 26 },
    );
  });
});
