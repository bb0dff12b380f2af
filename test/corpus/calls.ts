/** Every recorded answer through the core, on both endpoints, streamed and whole: all bytes down and up, the log line, the books. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { CoreRig, type RigOptions } from '../support/core-rig.ts';

const folder = path.join(import.meta.dirname, '../golden/upstream');
const tool = { name: 'read', description: 'Reads', parameters: { type: 'object', properties: { path: {} } } };
const picture =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==';

/** What clients ask, by name: each once for each dialect. */
const asked: Record<string, Record<string, unknown>> = {
  text: {
    messages: [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'hi' },
    ],
  },
  tools: {
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [call('call_1'), call('call_2')] },
      { role: 'tool', tool_call_id: 'call_1', content: 'one' },
      { role: 'tool', tool_call_id: 'call_2', content: 'two' },
    ],
    tools: [{ type: 'function', function: tool }],
    tool_choice: 'auto',
  },
  picture: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what?' },
          { type: 'image_url', image_url: { url: picture } },
        ],
      },
    ],
    reasoning_effort: 'low',
    max_tokens: 50,
  },
  schema: {
    messages: [{ role: 'user', content: 'hi' }],
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'a', strict: true, schema: tool.parameters },
    },
    user: 'someone',
    stop: ['END'],
  },
  wrong: { messages: 'hi' },
};

const items: Record<string, Record<string, unknown>> = {
  text: { input: 'hi', instructions: 'Be short.' },
  tools: {
    input: [
      { role: 'user', content: 'hi' },
      { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{"path":"a"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'one' },
    ],
    tools: [{ type: 'function', ...tool }],
  },
  picture: {
    input: [{ role: 'user', content: [{ type: 'input_image', image_url: picture }] }],
    reasoning: { effort: 'low', summary: 'auto' },
  },
  wrong: { input: 3 },
};

function call(id: string): object {
  return { id, type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } };
}

const answers: Record<string, string[]> = {
  chat: [
    'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}\n\ndata: [DONE]\n\n',
  ],
  messages: [],
  responses: [],
};

const rows: RigOptions = {
  charges: [
    { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2, cache_read: 0.1, cache_write: 1.25 },
  ],
};

export async function* calls(): AsyncGenerator<[name: string, text: string]> {
  for (const dialect of ['chat', 'messages', 'responses']) {
    const recordings = readdirSync(path.join(folder, dialect)).filter((name) => name.endsWith('.txt'));
    for (const name of recordings.toSorted()) {
      const body = readFileSync(path.join(folder, dialect, name), 'utf8');
      for (const endpoint of ['chat', 'responses'] as const)
        for (const stream of [true, false])
          yield [
            `answers/${dialect}-${name}-${endpoint}-${stream ? 'stream' : 'json'}`,
            await transcript(dialect, body, endpoint, {
              stream,
              ...(endpoint === 'chat' ? asked : items)['text'],
            }),
          ];
    }
    const [first = ''] = recordings;
    const answer = answers[dialect]?.join('') || readFileSync(path.join(folder, dialect, first), 'utf8');
    for (const [endpoint, bodies] of [
      ['chat', asked],
      ['responses', items],
    ] as const)
      for (const [name, body] of Object.entries(bodies))
        yield [
          `requests/${dialect}-${endpoint}-${name}`,
          await transcript(dialect, answer, endpoint, { stream: true, ...body }),
        ];
  }
}

async function transcript(
  dialect: string,
  body: string,
  endpoint: 'chat' | 'responses',
  request: Record<string, unknown>,
): Promise<string> {
  const rig = new CoreRig({ ...rows, channels: [{ dialect }] }).upstream({ steps: [body] });
  rig.quotas.grant('acme', 100_000_000_000n);
  const url = endpoint === 'chat' ? '/v1/chat/completions' : '/v1/responses';
  const { status, headers, text } = await rig.post({ model: 'm', ...request }, { path: url });
  const sent = rig.sent.map((one) => ({ url: one.url, headers: one.headers, body: one.body }));
  const books = { operations: rig.store.sent, closed: rig.quotas.closed };
  return `${status} ${json(headers)}\n\n${text}\n\n${json({ sent, logged: rig.logged, faults: rig.faults.map(String), books })}\n`;
}

const json = (value: unknown): string =>
  JSON.stringify(
    value,
    (_, each: unknown) => (typeof each === 'bigint' ? `${each}n` : each instanceof Map ? [...each] : each),
    1,
  );
