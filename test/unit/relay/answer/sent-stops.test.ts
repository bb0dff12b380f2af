/** Stop sequences at upstreams with a field for them: the request, the charge, and the sequence that an answer names. */
import { describe, expect, it } from 'vitest';
import { asRecord, textIn } from '../../../../shared/wire/json.ts';
import { BillingRig, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import { data, demoKey, done, type Answer, type Step } from '../../../support/core-rig.ts';
import { chunk, toolDelta } from '../../../support/upstream-frames.ts';

type Json = Record<string, unknown>;

const messages = [{ role: 'user', content: 'say it' }];
/** The same call over each endpoint, with the name of its field of stop sequences. */
type Endpoint = [path: string, field: string, body: Json];
const endpoints: Endpoint[] = [
  ['/v1/chat/completions', 'stop', { messages, max_tokens: 2_000 }],
  ['/v1/responses', 'stop', { input: 'say it', max_output_tokens: 2_000 }],
  ['/v1/messages', 'stop_sequences', { messages, max_tokens: 2_000 }],
];
const [toChat, , toMessages] = endpoints as [Endpoint, Endpoint, Endpoint];
const claude = { type: 'anthropic', endpoint: 'https://claude.test/v1' };
const before = 'alpha beta ';
const whole = `${before}HALT ${'gamma delta '.repeat(300)}`;

const chatSteps = (text: string, output: number, ending: object = {}): Step[] => {
  const usage = { prompt_tokens: 12, completion_tokens: output, total_tokens: 12 + output };
  const last = { index: 0, delta: {}, finish_reason: 'stop', ...ending };
  return [data(chunk({ content: text })), data({ choices: [last] }), data({ choices: [], usage }), done];
};
const messagesSteps = (text: string, output: number): Step[] => [
  JSON.stringify({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text }],
    stop_reason: text === whole ? 'end_turn' : 'stop_sequence',
    stop_sequence: text === whole ? null : 'HALT',
    usage: { input_tokens: 12, output_tokens: output },
  }),
];

/** An upstream that accepts or ignores stop sequences and rejects requests that `refuses` matches. */
function served(
  options: BillingOptions = {},
  { ignores = false, refuses }: { ignores?: boolean; refuses?: (asked: Json) => object | undefined } = {},
) {
  const rig = new BillingRig({
    ...options,
    async send({ body, url }) {
      const asked = JSON.parse(body) as Json;
      const error = refuses?.(asked);
      const stops = [asked['stop'] ?? asked['stop_sequences'] ?? []].flat();
      const text = stops.includes('HALT') && !ignores ? before : whole;
      const output = text === whole ? 1_000 : 3;
      const steps = url.endsWith('/messages') ? messagesSteps(text, output) : chatSteps(text, output);
      const said = error ? [JSON.stringify({ error })] : steps;
      return {
        status: error ? 400 : 200,
        headers: {},
        body: (async function* () {
          for (const step of said) yield new TextEncoder().encode(String(step));
        })(),
      };
    },
  });
  return rig.granted(100n * yuan);
}

/** The text that a client of any endpoint sees, and the ending that a Messages client gets. */
function shown(path: string, { text }: Answer): { text: string; ending: unknown } {
  const json = text.startsWith('{') ? asRecord(JSON.parse(text)) : undefined;
  const lines = text.matchAll(/^data: (\{.*)$/gm);
  const events = json ? [json] : [...lines].map(([, line = '']) => asRecord(JSON.parse(line)));
  const said: string[] = [];
  let ending: unknown;
  for (const event of events) {
    for (const choice of (event['choices'] as Json[] | undefined) ?? [])
      said.push(textIn(asRecord(choice['delta'] ?? choice['message'])['content']));
    if (event['type'] === 'response.output_text.delta') said.push(textIn(event['delta']));
    const delta = asRecord(event['delta']);
    if (delta['type'] === 'text_delta') said.push(textIn(delta['text']));
    const { stop_reason: reason, stop_sequence: sequence } = json ?? delta;
    if (path.endsWith('messages') && reason) ending = [reason, sequence];
  }
  const blocks = (json?.['content'] ?? []) as Json[];
  const items = (json?.['output'] ?? []) as Json[];
  const parts = [...blocks, ...items.flatMap((item) => (item['content'] ?? []) as Json[])];
  return { text: said.join('') + parts.map((part) => textIn(part['text'])).join(''), ending };
}

const post = (rig: BillingRig, [path, field, body]: Endpoint, stops: unknown, more: Json = {}) =>
  rig.call(
    { model: 'm', ...body, [field]: stops, ...more },
    { path, headers: { authorization: `Bearer ${demoKey}` } },
  );

describe.each(endpoints)('stop sequences of a client of %s', (...endpoint) => {
  const [path] = endpoint;

  it.each([
    ['chat', {}, 'stop'],
    ['messages', claude, 'stop_sequences'],
  ])(
    'are sent to an upstream of %s, so that nobody pays for text after them',
    async (_dialect, row, field) => {
      for (const stream of [true, false]) {
        const rig = served({ channels: [row] });
        const { text, ending } = shown(path, await post(rig, endpoint, ['HALT'], { stream }));
        expect(text).toBe(before);
        expect(rig.sent[0]?.json).toMatchObject({ [field]: ['HALT'] });
        // 12 of input at 0.001, 3 of output at 0.002 yuan a token.
        expect([rig.item?.last?.completion_tokens, rig.item?.spent]).toEqual([3, 18_000_000n]);
        if (path.endsWith('messages')) expect(ending).toEqual(['stop_sequence', 'HALT']);
      }
    },
  );

  it('are also cut by the relay if the upstream ignores them', async () => {
    const rig = served({}, { ignores: true });
    expect(shown(path, await post(rig, endpoint, ['HALT'], { stream: true })).text).toBe(before);
    expect(rig.item?.last?.completion_tokens).toBe(1_000);
  });

  it('are split if the upstream accepts only four: the relay looks for the others', async () => {
    const stops = ['one', 'two', 'three', 'four', 'five', 'HALT'];
    const rig = served();
    const { text, ending } = shown(path, await post(rig, endpoint, stops));
    expect([text, rig.sent[0]?.json['stop']]).toEqual([before, stops.slice(0, 4)]);
    if (path.endsWith('messages')) expect(ending).toEqual(['stop_sequence', 'HALT']);
  });

  it('are not sent to a model that rejects them', async () => {
    for (const model of ['gpt-6.2-astra', 'o4-mini', 'grok-4.6']) {
      const rig = served({ channels: [{ mapper: { m: model } }] });
      expect(shown(path, await post(rig, endpoint, ['HALT'])).text).toBe(before);
      expect(rig.sent.map(({ json }) => json['stop'])).toEqual([undefined]);
    }
  });

  it.each([
    [
      "Invalid 'stop': array too long. Expected an array with maximum length 3.",
      'stop',
      'array_above_max_length',
    ],
    ["'$.stop' is invalid. Please check the API reference.", null, null],
    ['* GenerateContentRequest.generation_config.stop_sequences: the number must not exceed 5.', null, null],
    ['Unable to submit request because it has a stopSequences value of 10.', null, null],
    ['String should have at most 32 characters', 'stop[0]', null],
  ])(
    'that the upstream rejects are left out of one retry, and the relay learns nothing: %s',
    async (message, param, code) => {
      const refuses = (asked: Json) => ('stop' in asked ? { message, param, code } : undefined);
      const rig = served({}, { refuses });
      const { text, ending } = shown(path, await post(rig, endpoint, ['HALT']));
      expect(text).toBe(before);
      expect(rig.sent.map(({ json }) => 'stop' in json)).toEqual([true, false]);
      expect([rig.learned.written, rig.item?.last?.completion_tokens]).toEqual([[], 1_000]);
      if (path.endsWith('messages')) expect(ending).toEqual(['stop_sequence', 'HALT']);
    },
  );
});

describe('an upstream error that may quote the caller', () => {
  it('is not retried for a call without stop sequences', async () => {
    const rig = served({}, { refuses: () => ({ message: "Invalid 'stop'", param: 'stop' }) });
    await post(rig, toChat, undefined);
    expect(rig.sent).toHaveLength(1);
  });
});

describe('a Messages client of a chat upstream', () => {
  it.each<[string, string[], object, unknown]>([
    ['the sequence that vLLM names', ['NO', 'HALT'], { stop_reason: 'HALT' }, ['stop_sequence', 'HALT']],
    ['the sequence that SGLang names', ['NO', 'HALT'], { matched_stop: 'HALT' }, ['stop_sequence', 'HALT']],
    ['the only one if the answer names none', ['HALT'], {}, ['stop_sequence', 'HALT']],
    ['none of several if the answer names none', ['NO', 'HALT'], {}, ['end_turn', null]],
    ['none if vLLM reports none', ['HALT'], { stop_reason: null }, ['end_turn', null]],
    ['none if the model stopped at a token', ['HALT'], { matched_stop: 151_643 }, ['end_turn', null]],
    ['none that it did not send', ['HALT'], { stop_reason: '</s>' }, ['end_turn', null]],
    ['none if it sent none', [], { stop_reason: 'HALT' }, ['end_turn', null]],
    ['none at a limit', ['HALT'], { finish_reason: 'length' }, ['max_tokens', null]],
    [
      'none with a call',
      ['HALT'],
      { delta: toolDelta(0, { id: 'a', function: { name: 'f', arguments: '{}' } }) },
      ['tool_use', null],
    ],
  ])('gets %s', async (_case, stops, ending, expected) => {
    for (const stream of [true, false]) {
      const rig = new BillingRig().granted(100n * yuan).upstream({ steps: chatSteps('so it is', 3, ending) });
      const tools = [{ name: 'f', input_schema: { type: 'object' } }];
      const answer = await post(rig, toMessages, stops, { stream, tools });
      expect(shown('/v1/messages', answer).ending).toEqual(expected);
    }
  });
});

describe('more stop sequences than the relay can look for', () => {
  const many = Array.from({ length: 17 }, (_, index) => `s${index}`);
  it('are rejected if the upstream does not accept all of them, and sent if it does', async () => {
    const refused = served();
    const { status, text } = await post(refused, toChat, many);
    expect([status, JSON.parse(text).error.param, refused.sent]).toEqual([400, 'stop', []]);
    const taken = served({ channels: [claude] });
    expect((await post(taken, toChat, many)).status).toBe(200);
    expect(taken.sent[0]?.json['stop_sequences']).toEqual(many);
    const long = served();
    await post(long, toChat, ['x'.repeat(300)]);
    expect(long.sent[0]?.json['stop']).toEqual(['x'.repeat(300)]);
  });

  it('stay in the text if the client asks the server to include them', async () => {
    const rig = served({}, { ignores: true });
    const answer = await post(rig, toChat, 'HALT', { include_stop_str_in_output: true });
    expect(shown(toChat[0], answer).text).toBe(whole);
    expect(rig.sent[0]?.json['stop']).toBe('HALT');
  });
});
