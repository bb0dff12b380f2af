/** Upstreams that lie, mix languages, repeat or break off: one clear end each, and the account adds up. */
import { describe, expect, it } from 'vitest';
import { asRecord } from '../../../../shared/wire/json.ts';
import { BillingRig, yuan } from '../../../support/billing-rig.ts';
import {
  data,
  done,
  frames,
  type Answer,
  type Step,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

type DialectName = 'chat' | 'messages' | 'responses';
const dialects: DialectName[] = ['chat', 'messages', 'responses'];

const event = (type: string, more: object = {}) => `event: ${type}\n${data({ type, ...more })}`;
const chunk = (delta: object, reason: string | null = null) =>
  data({ choices: [{ index: 0, delta, finish_reason: reason }] });

const chatCall = (id: string, index: number) => ({
  index,
  id,
  type: 'function',
  function: { name: 'look', arguments: '{}' },
});
const chat = {
  text: (text: string): Step[] => [chunk({ content: text })],
  think: (text: string): Step[] => [chunk({ reasoning_content: text })],
  call: (id: string, index: number): Step[] => [chunk({ tool_calls: [chatCall(id, index)] })],
  end: [chunk({}, 'stop'), data({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } }), done],
  error: [data({ error: { message: 'x', code: 'overloaded' } })],
};

const block = (index: number, start: object, delta?: object): Step[] => [
  event('content_block_start', { index, content_block: start }),
  ...(delta ? [event('content_block_delta', { index, delta })] : []),
];
const messageStart = event('message_start', {
  message: { role: 'assistant', content: [], usage: { input_tokens: 3, output_tokens: 1 } },
});
const messages = {
  text: (text: string): Step[] => [
    messageStart,
    ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text }),
    event('content_block_stop', { index: 0 }),
  ],
  think: (thinking: string): Step[] => [
    ...block(9, { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking }),
  ],
  call: (id: string, index: number): Step[] => [
    ...block(
      index + 1,
      { type: 'tool_use', id, name: 'look', input: {} },
      { type: 'input_json_delta', partial_json: '{}' },
    ),
    event('content_block_stop', { index: index + 1 }),
  ],
  end: [
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
    event('message_stop'),
  ],
  error: [event('error', { error: { type: 'overloaded_error', message: 'x' } })],
};

const message = (text: string) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }],
});
const responses = {
  text: (text: string): Step[] => [
    event('response.created', { response: { status: 'in_progress', output: [] } }),
    event('response.output_item.added', { output_index: 0, item: { ...message(''), content: [] } }),
    event('response.output_text.delta', { output_index: 0, content_index: 0, item_id: 'msg_1', delta: text }),
  ],
  think: (delta: string): Step[] => [
    event('response.reasoning_summary_text.delta', {
      output_index: 9,
      item_id: 'rs_1',
      summary_index: 0,
      delta,
    }),
  ],
  call: (id: string, index: number): Step[] => [
    event('response.output_item.done', {
      output_index: index + 1,
      item: { type: 'function_call', id: `fc_${index}`, call_id: id, name: 'look', arguments: '{}' },
    }),
  ],
  end: [
    event('response.completed', {
      response: {
        status: 'completed',
        output: [],
        usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
      },
    }),
  ],
  error: [event('error', { error: { type: 'server_error', code: 'server_error', message: 'x' } })],
};
const spoken = { chat, messages, responses };

const paths = ['/v1/chat/completions', '/v1/responses', '/v1/messages'];
const tools = {
  '/v1/chat/completions': [{ type: 'function', function: { name: 'look' } }],
  '/v1/responses': [{ type: 'function', name: 'look' }],
  '/v1/messages': [{ name: 'look', input_schema: { type: 'object' } }],
} as Record<string, object[]>;

interface Way {
  dialect: DialectName;
  path: string;
  stream: boolean;
}
const ways: Way[] = dialects.flatMap((dialect) =>
  paths.flatMap((path) => [true, false].map((stream) => ({ dialect, path, stream }))),
);

async function answered({ dialect, path, stream }: Way, script: UpstreamScript) {
  const rig = new BillingRig({ channels: [{ dialect }] }).granted(100n * yuan).upstream(script);
  const body = {
    model: 'm',
    ...(path === '/v1/responses' ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] }),
    tools: tools[path],
    stream,
    ...(path === '/v1/messages' && { max_tokens: 16_384 }),
  };
  const answer = await rig.call(body, { path });
  const { item } = rig;
  // In every case one reservation is closed once and the balance adds up.
  expect(rig.open).toEqual([]);
  expect(item?.settled).toBe(1);
  expect((item?.available ?? 0n) + (item?.spent ?? 0n)).toBe(item?.granted);
  expect(rig.clock.pendingTimers).toBe(0);
  expect(rig.faults).toEqual([]);
  return { answer, charged: (item?.spent ?? 0n) > 0n, rig };
}

/** The codes of the errors in an answer, whatever its form. */
function codes({ status, text }: Answer): unknown[] {
  if (status !== 200) return [asRecord(asRecord(JSON.parse(text))['error'])['code']];
  const values = text.startsWith('{') ? [JSON.parse(text)] : frames(text.replaceAll(/^event: .*\n/gm, ''));
  return values.flatMap((value) => {
    const { error, response, type } = asRecord(value);
    const found = error ?? asRecord(response)['error'];
    // Responses answers repeat the error.
    const isEvent = type === 'error' && 'sequence_number' in asRecord(value);
    return found && !isEvent ? [asRecord(found)['code']] : [];
  });
}

const failed = 'upstream_unavailable';
/** Inside a Responses answer, error codes are those of OpenAI's schema. */
const failedWithin = ({ path, stream }: Way): string =>
  stream && path === '/v1/responses' ? 'server_error' : failed;
/** Messages clients get the status for overload. */
const failedStatus = ({ dialect, path }: Way): number =>
  path === '/v1/messages' && dialect !== 'responses' ? 529 : 502;
const named = ({ dialect, path, stream }: Way) => `${dialect} ${path} ${stream ? 'streamed' : 'JSON'}`;

describe.each(ways.map((way) => Object.assign({ name: named(way) }, way)))('$name', (way) => {
  const own = spoken[way.dialect];
  const others = dialects.filter((name) => name !== way.dialect);

  it.each(others)('rejects a stream in the dialect of %s before any content, at no charge', async (other) => {
    const steps = [...spoken[other].text('hello'), ...spoken[other].end];
    const { answer, charged } = await answered(way, { steps });
    expect([answer.status, codes(answer), charged]).toEqual([502, [failed], false]);
  });

  it('ends the answer with the error after content, and charges the content sent', async () => {
    const { answer, charged } = await answered(way, { steps: [...own.text('some words'), ...own.error] });
    expect([answer.status, codes(answer), charged]).toEqual([
      way.stream ? 200 : failedStatus(way),
      [failedWithin(way)],
      way.stream,
    ]);
  });

  it('ends 30 MB of thinking with an error, and reads no more than a limit', async () => {
    const piece = own.think('think '.repeat(50_000));
    const steps = Array.from({ length: 100 }, () => piece).flat();
    const { answer, rig } = await answered(way, { steps: [...steps, ...own.end] });
    expect(codes(answer)).toEqual([failedWithin(way)]);
    expect(rig.stepsTaken).toBeLessThan(60);
  });
});

describe('a Messages stream', () => {
  const way: Way = { dialect: 'messages', path: '/v1/chat/completions', stream: true };

  it('with unclosed blocks is complete with its end mark, and failed without it', async () => {
    const open = [
      messageStart,
      ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'open' }),
      event('message_delta', { delta: { stop_reason: 'end_turn' } }),
    ];
    const ended = await answered(way, { steps: [...open, event('message_stop')] });
    expect([ended.answer.text.includes('open'), codes(ended.answer)]).toEqual([true, []]);
    expect(codes((await answered(way, { steps: open })).answer)).toEqual([failed]);
  });
});
