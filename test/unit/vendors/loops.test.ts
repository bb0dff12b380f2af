import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startVendors, type Vendors } from '../../../infra/local/vendors/vendors.ts';
import { requestSigner } from '../../../shared/adapters/aws/aws-calls.ts';
import type { Json } from './rig.ts';
import { chatTool, messagesTool, responsesTool } from './examples.ts';

let vendors: Vendors;
beforeAll(async () => {
  vendors = await startVendors();
});
afterAll(() => vendors.close());

const fiveTurns = 'What about the weather? turns=5';
const three = 'What about the weather in three places, in parallel?';
const sdk = (vendor: string) =>
  new OpenAI({ apiKey: 'sk-test', baseURL: vendors.url(vendor), maxRetries: 0 });

/** One turn, streamed or not, as the SDK reads it. */
async function chatTurn(
  client: OpenAI,
  body: OpenAI.ChatCompletionCreateParamsNonStreaming,
  streams: boolean,
) {
  if (!streams) return (await client.chat.completions.create(body)).choices[0]!;
  const runner = client.chat.completions.stream({
    ...body,
    stream_options: { include_usage: true },
  } as never);
  return (await runner.finalChatCompletion()).choices[0]!;
}

type ChatMessage = OpenAI.ChatCompletionMessageParam;

async function chatLoop(
  vendor: string,
  model: string,
  { said, streams }: { said: string; streams: boolean },
) {
  const client = sdk(vendor);
  const messages: ChatMessage[] = [{ role: 'user', content: said }];
  const ids: string[] = [];
  for (let turn = 0; turn < 9; turn += 1) {
    const body = {
      model,
      messages,
      tools: [chatTool],
      ...(model === 'gpt-5.6' && { reasoning_effort: 'none' }),
    };
    const choice = await chatTurn(client, body as never, streams);
    const calls = choice.message.tool_calls ?? [];
    if (calls.length === 0) return { turns: turn, ids, text: choice.message.content ?? '' };
    expect(choice.finish_reason).toBe('tool_calls');
    ids.push(...calls.map(({ id }) => id));
    const { content, tool_calls, ...state } = choice.message as unknown as Record<string, unknown>;
    const echoed = vendor === 'picky' ? {} : { reasoning_content: state['reasoning_content'] };
    messages.push(
      { role: 'assistant', content: content ?? '', tool_calls, ...echoed } as ChatMessage,
      ...calls.map(({ id }, index): ChatMessage => ({
        role: 'tool',
        tool_call_id: id,
        content: `sunny ${index}`,
      })),
    );
  }
  throw new Error('the loop did not end');
}

const chatModels = [
  ['openai', 'gpt-5.6'],
  ['gemini', 'gemini-3-pro-preview'],
  ['gemini', 'gemini-2.5-flash'],
  ['deepseek', 'deepseek-v4-pro'],
  ['deepseek', 'kimi-k2.6'],
  ['picky', 'picky'],
  ['picky', 'picky-think'],
] as const;

describe.each(chatModels)('chat completions of %s, %s', (vendor, model) => {
  // The SDK's own accumulator does not keep what DeepSeek sends beside the standard fields.
  const modes = vendor === 'deepseek' || model.startsWith('gemini-3') ? [false] : [false, true];

  test.each(modes)('run a loop of five turns (streams: %s)', async (streams) => {
    const { turns, text } = await chatLoop(vendor, model, { said: fiveTurns, streams });
    expect(turns).toBe(5);
    expect(text).toContain('The tools answered: get_weather: sunny 0');
  });

  test.each(modes)('call three tools in one turn (streams: %s)', async (streams) => {
    const { turns, ids, text } = await chatLoop(vendor, model, { said: three, streams });
    expect({ turns, unique: new Set(ids).size }).toEqual({ turns: 1, unique: 3 });
    expect(text).toContain('sunny 0; get_weather: sunny 1; get_weather: sunny 2');
  });
});

describe('Responses', () => {
  async function loop({ said, streams }: { said: string; streams: boolean }) {
    const client = sdk('openai');
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: said }];
    for (let turn = 0; turn < 9; turn += 1) {
      const body = {
        model: 'gpt-5.6',
        input,
        tools: [responsesTool],
        store: false,
        include: ['reasoning.encrypted_content'],
        reasoning: { summary: 'auto' },
      } as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
      const response = streams
        ? await client.responses.stream(body as never).finalResponse()
        : await client.responses.create(body);
      const output = response.output as unknown as Json[];
      const calls = output.filter(({ type }) => type === 'function_call');
      if (calls.length === 0) return { turns: turn, text: response.output_text, response };
      expect(output[0]).toMatchObject({ type: 'reasoning', encrypted_content: expect.any(String) });
      const returned: Json[] = [
        ...output.map(({ parsed_arguments: _parsed, ...item }) => item),
        ...calls.map(({ call_id: id }, index) => ({
          type: 'function_call_output',
          call_id: id,
          output: `sunny ${index}`,
        })),
      ];
      input.push(...(returned as unknown as typeof input));
    }
    throw new Error('the loop did not end');
  }

  test.each([false, true])('run a loop of five turns (streams: %s)', async (streams) => {
    const { turns, text, response } = await loop({ said: fiveTurns, streams });
    expect(turns).toBe(5);
    expect(text).toContain('The tools answered: get_weather: sunny 0');
    expect(response.usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
    expect(response.output.at(-1)).toMatchObject({ type: 'message', phase: 'final_answer' });
  });

  test.each([false, true])('call three tools in one turn (streams: %s)', async (streams) => {
    const { turns, text } = await loop({ said: three, streams });
    expect(turns).toBe(1);
    expect(text).toContain('sunny 0; get_weather: sunny 1; get_weather: sunny 2');
  });

  test('leave no note, since all reasoning came back', () => {
    expect(vendors.requests('openai').flatMap(({ notes }) => notes)).toEqual([]);
  });
});

describe('Messages', () => {
  async function loop({
    model,
    said,
    streams,
    thinking,
  }: {
    model: string;
    said: string;
    streams: boolean;
    thinking?: object;
  }) {
    const client = new Anthropic({
      apiKey: 'sk-test',
      baseURL: vendors.url('anthropic').replace(/\/v1$/, ''),
      maxRetries: 0,
    });
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: said }];
    for (let turn = 0; turn < 9; turn += 1) {
      const body = {
        model,
        max_tokens: 4000,
        messages,
        tools: [messagesTool],
        ...(thinking && { thinking }),
      };
      const answer = streams
        ? await client.messages.stream(body as never).finalMessage()
        : await client.messages.create(body as Anthropic.MessageCreateParamsNonStreaming);
      const calls = answer.content.filter((block) => block.type === 'tool_use');
      if (calls.length === 0) return { turns: turn, answer };
      expect(answer.stop_reason).toBe('tool_use');
      messages.push(
        { role: 'assistant', content: answer.content.map(asParam) },
        {
          role: 'user',
          content: calls.map(({ id }, index) => ({
            type: 'tool_result',
            tool_use_id: id,
            content: `sunny ${index}`,
          })),
        },
      );
    }
    throw new Error('the loop did not end');
  }

  /** The block without what only answers have. */
  function asParam(block: Anthropic.ContentBlock): Anthropic.ContentBlockParam {
    if (block.type === 'text') return { type: 'text', text: block.text };
    if (block.type !== 'tool_use') return block;
    return { type: 'tool_use', id: block.id, name: block.name, input: block.input };
  }

  const shown = { type: 'adaptive', display: 'summarized' };
  const cases = [false, true].flatMap((streams) => [
    { streams, model: 'claude-opus-5-5' },
    { streams, model: 'claude-opus-5-5', thinking: shown },
    { streams, model: 'claude-haiku-4-5' },
    { streams, model: 'claude-haiku-4-5', thinking: { type: 'enabled', budget_tokens: 1024 } },
  ]);

  test.each(cases)('of $model run a loop of five turns (streams: $streams, $thinking)', async (options) => {
    const { turns, answer } = await loop({ ...options, said: fiveTurns });
    expect(turns).toBe(5);
    expect(answer.content.at(-1)).toMatchObject({ type: 'text', text: expect.stringContaining('sunny 0') });
    expect(answer.content[0]?.type === 'thinking').toBe(
      options.model.includes('opus') || 'thinking' in options,
    );
  });

  test.each(cases)(
    'of $model call three tools in one turn (streams: $streams, $thinking)',
    async (options) => {
      const { turns, answer } = await loop({ ...options, said: `${three} interleave` });
      expect(turns).toBe(1);
      expect(answer.content.at(-1)).toMatchObject({ text: expect.stringContaining('sunny 2') });
    },
  );

  test('leave no note, since all thinking came back', () => {
    expect(vendors.requests('anthropic').flatMap(({ notes }) => notes)).toEqual([]);
  });
});

test.each(['hang up', 'silence'])('a stream ends at the words %s without its end', async (words) => {
  const stop = new AbortController();
  const answer = await fetch(`${vendors.url('openai')}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'gpt-4.1',
      stream: true,
      messages: [{ role: 'user', content: `please ${words}` }],
    }),
    signal: stop.signal,
  });
  const reader = answer.body!.getReader();
  let text = '';
  const read = async (): Promise<string> => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return 'ended';
      text += Buffer.from(value).toString();
      if (words === 'silence') stop.abort();
    }
  };
  await expect(read()).rejects.toThrow(/terminated|aborted/);
  expect(text).toContain('"role":"assistant"');
  expect(text).not.toContain('[DONE]');
});

test.each([
  [
    '/anthropic/v1/messages',
    {
      model: 'us.anthropic.claude-opus-5-5-v1:0',
      max_tokens: 99,
      messages: [{ role: 'user', content: 'hi ü' }],
    },
  ],
  ['/openai/v1/responses', { model: 'openai.gpt-5.6', input: 'hi ü' }],
])("Bedrock takes what the relay's own signer signs: %s", async (path, value) => {
  const url = `${vendors.url('bedrock')}${path}`;
  const body = JSON.stringify(value);
  const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' };
  const sign = requestSigner({
    aws: { region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } },
    clock: { now: () => Date.now() },
  });
  const signed = await sign(
    { method: 'POST', url, headers, body },
    { service: 'bedrock', region: 'us-east-1' },
  );
  expect((await fetch(url, { method: 'POST', headers: { ...headers, ...signed }, body })).status).toBe(200);
  const other = body.replace('hi', 'ho');
  expect((await fetch(url, { method: 'POST', headers: { ...headers, ...signed }, body: other })).status).toBe(
    403,
  );
});

test('the log has every request with its status', async () => {
  const before = vendors.requests('picky').length;
  const client = sdk('picky');
  await client.chat.completions.create({ model: 'picky', messages: [{ role: 'user', content: 'hi' }] });
  await expect(
    client.chat.completions.create({ model: 'picky', messages: [{ role: 'developer', content: 'hi' }] }),
  ).rejects.toMatchObject({ status: 422 });
  expect(vendors.requests('picky').slice(before)).toMatchObject([
    { method: 'POST', path: '/picky/v1/chat/completions', body: { model: 'picky' }, status: 200 },
    { status: 422, rule: 'roles' },
  ]);
});

test.each(['openai', 'gemini', 'deepseek', 'anthropic', 'bedrock', 'picky'])(
  '%s lists its models',
  async (name) => {
    const answer = await fetch(`${vendors.url(name)}/models`);
    expect(await answer.json()).toMatchObject({
      data: expect.arrayContaining([{ id: expect.any(String) }].map((each) => expect.objectContaining(each))),
    });
  },
);
