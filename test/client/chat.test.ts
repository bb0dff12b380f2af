import OpenAI, { APIUserAbortError } from 'openai';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chunk, usage, usageChunk } from '../support/upstream-frames.ts';
import { silence, textStream, toolCallStream, toolLoop } from '../support/upstream-scripts.ts';
import { models, shownId, clientStack } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let client: OpenAI;

beforeAll(async () => {
  stack = await clientStack();
  client = stack.client();
});
beforeEach(() => stack.upstream.forget());

const hello = { model: models.scripted, messages: [{ role: 'user' as const, content: 'Hello' }] };

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const part of stream) chunks.push(part);
  return chunks;
}

const weather: OpenAI.ChatCompletionFunctionTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

describe('chat.completions.create', () => {
  test('returns a complete answer under the public model name, with the usage of the upstream', async () => {
    stack.upstream.script(textStream('Good morning.'));
    const answer = await client.chat.completions.create(hello);
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: models.scripted,
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Good morning.' }, finish_reason: 'stop' },
      ],
      usage,
    });
    expect(answer.id).toBe(`chatcmpl-${answer._request_id}`);
    expect((await stack.upstream.nextRequest()).body['model']).toBe('upstream-model');
  });

  test('streams the same answer in chunks of one id', async () => {
    stack.upstream.script(textStream('Good morning.'));
    const chunks = await all(await client.chat.completions.create({ ...hello, stream: true }));
    expect(chunks.map((part) => part.choices[0]?.delta.content ?? '').join('')).toBe('Good morning.');
    expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant');
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'stop' }], usage });
  });

  test('sends usage in a separate chunk on request', async () => {
    stack.upstream.script(textStream('Good morning.'));
    const body = { ...hello, stream: true as const, stream_options: { include_usage: true } };
    const chunks = await all(await client.chat.completions.create(body));
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.slice(0, -1).every((part) => part.usage === null)).toBe(true);
  });

  test('passes images and fields of servers of open models to the upstream untouched', async () => {
    stack.upstream.script(textStream('A cat.'));
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this? \u{1F408}' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
          { type: 'image_url', image_url: { url: 'https://images.example/cat.png' } },
        ],
      },
    ];
    const listed = { chat_template_kwargs: { enable_thinking: false }, min_p: 0.1, seed: 7 };
    const odd = { some_vendor_field: { deep: [1, null, 'x'] } };
    await client.chat.completions.create({ ...hello, ...listed, ...odd, messages });
    expect(stack.upstream.requests[0]?.body).toMatchObject({ ...listed, messages });
    expect(stack.upstream.requests[0]?.body).not.toHaveProperty('some_vendor_field');
  });

  test('returns tool calls in the format of the client library', async () => {
    stack.upstream.script(toolCallStream('get_weather', { city: 'Rome' }));
    const { choices } = await client.chat.completions.create({ ...hello, tools: [weather] });
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: null,
        tool_calls: [
          {
            id: expect.stringMatching(shownId('call_1')) as unknown,
            type: 'function',
            function: { name: 'get_weather', arguments: '{"city":"Rome"}' },
          },
        ],
      },
    });
  });
});

describe('the helpers of the client library', () => {
  test('chat.completions.stream() collects text and usage', async () => {
    stack.upstream.script(textStream('Good morning to you.'));
    const stream = client.chat.completions.stream({ ...hello, stream: true });
    const deltas: string[] = [];
    stream.on('content', (delta) => deltas.push(delta));
    const answer = await stream.finalChatCompletion();
    expect(answer.choices[0]?.message.content).toBe('Good morning to you.');
    expect(deltas.length).toBeGreaterThan(1);
    expect(await stream.totalUsage()).toMatchObject(usage);
  });

  test('chat.completions.stream() collects tool calls', async () => {
    stack.upstream.script(toolCallStream('get_weather', { city: 'Rome' }));
    const stream = client.chat.completions.stream({ ...hello, stream: true, tools: [weather] });
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { arguments: '{"city":"Rome"}' } });
  });

  test.each([false, true])('runTools() completes the whole loop (stream: %s)', async (stream) => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const asked: string[] = [];
    const tool = {
      type: 'function' as const,
      function: {
        name: 'get_weather',
        description: 'The weather in a city.',
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
        parse: (text: string) => JSON.parse(text) as { city: string },
        function: ({ city }: { city: string }) => {
          asked.push(city);
          return 'sunny';
        },
      },
    };
    const runner = stream
      ? client.chat.completions.runTools({ ...hello, stream: true, tools: [tool] })
      : client.chat.completions.runTools({ ...hello, tools: [tool] });
    expect(await runner.finalContent()).toBe('The tool said sunny');
    expect(asked).toEqual(['Rome']);
  });
});

describe('aborting', () => {
  test('in mid-stream: the relay keeps reading up to the usage and serves the next call', async () => {
    const gate = Promise.withResolvers<void>();
    stack.upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'first' }));
      await gate.promise;
      await reply.data(...Array.from({ length: 50 }, () => chunk({ content: ' more' })));
      await reply.data(chunk({}, 'stop'), usageChunk(), '[DONE]');
      reply.end();
    });
    const stream = await client.chat.completions.create({ ...hello, stream: true });
    for await (const part of stream) if (part.choices[0]?.delta.content) stream.controller.abort();
    gate.resolve();
    expect(await stack.upstream.requests[0]?.closed).toBe('finished');

    stack.upstream.script(textStream('Still here.'));
    const next = await client.chat.completions.create(hello);
    expect(next.choices[0]?.message.content).toBe('Still here.');
  });

  test('before the first word: the client gets the error at once', async () => {
    stack.upstream.script(silence);
    const abort = new AbortController();
    const call = client.chat.completions.create(hello, { signal: abort.signal });
    await stack.upstream.nextRequest();
    abort.abort();
    await expect(call).rejects.toBeInstanceOf(APIUserAbortError);
  });
});

describe('models', () => {
  test('are listed by channel priority', async () => {
    const { data } = await client.models.list();
    expect(data.slice(0, 2).map(({ id }) => id)).toEqual([models.scripted, models.slashed]);
    expect(data[0]).toMatchObject({
      object: 'model',
      owned_by: 'system',
      created: expect.any(Number) as number,
    });
  });

  test('can be retrieved one by one, also with a slash in the name', async () => {
    expect((await client.models.retrieve(models.slashed)).id).toBe(models.slashed);
  });
});
