/**
 * Behaviours of storage that the public test suites of other Responses servers require (vLLM, OGX, SMG, Open Responses
 * Gateway; the Open Responses compliance suite has no case with storage), rewritten for the running stack. Each object and
 * event is compared with the schema.
 */
import OpenAI from 'openai';
import type {
  Response,
  ResponseCreateParamsNonStreaming,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { deletedResponse, itemPage, storedEvent, storedResponse } from '../support/stored-schemas.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { frames, textStream, textThenSilence, toolCallStream } from '../support/upstream-scripts.ts';
import { models, clientStack, storingKeys } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let client: OpenAI;
let first: Response;

beforeAll(async () => {
  stack = await clientStack();
  client = stack.client({ apiKey: storingKeys.own });
  stack.upstream.script(textStream('Hello, John.'));
  first = await client.responses.create({ model, input: 'My name is John.' });
});
beforeEach(() => {
  stack.upstream.forget();
  stack.upstream.script(textStream('It is sunny.'));
});

type Body = Partial<ResponseCreateParamsNonStreaming>;

const model = models.scripted;
const tools: Body['tools'] = [
  { type: 'function', name: 'get_weather', parameters: { type: 'object' }, strict: false },
];
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const repeated: Body = {
  instructions: 'Be brief.',
  metadata: { topic: 'weather' },
  temperature: 0.5,
  top_p: 0.8,
  max_output_tokens: 100,
  parallel_tool_calls: false,
  prompt_cache_key: 'cache-1',
  safety_identifier: 'person-1',
  truncation: 'disabled',
  tools,
};
const refused = frames(chunk({ role: 'assistant', refusal: 'I cannot.' }), chunk({}, 'stop'), usageChunk());

const answers = [
  { of: 'a text', script: textStream('It is sunny.') },
  { of: 'a tool call', script: toolCallStream('get_weather', { city: 'Rome' }), body: { tools } },
  { of: 'a refusal', script: refused },
  {
    of: 'structured output',
    script: textStream('{"city": "Rome"}'),
    body: { text: { format: { type: 'json_schema' as const, name: 'place', schema } } },
  },
  { of: 'a text cut short', script: textStream('It is', 'length'), status: 'incomplete' },
  { of: 'a request whose fields are repeated', script: textStream('Yes.'), body: repeated },
  { of: 'a second turn', script: textStream('John.'), chained: true },
];
const ways = [{}, { stream: true }, { background: true }, { background: true, stream: true }];

const retrieved = async (id: string, key: string = storingKeys.second): Promise<Response> => {
  const raw = await stack.client({ apiKey: key }).responses.retrieve(id).asResponse();
  return (await raw.json()) as Response;
};
const listed = async (id: string, query = ''): Promise<{ data: { id: string }[] }> => {
  const answer = await fetch(`${stack.baseUrl}/responses/${id}/input_items?${query}`, {
    headers: { authorization: `Bearer ${storingKeys.own}` },
  });
  return itemPage.parse(await answer.json());
};
const isRunning = ({ status }: Response): boolean => status === 'queued' || status === 'in_progress';

async function ended(id: string): Promise<Response> {
  for (;;) {
    const now = await retrieved(id);
    storedResponse.parse(now);
    if (!isRunning(now)) return now;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The final response as its creator received it. */
async function answered(body: ResponseCreateParamsNonStreaming, stream: boolean): Promise<Response> {
  if (!stream) {
    const raw = await client.responses.create(body).asResponse();
    const object = (await raw.json()) as Response;
    storedResponse.parse(object);
    if (body.background !== true) return object;
    expect(object).toMatchObject({ status: 'queued', output: [], usage: null, error: null });
    return ended(object.id);
  }
  const events = await Array.fromAsync<ResponseStreamEvent>(
    await client.responses.create({ ...body, stream: true }),
  );
  for (const event of events) expect(storedEvent.parse(event)).toEqual(event);
  expect(events[0]).toMatchObject({
    type: 'response.created',
    response: { status: body.background === true ? 'queued' : 'in_progress' },
  });
  return (events.at(-1) as { response: Response }).response;
}

describe.each(answers)('$of', ({ script, body = {}, status = 'completed', chained }) => {
  test.each(ways)('is stored as it was answered: %j', async ({ background = false, stream = false }) => {
    stack.upstream.script(script);
    const previous = chained ? first.id : null;
    const asked = { model, input: 'How is it?', ...body, background, previous_response_id: previous };
    const last = await answered(asked, stream);
    expect(storedResponse.parse(last)).toEqual(last);
    expect(last).toMatchObject({ status, background, store: true, previous_response_id: previous });
    expect(last.completed_at).toEqual(status === 'completed' ? expect.any(Number) : null);
    if (body === repeated) {
      const { tools: _tools, ...plain } = repeated;
      expect(last).toMatchObject(plain);
    }
    expect(await retrieved(last.id)).toEqual(last);
    expect((await listed(last.id)).data).toHaveLength(chained ? 3 : 1);
  });
});

describe('the items of a response', () => {
  const said = ['A?', 'Paris.', 'B?', 'Madrid.', 'C?'];
  const input = said.map((content, i) => ({
    role: i % 2 ? ('assistant' as const) : ('user' as const),
    content,
  }));
  const all = said.map((_, i) => i);

  test.each<[query: string, expected: number[], more: boolean]>([
    ['order=asc', all, false],
    ['', all.toReversed(), false],
    ['limit=2', [4, 3], true],
    ['limit=3&order=desc', [4, 3, 2], true],
    ['limit=1&order=asc', [0], true],
    ['limit=10', all.toReversed(), false],
    ['limit=2&order=asc&after=1', [2, 3], true],
    ['limit=2&after=2', [1, 0], false],
  ])('by %j are %j', async (query, expected, more) => {
    const { id } = await client.responses.create({ model, input });
    const ids = (await listed(id, 'order=asc')).data.map((item) => item.id);
    const asked = query.replace(/after=(\d)/, (_, i: string) => `after=${ids[Number(i)]}`);
    const page = await listed(id, asked);
    expect(page.data.map((item) => ids.indexOf(item.id))).toEqual(expected);
    expect(page).toMatchObject({
      first_id: ids[expected[0] ?? -1],
      last_id: ids[expected.at(-1) ?? -1],
      has_more: more,
    });
  });

  test('can be listed while it is queued or runs', async () => {
    stack.upstream.script(textThenSilence('It'));
    const { id } = await client.responses.create({ model, input: 'x', background: true });
    expect((await listed(id)).data).toHaveLength(1);
    await client.responses.cancel(id);
  });

  test('include the results of tools next to their calls', async () => {
    stack.upstream.script(toolCallStream('get_weather', { city: 'Rome' }));
    const { id, output } = await client.responses.create({ model, input: 'Rome?', tools });
    const call = output[0] as { call_id: string };
    stack.upstream.script(textStream('Sunny.'));
    const next = await client.responses.create({
      model,
      tools,
      previous_response_id: id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sun' }],
    });
    const { data } = await listed(next.id, 'order=asc');
    expect(data).toMatchObject([
      { type: 'message', role: 'user' },
      { type: 'function_call', call_id: call.call_id },
      { type: 'function_call_output', call_id: call.call_id, output: 'sun' },
    ]);
  });
});

describe('a stored response', () => {
  test('can be continued twice, and neither turn sees the other', async () => {
    const turns = ['My name is Mark.', 'What is my name?'];
    for (const input of turns)
      await client.responses.create({ model, input, previous_response_id: first.id });
    expect(stack.sentMessages().map((sent) => sent.map(({ content }) => content))).toEqual(
      turns.map((input) => ['My name is John.', 'Hello, John.', input]),
    );
  });

  test('is deleted together with its items, and the answer confirms it', async () => {
    const { id } = await client.responses.create({ model, input: 'x' });
    const raw = await client.responses.delete(id).asResponse();
    expect(deletedResponse.parse(await raw.json())).toEqual({ id, object: 'response', deleted: true });
    await expect(client.responses.inputItems.list(id)).rejects.toMatchObject({ status: 404 });
  });

  test('stays cancelled, with the output so far', async () => {
    stack.upstream.script(textThenSilence('It was'));
    const { id } = await client.responses.create({ model, input: 'x', background: true });
    await stack.upstream.nextRequest();
    const cancelled = (await (await client.responses.cancel(id).asResponse()).json()) as Response;
    expect(storedResponse.parse(cancelled)).toMatchObject({ status: 'cancelled', background: true });
    expect(await (await client.responses.cancel(id).asResponse()).json()).toEqual(cancelled);
    expect(await retrieved(id)).toEqual(cancelled);
  });

  test('can be streamed again by the SDK’s helper, which needs the whole stream', async () => {
    const events = await Array.fromAsync<ResponseStreamEvent>(
      await client.responses.create({ model, input: 'x', background: true, stream: true }),
    );
    const { id } = (events[0] as { response: Response }).response;
    const stream = client.responses.stream({ response_id: id, starting_after: 3 });
    const seen: number[] = [];
    stream.on('event', ({ sequence_number: number }) => seen.push(number));
    expect((await stream.finalResponse()).output_text).toBe('It is sunny.');
    expect(seen).toEqual(events.map((_, i) => i).slice(4));
  });
});
