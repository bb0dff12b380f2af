/**
 * The relay sends no media upstream that are not paid for. Each medium has a mark of its own, which is looked for in what the upstream was sent: by text
 * alone, and not by the product's walk.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BillingRig, yuan } from '../../../support/billing-rig.ts';
import { delta, done, finish, type Answer, type Step } from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

/** A medium planted into a body: its mark, and the least tokens to reserve for it. */
interface Planted {
  mark: string;
  least: number;
}
type Plant = (fields: (mark: string) => Json, least?: number) => Json;

const windowTokens = 1_050_000;
const picture = 4_784;
const base64 = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('base64');
const pdf = (mark: string): string => base64(`%PDF-1.4 ${mark}`);
const png = (mark: string): string => base64(`\u0089PNG\r\n\u001a\n.${mark}`);
const at = (mark: string): string => `https://media.example/${mark}`;

/** Fields that carry or refer to media, in any object. */
const fields: Record<string, (plant: Plant) => Json> = {
  'an address of a picture': (plant) => plant((mark) => ({ image_url: { url: at(mark) } }), picture),
  'a list of pictures': (plant) => plant((mark) => ({ images: [png(mark)] }), picture),
  'a list of addresses': (plant) => plant((mark) => ({ images: [at(mark)] }), picture),
  'a file': (plant) => plant((mark) => ({ file: { filename: 'a.pdf', file_data: pdf(mark) } })),
  'a file by id': (plant) => plant((mark) => ({ file: { file_id: `file-${mark}` } })),
  'a file by address': (plant) => plant((mark) => ({ fileUrl: at(mark) })),
  'a source': (plant) => plant((mark) => ({ source: { type: 'url', url: at(mark) } })),
  'a source of bytes': (plant) =>
    plant((mark) => ({ source: { type: 'base64', media_type: 'application/pdf', data: pdf(mark) } })),
  'a source of another kind': (plant) => plant((mark) => ({ type: 'x', source: { type: 'y', ref: mark } })),
  'a data URL': (plant) => plant((mark) => ({ x_any: `data:application/pdf;base64,${pdf(mark)}` })),
  'bytes with their type': (plant) =>
    plant((mark) => ({ inline: { mimeType: 'application/pdf', payload: pdf(mark) } })),
  'an address in any field': (plant) => plant((mark) => ({ x_any: [at(mark)] })),
  'a film': (plant) => plant((mark) => ({ video_url: { url: at(mark) } })),
  attachments: (plant) => plant((mark) => ({ attachments: [{ uri: at(mark) }] })),
};
/** The parts that each endpoint documents, and some that it does not. */
const parts: Record<'chat' | 'responses' | 'messages', ((plant: Plant) => Json)[]> = {
  chat: [
    (plant) => plant((mark) => ({ type: 'image_url', image_url: { url: at(mark) } }), picture),
    (plant) =>
      plant(
        (mark) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${png(mark)}` } }),
        picture,
      ),
    (plant) =>
      plant((mark) => ({ type: 'file', file: { file_data: `data:application/pdf;base64,${pdf(mark)}` } })),
    (plant) =>
      plant((mark) => ({ type: 'input_audio', input_audio: { data: pdf(mark), format: 'wav' } }), 20_000),
  ],
  responses: [
    (plant) => plant((mark) => ({ type: 'input_image', image_url: at(mark) }), picture),
    (plant) => plant((mark) => ({ type: 'input_file', file_url: at(mark) })),
    (plant) =>
      plant((mark) => ({
        type: 'input_file',
        filename: 'a.pdf',
        file_data: `data:application/pdf;base64,${pdf(mark)}`,
      })),
  ],
  messages: [
    (plant) => plant((mark) => ({ type: 'image', source: { type: 'url', url: at(mark) } }), picture),
    (plant) =>
      plant(
        (mark) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png(mark) } }),
        picture,
      ),
    (plant) => plant((mark) => ({ type: 'document', source: { type: 'url', url: at(mark) } })),
    (plant) =>
      plant((mark) => ({
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: pdf(mark) },
      })),
    (plant) => plant((mark) => ({ type: 'x_block', source: { type: 'x', ref: mark } })),
    (plant) =>
      plant((mark) => ({
        type: 'mid_conv_system',
        content: [{ type: 'document', source: { type: 'url', url: at(mark) } }],
      })),
    (plant) => ({
      type: 'web_fetch_tool_result',
      tool_use_id: 's',
      content: {
        type: 'web_fetch_result',
        url: 'https://words.example/',
        content: plant((mark) => ({
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: pdf(mark) },
        })),
      },
    }),
    (plant) => ({
      type: 'code_execution_tool_result',
      tool_use_id: 's',
      content: plant((mark) => ({
        type: 'code_execution_result',
        content: [{ type: 'code_execution_output', file_id: mark }],
      })),
    }),
  ],
};

/** A body of an endpoint: `more` are additional fields of an object, `content` additional parts after a text. */
interface Slots {
  more: () => Json;
  content: () => Json[];
}
const words = 'https://words.example/';
const schema = { type: 'object', properties: { url: { type: 'string', default: words } } };
const bodies = {
  chat: ({ more, content }: Slots) => ({
    messages: [
      { role: 'system', content: words },
      { role: 'user', content: [{ type: 'text', text: words, ...more() }, ...content()], ...more() },
      {
        role: 'assistant',
        content: words,
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'f', arguments: `{"url":"${words}"}` }, ...more() },
        ],
        ...more(),
      },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: words }, ...content()] },
      { role: 'user', content: words, ...more() },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    metadata: { url: words },
    ...more(),
  }),
  responses: ({ more, content }: Slots) => ({
    input: [
      { role: 'user', content: [{ type: 'input_text', text: words, ...more() }, ...content()], ...more() },
      { type: 'function_call', call_id: 'a', name: 'f', arguments: `{"url":"${words}"}`, ...more() },
      {
        type: 'function_call_output',
        call_id: 'a',
        output: [{ type: 'input_text', text: words }, ...content()],
      },
      { role: 'assistant', content: [{ type: 'output_text', text: words, annotations: [{ url: words }] }] },
      { role: 'user', content: words },
    ],
    tools: [{ type: 'function', name: 'f', parameters: schema }],
    ...more(),
  }),
  messages: ({ more, content }: Slots) => ({
    max_tokens: 10,
    system: [{ type: 'text', text: words, ...more() }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: words, ...more() }, ...content()], ...more() },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: words, citations: [{ url: words }] },
          ...content(),
          { type: 'tool_use', id: 'a', name: 'f', input: { url: words, data: words }, ...more() },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'a', content: [...content()], ...more() }],
      },
      { role: 'user', content: words },
    ],
    tools: [{ name: 'f', input_schema: schema }],
    ...more(),
  }),
  embeddings: ({ more }: Slots) => ({ input: [words], ...more() }),
};
type Endpoint = keyof typeof bodies;
const paths: Record<Endpoint, string> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  embeddings: '/v1/embeddings',
};

/** @param choices a number for each slot in turn: what stands there, or nothing */
function planted(endpoint: Endpoint, choices: readonly number[]): { body: Json; marks: Planted[] } {
  const marks: Planted[] = [];
  const plant: Plant = (made, least = windowTokens) => {
    const mark = `MARK${String(marks.length).padStart(8, '0')}`;
    marks.push({ mark, least });
    return made(mark);
  };
  let slot = 0;
  const next = (): number => choices[slot++ % choices.length] ?? 0;
  const own = endpoint === 'embeddings' ? [] : parts[endpoint];
  const any = Object.values(fields);
  const body = bodies[endpoint]({
    // Most slots are empty: an object with one medium is where a walk stops too early.
    more: () => {
      const chosen = any[next()];
      if (!chosen) return {};
      const made = chosen(plant);
      return next() % 2 === 0 ? made : { x_deep: [{ x_deeper: { ...made } }] };
    },
    content: () => {
      const chosen = own[next()];
      return chosen ? [chosen(plant)] : [];
    },
  });
  return { body: { model: 'm', ...body }, marks };
}

const count = 900_000;
const counts = {
  chat: 'prompt_tokens',
  messages: 'input_tokens',
  responses: 'input_tokens',
  embeddings: 'prompt_tokens',
};
const frame = (value: Json): Step =>
  `${typeof value['type'] === 'string' ? `event: ${value['type']}\n` : ''}data: ${JSON.stringify(value)}\n\n`;
const answers: Record<Endpoint, Step[]> = {
  chat: [
    frame({ choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] }),
    frame({ choices: [], usage: { [counts.chat]: count, completion_tokens: 3, total_tokens: count + 3 } }),
    'data: [DONE]\n\n',
  ],
  messages: [
    frame({
      type: 'message_start',
      message: { role: 'assistant', usage: { input_tokens: count, output_tokens: 3 } },
    }),
    frame({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    frame({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
    frame({ type: 'content_block_stop', index: 0 }),
    frame({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
    frame({ type: 'message_stop' }),
  ],
  responses: [
    frame({
      type: 'response.output_text.delta',
      output_index: 0,
      content_index: 0,
      item_id: 'a',
      delta: 'Hi',
    }),
    frame({
      type: 'response.completed',
      response: {
        status: 'completed',
        output: [],
        usage: { input_tokens: count, output_tokens: 3, total_tokens: count + 3 },
      },
    }),
  ],
  embeddings: [
    JSON.stringify({
      data: [{ index: 0, embedding: [1, 2] }],
      usage: { prompt_tokens: count, total_tokens: count },
    }),
  ],
};

/** One yuan for 1,000 tokens of input, and free output. */
const price = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 0 };

interface Outcome {
  answer: Answer;
  sent: string | undefined;
  /** In tokens. */
  held: number;
  last: Json | undefined;
}

async function outcome(endpoint: Endpoint, dialect: Endpoint, body: Json): Promise<Outcome> {
  let held = 0;
  const rig: BillingRig = new BillingRig({
    charges: [price],
    channels: [{ ...(dialect !== 'embeddings' && { dialect }), params: { allow: ['file_id'] } }],
    send: async () => {
      held = Number(rig.open[0]?.amount ?? 0n) / 1_000_000;
      return {
        status: 200,
        headers: dialect === 'embeddings' ? { 'content-type': 'application/json' } : {},
        body: (async function* () {
          for (const step of answers[dialect]) yield Buffer.from(String(step));
        })(),
      };
    },
  });
  const answer = await rig.granted(1_000_000n * yuan).call(body, { path: paths[endpoint] });
  return { answer, sent: rig.sent[0]?.body, held, last: rig.item?.last as Json | undefined };
}

const isIn = (text: string, mark: string): boolean => text.includes(mark) || text.includes(base64(mark));

const ways = (['chat', 'responses', 'messages'] as const).flatMap((endpoint) =>
  (['chat', 'responses', 'messages'] as const).map((dialect): [Endpoint, Endpoint] => [endpoint, dialect]),
);

describe.each([...ways, ['embeddings', 'embeddings'] as [Endpoint, Endpoint]])(
  '%s on %s',
  (endpoint, dialect) => {
    const ofSlots = fc.array(
      fc.oneof({ weight: 5, arbitrary: fc.constant(99) }, { weight: 1, arbitrary: fc.nat(14) }),
      { minLength: 31, maxLength: 31 },
    );

    it('reserves for and believes the count of every medium sent upstream, and names dropped ones', async () => {
      await fc.assert(
        fc.asyncProperty(ofSlots, async (choices) => {
          const { body, marks } = planted(endpoint, choices);
          const { answer, sent, held, last } = await outcome(endpoint, dialect, body);
          if (sent === undefined) {
            expect(answer.status).toBe(400);
            return;
          }
          const went = marks.filter(({ mark }) => isIn(sent, mark));
          const least = went.reduce((sum, one) => sum + one.least, 0);
          expect(held).toBeGreaterThanOrEqual(Math.min(windowTokens, least));
          if (went.some((one) => one.least === windowTokens))
            expect(last).toMatchObject({ prompt_tokens: count, estimated: false });
          if (went.length === 0) expect(last?.['prompt_tokens']).not.toBe(count);
          if (went.length < marks.length) expect(answer.headers['x-relay-dropped'] ?? '').not.toBe('');
        }),
        { numRuns: 30 },
      );
    });

    it('reserves nothing for text that mentions URLs', async () => {
      const { held, last, answer } = await outcome(endpoint, dialect, planted(endpoint, [99]).body);
      expect(answer.status).toBe(200);
      expect(held).toBeLessThan(2_000);
      expect(last).toMatchObject({ flag: 'input:high' });
    });
  },
);

it.each(['chat', 'responses'] as const)(
  'believes the count of a Messages file on %s, even if another file at the same path was dropped',
  async (dialect) => {
    const source = { type: 'base64', media_type: 'application/pdf', data: pdf('WENT') };
    const dropped = { type: 'text', text: 'words', file: at('DROPPED') };
    const content = [dropped, { type: 'document', source }];
    const body = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content }] };
    const { answer, sent = '', last } = await outcome('messages', dialect, body);
    expect([isIn(sent, 'WENT'), isIn(sent, 'DROPPED')]).toEqual([true, false]);
    expect(answer.headers['x-relay-dropped']).toContain('messages[].content[].file');
    expect(last).toMatchObject({ prompt_tokens: count, estimated: false });
  },
);

it('charges nothing for a dropped file if the upstream reports no usage', async () => {
  const rig = new BillingRig().granted(10_000n * yuan).upstream({ steps: [delta('a'), finish(), done] });
  const content = [{ type: 'text', text: 'words', file: at('DROPPED') }];
  const body = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content }] };
  const answer = await rig.call(body, { path: '/v1/messages' });
  expect(answer.headers['x-relay-dropped']).toContain('messages[].content[].file');
  expect(rig.item?.last?.prompt_tokens).toBeLessThan(10);
});
