/** Stored responses by the official client, on the running stack. */
import OpenAI, { APIError } from 'openai';
import type { ResponseItem } from 'openai/resources/responses/responses';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { textStream, toolLoop } from '../support/upstream-scripts.ts';
import { models, clientStack, storingKeys } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
/** Clients with a key that may store, another key of its account, and a key of another account. */
let client: OpenAI;
let second: OpenAI;
let stranger: OpenAI;

beforeAll(async () => {
  stack = await clientStack();
  [client, second, stranger] = [storingKeys.own, storingKeys.second, storingKeys.other].map((apiKey) =>
    stack.client({ apiKey }),
  ) as [OpenAI, OpenAI, OpenAI];
});
beforeEach(() => {
  stack.upstream.forget();
  stack.upstream.script(textStream('It is sunny.'));
});

const model = models.scripted;
const ask = (input: OpenAI.Responses.ResponseCreateParamsNonStreaming['input'], previous?: string) =>
  client.responses.create({ model, input, previous_response_id: previous ?? null });
const listed = async (id: string, query = {}): Promise<ResponseItem[]> =>
  Array.fromAsync(client.responses.inputItems.list(id, query));
const textsOf = (items: ResponseItem[]): unknown[] =>
  items.map((item) => (item as { content?: { text?: string }[] }).content?.[0]?.text);

describe('a stored response', () => {
  test('can be retrieved unchanged, with every key of its account', async () => {
    const { output_text: _text, ...created } = await ask('How is it?');
    expect(created).toMatchObject({ store: true, status: 'completed' });
    for (const reader of [client, second]) {
      const { output_text: text, ...retrieved } = await reader.responses.retrieve(created.id);
      expect(retrieved).toEqual(created);
      expect(text).toBe('It is sunny.');
    }
  });

  test('can be retrieved as soon as the last event of its stream arrives', async () => {
    for (let i = 0; i < 3; i += 1) {
      const stream = await client.responses.create({ model, input: 'x', stream: true });
      let found: unknown[] = [];
      for await (const event of stream)
        if (event.type === 'response.completed')
          found = [event.response.output, (await second.responses.retrieve(event.response.id)).output];
      expect(found).toHaveLength(2);
      expect(found[1]).toEqual(found[0]);
    }
  });

  test('lists its input items, page by page', async () => {
    const first = await ask('one');
    const third = await ask('two', first.id);
    expect(textsOf(await listed(third.id, { order: 'asc', limit: 1 }))).toEqual([
      'one',
      'It is sunny.',
      'two',
    ]);
    expect(textsOf(await listed(third.id, { limit: 2 }))).toEqual(['two', 'It is sunny.', 'one']);
  });

  test('is gone once it is deleted, and so are conversations that contain it', async () => {
    const first = await ask('one');
    const after = await ask('two', first.id);
    await client.responses.delete(first.id);
    const gone = await Promise.allSettled<unknown>([
      client.responses.retrieve(first.id),
      client.responses.inputItems.list(first.id),
      client.responses.delete(first.id),
      ask('three', first.id),
      ask('three', after.id),
      ask([{ type: 'item_reference', id: first.output[0]?.id ?? '' }]),
    ]);
    const missing = { status: 404, code: 'response_not_found' };
    const resend = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' };
    const reasons = [missing, missing, missing, resend, resend, missing];
    expect(gone).toMatchObject(reasons.map((reason) => ({ status: 'rejected', reason })));
  });

  const notFound = { status: 404, code: 'response_not_found' };
  const resend = { status: 400, code: 'previous_response_not_found' };

  test.each<[string, (reader: OpenAI, id: string) => Promise<unknown>, object?]>([
    ['retrieve', (reader, id) => reader.responses.retrieve(id)],
    ['list the items of', (reader, id) => reader.responses.inputItems.list(id)],
    ['delete', (reader, id) => reader.responses.delete(id)],
    ['cancel', (reader, id) => reader.responses.cancel(id)],
    [
      'continue',
      (reader, id) => reader.responses.create({ model, input: 'x', previous_response_id: id }),
      resend,
    ],
  ])('no stranger can %s', async (_case, act, answer = notFound) => {
    const { id } = await ask('secret');
    const unknown = `${id.slice(0, -4)}0000`;
    for (const [reader, asked] of [
      [stranger, id],
      [client, unknown],
    ] as const) {
      const refused = await act(reader, asked).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(APIError);
      expect(refused).toMatchObject(answer);
    }
    expect(stack.upstream.requests).toHaveLength(1);
  });
});

describe('a conversation by previous_response_id', () => {
  test('has 8 turns with tools: each request sends one, and the upstream gets all', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const tools = [
      { type: 'function' as const, name: 'get_weather', parameters: { type: 'object' }, strict: false },
    ];
    let previous: string | null = null;
    let input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Rome?' }];
    for (let turn = 0; turn < 8; turn += 1) {
      const response: OpenAI.Responses.Response = await client.responses.create({
        model,
        input,
        tools,
        previous_response_id: previous,
      });
      previous = response.id;
      const [item] = response.output;
      input =
        item?.type === 'function_call'
          ? [{ type: 'function_call_output', call_id: item.call_id, output: `sunny ${turn}` }]
          : [{ role: 'user', content: `And then ${turn}?` }];
    }
    const roles = stack
      .sentMessages()
      .at(-1)
      ?.map(({ role }) => role);
    // Question, call, result, answer, and so on.
    expect(roles).toEqual(
      Array.from({ length: 4 }, () => ['user', 'assistant', 'tool', 'assistant'])
        .flat()
        .slice(0, -1),
    );
  });

  test('is rejected by name for a key that may not store', async () => {
    const { id } = await ask('one');
    const plain = stack.client();
    await expect(
      plain.responses.create({ model, input: 'x', previous_response_id: id }),
    ).rejects.toMatchObject({ status: 400, param: 'previous_response_id' });
    await expect(plain.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
    expect(await plain.responses.create({ model, input: 'x' })).toMatchObject({ store: false });
  });
});
