import { ChatOpenAI } from '@langchain/openai';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { toolLoop } from '../support/upstream-scripts.ts';
import { models, shownId, clientStack } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let model: ChatOpenAI;

beforeAll(async () => {
  stack = await clientStack();
  model = new ChatOpenAI({
    model: models.scripted,
    apiKey: stack.key,
    configuration: { baseURL: stack.baseUrl },
    useResponsesApi: true,
    zdrEnabled: true,
    maxRetries: 0,
  });
});
beforeEach(() => stack.upstream.forget());

const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'The weather in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const usage = { input_tokens: 11, output_tokens: 7, total_tokens: 18 };
const question = { role: 'user', content: 'Rome?' };

describe('LangChain with the Responses API', () => {
  test.each([false, true])('makes a tool round trip (stream: %s)', async (stream) => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const bound = model.bindTools([weather]);
    const ask = async (messages: Parameters<typeof bound.invoke>[0]) => {
      if (!stream) return bound.invoke(messages);
      let whole: Awaited<ReturnType<typeof bound.invoke>> | undefined;
      for await (const piece of await bound.stream(messages)) whole = whole?.concat(piece) ?? piece;
      if (!whole) throw new Error('the stream was empty');
      return whole;
    };
    const call = await ask([question]);
    expect(call.tool_calls).toMatchObject([
      {
        id: expect.stringMatching(shownId('call_1')) as unknown,
        name: 'get_weather',
        args: { city: 'Rome' },
      },
    ]);
    expect(call.usage_metadata).toMatchObject(usage);
    const result = { role: 'tool', tool_call_id: call.tool_calls?.[0]?.id ?? '', content: 'sunny' };
    const answer = await ask([question, call, result]);
    expect(answer.text).toBe('The tool said sunny');
    expect(stack.sentMessages()[1]).toMatchObject([
      question,
      { role: 'assistant', tool_calls: [{ id: 'call_1', function: { arguments: '{"city":"Rome"}' } }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
    ]);
  });
});
