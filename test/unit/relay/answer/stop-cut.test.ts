/** Stop sequences at upstreams without a field for them. */
import { describe, expect, it } from 'vitest';
import { asRecord } from '../../../../shared/wire/json.ts';
import { CoreRig, data, frames, type Step } from '../../../support/core-rig.ts';

const counts = { input_tokens: 7, output_tokens: 40, total_tokens: 47 };
const charge = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };
const call = {
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'look',
  arguments: '{"at":"END"}',
};
const message = (text: string): object => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }],
});

/** The stream of a Responses upstream for pieces of text and later items. */
const streamed = (pieces: readonly string[], ...items: object[]): Step[] => [
  ...pieces.map((piece) =>
    data({
      type: 'response.output_text.delta',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: piece,
    }),
  ),
  ...items.map((item, index) => data({ type: 'response.output_item.done', output_index: index + 1, item })),
  data({
    type: 'response.completed',
    response: { status: 'completed', output: [message(pieces.join('')), ...items], usage: counts },
  }),
];
const whole = (text: string, ...items: object[]): Step[] => [
  JSON.stringify({
    object: 'response',
    status: 'completed',
    output: [message(text), ...items],
    usage: counts,
  }),
];

interface Shown {
  text: string;
  calls: number;
  finish: unknown;
  usage: unknown;
}

async function shown(stop: string | string[], steps: Step[], more: object = {}): Promise<Shown> {
  const rig = new CoreRig({ channels: [{ dialect: 'responses' }], charges: [charge] }).upstream({ steps });
  rig.quotas.grant('acme', 1_000_000_000_000n);
  const messages = [{ role: 'user', content: 'hi' }];
  const tools = [{ type: 'function', function: { name: 'look', parameters: {} } }];
  const asked = {
    model: 'm',
    messages,
    tools,
    stop,
    stream: true,
    stream_options: { include_usage: true },
    ...more,
  };
  const { status, text } = await rig.post(asked);
  expect([status, rig.faults]).toEqual([200, []]);
  expect(JSON.stringify(rig.sent[0]?.json)).not.toContain('"stop"');
  const { completion_tokens: billed } = rig.logged.at(-1) ?? {};
  const chunks = text.startsWith('data') ? frames(text).map(asRecord) : [asRecord(JSON.parse(text))];
  const choices = chunks.flatMap(
    (chunk) => (chunk['choices'] as Record<string, unknown>[] | undefined) ?? [],
  );
  const said = choices.map((choice) => asRecord(choice['delta'] ?? choice['message']));
  return {
    text: said.map(({ content }) => (typeof content === 'string' ? content : '')).join(''),
    calls: said.filter(({ tool_calls: calls }) => Array.isArray(calls)).length,
    finish: choices.findLast((choice) => choice['finish_reason'] !== null)?.['finish_reason'],
    usage: billed,
  };
}

const cases: [string, string | string[], string, string][] = [
  ['in the middle', 'END', 'One END two', 'One '],
  ['the first complete one of several', ['two', 'ne two', 'END'], 'One two END', 'O'],
  ['at the very beginning', 'One', 'One END two', ''],
  ['after a partial match', 'aab', 'aaaab and so on', 'aa'],
  ['that overlaps its own beginning', 'abab!', 'xabababab!y', 'xabab'],
  ['together with empty ones', ['', 'END'], 'One END', 'One '],
  ['of a line feed', '\n', 'first\nsecond', 'first'],
  ['of other scripts', '结束', '一二🙂结束三', '一二🙂'],
];

describe('a stop sequence that the upstream has no field for', () => {
  it.each(cases)(
    'ends the text, however it is split, and everything is charged: %s',
    async (_case, stop, text, expected) => {
      const ended = { text: expected, calls: 0, finish: 'stop', usage: 40 };
      expect(await shown(stop, whole(text, call), { stream: false })).toEqual(ended);
      for (let at = 1; at < text.length; at += 1) {
        const pieces = [text.slice(0, at), text.slice(at)];
        expect(await shown(stop, streamed(pieces, call))).toEqual(ended);
      }
      expect(await shown(stop, streamed(Array.from(text)))).toEqual(ended);
    },
  );

  it.each([[['One EN']], [['One', ' E', 'N']]])(
    'does not change an answer that only begins to match it at the end: %j',
    async (pieces) => {
      const ended = { text: 'One EN', calls: 0, finish: 'stop', usage: 40 };
      expect(await shown('END', streamed(pieces))).toEqual(ended);
      expect(await shown('END', whole('One EN'), { stream: false })).toEqual(ended);
      // A tool call ends the text, so no text is held back, and arguments are not searched.
      expect(await shown('END', streamed(pieces, call))).toMatchObject({
        text: 'One EN',
        finish: 'tool_calls',
      });
    },
  );

  it('ends the text of a Responses client and leaves out stored state', async () => {
    const reasoning = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'opaque' };
    const rig = new CoreRig({ channels: [{ dialect: 'responses' }] });
    rig.upstream({ steps: whole('One END two', reasoning) });
    const asked = { model: 'm', input: 'hi', stop: ['END'], include: ['reasoning.encrypted_content'] };
    const { text } = await rig.post(asked, { path: '/v1/responses' });
    expect(JSON.parse(text)).toMatchObject({
      status: 'completed',
      output: expect.arrayContaining([expect.objectContaining({ type: 'message' })]) as unknown,
    });
    expect(text).toContain('"text":"One "');
    expect(text).not.toContain('two');
    expect(text).not.toContain('encrypted_content":"');
  });
});
