import OpenAI, { BadRequestError } from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import type { ResponseInput, ResponseInputItem } from 'openai/resources/responses/responses';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { chunk, toolDelta, usageChunk } from '../support/upstream-frames.ts';
import { frames, textStream, toolCallStream, toolLoop } from '../support/upstream-scripts.ts';
import { models, clientStack } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let client: OpenAI;

beforeAll(async () => {
  stack = await clientStack();
  client = stack.client();
});
beforeEach(() => stack.upstream.forget());

const hello = { model: models.scripted, input: 'Hello' };
const usage = { input_tokens: 11, output_tokens: 7, total_tokens: 18 };
const weather: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
};

/** Two calls with interleaved arguments; then a text with both results. */
const twoCalls = frames(
  chunk({ role: 'assistant', content: 'I look.' }),
  chunk(
    toolDelta(0, { id: 'call_r', type: 'function', function: { name: 'get_weather', arguments: '{"city"' } }),
  ),
  chunk(
    toolDelta(1, { id: 'call_o', type: 'function', function: { name: 'get_weather', arguments: '{"city"' } }),
  ),
  chunk(toolDelta(0, { function: { arguments: ':"Rome"}' } })),
  chunk(toolDelta(1, { function: { arguments: ':"Oslo"}' } })),
  chunk({}, 'tool_calls'),
  usageChunk(),
);

describe('responses.create', () => {
  test('returns a complete response with its text and usage', async () => {
    stack.upstream.script(textStream('Good morning.'));
    const response = await client.responses.create({ ...hello, instructions: 'Be kind.' });
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      model: models.scripted,
      output_text: 'Good morning.',
      usage,
    });
    expect(response.id).toBe(`resp-${response._request_id}`);
    expect(stack.sentMessages()).toEqual([
      [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hello' },
      ],
    ]);
  });

  test('streams events numbered from 0', async () => {
    stack.upstream.script(textStream('Good morning.'));
    const types: string[] = [];
    const numbers: number[] = [];
    for await (const event of await client.responses.create({ ...hello, stream: true })) {
      types.push(event.type);
      numbers.push(event.sequence_number);
    }
    expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress']);
    expect(types.at(-1)).toBe('response.completed');
    expect(numbers).toEqual(numbers.map((_number, i) => i));
  });

  test.each([false, true])('continues over several turns with tools (stream: %s)', async (stream) => {
    stack.upstream.script((call, reply) => {
      const tools = (call.body['messages'] as { role: string; content: string }[]).filter(
        ({ role }) => role === 'tool',
      );
      const answer = textStream(tools.map(({ content }) => content).join(' and '));
      return (tools.length > 0 ? answer : twoCalls)(call, reply);
    });
    const input: ResponseInput = [{ role: 'user', content: 'Rome and Oslo?' }];
    const turn = async (): Promise<OpenAI.Responses.Response> => {
      const body = { model: models.scripted, input, tools: [weather] };
      return stream ? client.responses.stream(body).finalResponse() : client.responses.create(body);
    };
    const first = await turn();
    expect(first.output.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call']);
    const calls = first.output.filter((item) => item.type === 'function_call');
    const outputs = calls.map(({ call_id: callId, arguments: text }): ResponseInputItem => ({
      type: 'function_call_output',
      call_id: callId,
      output: `sunny in ${(JSON.parse(text) as { city: string }).city}`,
    }));
    input.push(...(first.output as ResponseInputItem[]), ...outputs.toReversed());
    const second = await turn();
    expect(second.output_text).toBe('sunny in Rome and sunny in Oslo');
    expect(stack.sentMessages().at(-1)).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: 'I look.', tool_calls: [{ id: 'call_r' }, { id: 'call_o' }] },
      { role: 'tool', tool_call_id: 'call_r', content: 'sunny in Rome' },
      { role: 'tool', tool_call_id: 'call_o', content: 'sunny in Oslo' },
    ]);
  });
});

describe('responses.stream()', () => {
  test('collects the streamed text', async () => {
    stack.upstream.script(textStream('Good morning to you.'));
    const stream = client.responses.stream(hello);
    const deltas: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => deltas.push(delta));
    const response = await stream.finalResponse();
    expect(response.output_text).toBe('Good morning to you.');
    expect(response.usage).toMatchObject(usage);
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas.join('')).toBe(response.output_text);
  });

  test('collects a call and its arguments', async () => {
    stack.upstream.script(toolCallStream('get_weather', { city: 'Rome' }));
    const stream = client.responses.stream({ ...hello, tools: [weather] });
    const snapshots: string[] = [];
    stream.on('response.function_call_arguments.delta', ({ snapshot }) => snapshots.push(snapshot));
    const { output } = await stream.finalResponse();
    expect(output).toMatchObject([
      { type: 'function_call', name: 'get_weather', parsed_arguments: { city: 'Rome' } },
    ]);
    expect(snapshots.at(-1)).toBe('{"city":"Rome"}');
  });

  test('reports that an answer was cut short', async () => {
    stack.upstream.script(textStream('It was a dark and', 'length'));
    expect(await client.responses.stream(hello).finalResponse()).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output_text: 'It was a dark and',
    });
  });

  test('throws a failure in mid-stream, after the received words', async () => {
    const error = { error: { message: 'overloaded', type: 'server_error' } };
    stack.upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'It was' }));
      await reply.data(error);
      reply.end();
    });
    const stream = client.responses.stream(hello);
    const words: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => words.push(delta));
    await expect(stream.finalResponse()).rejects.toMatchObject({ code: 'server_error' });
    expect(words).toEqual(['It was']);
  });
});

describe('structured output', () => {
  const Place = z.object({ city: z.string(), people: z.number() });
  const text = { format: zodTextFormat(Place, 'place') };

  test.each([false, true])(
    'is returned parsed, by the schema that was sent to the upstream (stream: %s)',
    async (stream) => {
      stack.upstream.script(textStream('{"city": "Rome", "people": 3}'));
      const body = { ...hello, text };
      const response = stream
        ? await client.responses.stream(body).finalResponse()
        : await client.responses.parse(body);
      expect(response.output_parsed).toEqual({ city: 'Rome', people: 3 });
      expect(stack.upstream.requests[0]?.body['response_format']).toMatchObject({
        type: 'json_schema',
        json_schema: {
          name: 'place',
          strict: true,
          schema: { type: 'object', required: ['city', 'people'] },
        },
      });
    },
  );

  test('arguments of a strict tool are returned parsed', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const { output } = await client.responses.parse({ ...hello, tools: [weather] });
    expect(output).toMatchObject([{ type: 'function_call', parsed_arguments: { city: 'Rome' } }]);
  });
});

describe('errors', () => {
  test.each([
    [
      [
        { role: 'user', content: 'x' },
        { type: 'item_reference', id: 'msg_1' },
      ],
      'input[1].type',
    ],
    [[{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }], 'input[0].content[0].type'],
    [[{ type: 'function_call_output', call_id: 'c', output: 'x' }], 'input[0].call_id'],
  ])('an unsupported input is a BadRequestError that names the field', async (input, param) => {
    const call = client.responses.create({ model: models.scripted, input: input as ResponseInput });
    await expect(call).rejects.toBeInstanceOf(BadRequestError);
    await expect(call).rejects.toMatchObject({ param, type: 'invalid_request_error' });
    expect(stack.upstream.requests).toEqual([]);
  });

  test('an earlier response that was not stored cannot be continued', async () => {
    const call = client.responses.create({ ...hello, previous_response_id: 'resp-1' });
    await expect(call).rejects.toMatchObject({ status: 400, param: 'previous_response_id' });
  });

  test('an upstream that fails before the first word is an error, not a stream', async () => {
    stack.upstream.script((_call, reply) => reply.json(500, { error: { message: 'x' } }));
    await expect(client.responses.stream(hello).finalResponse()).rejects.toMatchObject({ status: 502 });
  });
});
