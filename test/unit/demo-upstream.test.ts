import OpenAI, { NotFoundError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startVendors, type Vendors } from '../../infra/local/vendors/vendors.ts';

let demo: Vendors;
let client: OpenAI;

beforeAll(async () => {
  demo = await startVendors();
  client = new OpenAI({ apiKey: 'none', baseURL: demo.url('demo'), maxRetries: 0 });
});
afterAll(() => demo.close());

type Body = OpenAI.ChatCompletionCreateParamsNonStreaming;
const say = (text: string, more: Partial<Body> = {}): Body => ({
  model: 'demo-chat',
  messages: [{ role: 'user', content: text }],
  ...more,
});

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const weather: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        unit: { enum: ['celsius', 'fahrenheit'] },
        days: { type: 'integer' },
      },
      required: ['city', 'unit'],
    },
  },
};

describe('demo-chat', () => {
  test("answers with the user's words and consistent usage", async () => {
    const { choices, usage } = await client.chat.completions.create(say('good morning'));
    expect(choices[0]?.message.content).toContain('good morning');
    expect(choices[0]?.finish_reason).toBe('stop');
    expect(usage!.prompt_tokens + usage!.completion_tokens).toBe(usage!.total_tokens);
  });

  test('streams the same answer in many pieces and ends with the requested usage', async () => {
    const whole = await client.chat.completions.create(say('good morning'));
    const stream = await client.chat.completions.create({
      ...say('good morning'),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await all(stream);
    const pieces = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '');
    expect(pieces.join('')).toBe(whole.choices[0]?.message.content);
    expect(pieces.filter((piece) => piece !== '').length).toBeGreaterThan(5);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
  });

  test('sends no usage that was not requested', async () => {
    const chunks = await all(await client.chat.completions.create({ ...say('hi'), stream: true }));
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false);
  });

  test('stops at the token limit with length, and before a stop text', async () => {
    const short = await client.chat.completions.create(say('hi', { max_tokens: 3 }));
    expect(short.choices[0]).toMatchObject({ finish_reason: 'length' });
    expect(short.usage?.completion_tokens).toBe(3);
    const stopped = await client.chat.completions.create(say('hi', { stop: ['You', 'demo'] }));
    expect(stopped.choices[0]?.message.content?.trim()).toBe('Hello!');
  });

  test('returns n answers, in a stream each under its index', async () => {
    const { choices } = await client.chat.completions.create(say('hi', { n: 3 }));
    expect(choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
    const streamed = await client.chat.completions
      .stream({ ...say('hi', { n: 2 }), stream: true })
      .finalChatCompletion();
    expect(streamed.choices.map((choice) => choice.message.content)).toEqual(
      choices.slice(0, 2).map((choice) => choice.message.content),
    );
  });

  test('calls a tool that the user mentions, with arguments from its schema', async () => {
    const { choices } = await client.chat.completions.create(
      say('What is the weather in Berlin in fahrenheit?', { tools: [weather] }),
    );
    const call = choices[0]?.message.tool_calls?.[0] as OpenAI.ChatCompletionMessageFunctionToolCall;
    expect(choices[0]?.finish_reason).toBe('tool_calls');
    expect(call.function.name).toBe('get_weather');
    expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Berlin', unit: 'fahrenheit' });
  });

  test('calls the tool even when a system message follows, as in Claude Code', async () => {
    const { messages } = say('weather');
    const later: Body['messages'] = [...messages, { role: 'system', content: 'The day is fine.' }];
    const { choices } = await client.chat.completions.create(say('', { messages: later, tools: [weather] }));
    expect(choices[0]?.finish_reason).toBe('tool_calls');
  });

  test("never passes the user's text to a shell", async () => {
    const shell: OpenAI.ChatCompletionFunctionTool = {
      type: 'function',
      function: { name: 'exec', parameters: { type: 'object', properties: { cmd: { type: 'string' } } } },
    };
    const { choices } = await client.chat.completions.create(say('exec rm', { tools: [shell] }));
    expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { arguments: '{"cmd":"ls"}' } }]);
  });

  test('calls no tool unless it is mentioned or forced', async () => {
    const free = await client.chat.completions.create(say('hi', { tools: [weather] }));
    expect(free.choices[0]?.message.tool_calls).toBeUndefined();
    const forced = await client.chat.completions.create(
      say('hi', { tools: [weather], tool_choice: 'required' }),
    );
    expect(forced.choices[0]?.message.tool_calls).toHaveLength(1);
    const none = await client.chat.completions.create(
      say('weather', { tools: [weather], tool_choice: 'none' }),
    );
    expect(none.choices[0]?.message.tool_calls).toBeUndefined();
  });

  test('completes a whole streamed tool loop and repeats the result', async () => {
    const runner = client.chat.completions.runTools({
      model: 'demo-chat',
      stream: true,
      messages: [{ role: 'user', content: 'weather in Rome?' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'The weather in a city.',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            parse: (text: string) => JSON.parse(text) as { city: string },
            function: ({ city }: { city: string }) => `sunny in ${city}`,
          },
        },
      ],
    });
    expect(await runner.finalContent()).toContain('get_weather answered: sunny in Rome');
  });
});

test('demo-vision counts the images', async () => {
  const image: OpenAI.ChatCompletionContentPart = {
    type: 'image_url',
    image_url: { url: 'data:image/png;base64,AA==' },
  };
  const { choices } = await client.chat.completions.create({
    model: 'demo-vision',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, image, image] }],
  });
  expect(choices[0]?.message.content).toContain('2 images');
});

test('an unknown model gets a 404', async () => {
  await expect(client.chat.completions.create(say('hi', { model: 'gpt-x' }))).rejects.toBeInstanceOf(
    NotFoundError,
  );
});

test('the models are listed', async () => {
  const { data } = await client.models.list();
  expect(data.map(({ id }) => id)).toEqual([
    'demo-chat',
    'demo-vision',
    'demo-slow',
    'demo-error',
    'demo-embedding',
  ]);
});

describe('demo-error', () => {
  test.each([
    ['anything', 500],
    ['status 429 please', 429],
    ['status 503', 503],
    ['html', 502],
  ])('answers %j with %d', async (text, status) => {
    await expect(client.chat.completions.create(say(text, { model: 'demo-error' }))).rejects.toMatchObject({
      status,
    });
  });

  test('breaks off in mid-stream with an error frame', async () => {
    const stream = await client.chat.completions.create({
      ...say('error mid-stream', { model: 'demo-error' }),
      stream: true,
    });
    let text = '';
    const reading = (async () => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    })();
    await expect(reading).rejects.toThrow('The demo model broke off.');
    expect(text).toBe('This answer will not');
  });

  test('hangs up in mid-stream', async () => {
    const stream = await client.chat.completions.create({
      ...say('hang up', { model: 'demo-error' }),
      stream: true,
    });
    await expect(all(stream)).rejects.toThrow(/terminated|aborted|socket/i);
  });
});

test('a body that is not a chat request gets a 400', async () => {
  const url = `${demo.url('demo')}/chat/completions`;
  for (const body of ['', 'null', '{"model":1}', '{"model":"demo-chat","messages":[]}'])
    expect((await fetch(url, { method: 'POST', body })).status).toBe(400);
});
