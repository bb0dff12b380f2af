import type { ModelMessage } from 'ai';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { aiSdks } from '../support/ai-sdks.ts';
import { chunk } from '../support/upstream-frames.ts';
import { textStream, toolLoop } from '../support/upstream-scripts.ts';
import { models, clientStack } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;

beforeAll(async () => {
  stack = await clientStack();
});
beforeEach(() => stack.upstream.forget());

/** The relay stores no responses here, so earlier items are sent in full, not by reference. */
const providerOptions = { openai: { store: false } };
const rolesSent = (): string[] => (stack.sentMessages().at(-1) ?? []).map(({ role }) => role);

describe.each(aiSdks)('AI SDK $version with .responses() and store: false', (sdk) => {
  const { generateText, streamText, Output } = sdk;
  const model = () =>
    sdk.createOpenAI({ baseURL: stack.baseUrl, apiKey: stack.key }).responses(models.scripted);
  const options = () => ({
    model: model(),
    providerOptions,
    maxRetries: 0,
    tools: {
      get_weather: sdk.tool({
        description: 'The weather in a city.',
        inputSchema: z.object({ city: z.string() }),
        execute: ({ city }) => `sunny in ${city}`,
      }),
    },
    stopWhen: sdk.isStepCount(3),
  });

  test('runs a tool and ends with the answer to its result', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const { text, steps, totalUsage } = await generateText({ ...options(), prompt: 'Rome?' });
    expect(text).toBe('The tool said sunny in Rome');
    expect(steps[0]?.toolResults).toMatchObject([{ toolName: 'get_weather', output: 'sunny in Rome' }]);
    expect(totalUsage.totalTokens).toBe(36);
    expect(rolesSent()).toEqual(['user', 'assistant', 'tool']);
  });

  test('streams the same run', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Oslo' }));
    const answer = streamText({ ...options(), prompt: 'Oslo?' });
    const types = new Set<string>();
    let text = '';
    for await (const part of answer.fullStream) {
      types.add(part.type);
      if (part.type === 'text-delta') text += part.text;
    }
    expect(text).toBe('The tool said sunny in Oslo');
    expect([...types]).toEqual(expect.arrayContaining(['tool-input-delta', 'tool-call', 'tool-result']));
    expect(types).not.toContain('error');
    expect((await answer.totalUsage).totalTokens).toBe(36);
  });

  test('continues from the messages of an answer', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const messages: ModelMessage[] = [{ role: 'user', content: 'Rome?' }];
    const answered = await sdk.messagesOf(await generateText({ ...options(), messages }));
    stack.upstream.script(textStream('You are welcome.'));
    const more: ModelMessage[] = [...messages, ...answered, { role: 'user', content: 'Thanks.' }];
    expect((await generateText({ ...options(), messages: more })).text).toBe('You are welcome.');
    expect(rolesSent()).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
  });

  test('returns structured output', async () => {
    stack.upstream.script(textStream('{"city": "Rome"}'));
    const { output } = await generateText({
      model: model(),
      providerOptions,
      output: Output.object({ schema: z.object({ city: z.string() }) }),
      prompt: 'Rome?',
    });
    expect(output).toEqual({ city: 'Rome' });
  });

  test('reports a failure in mid-stream', async () => {
    stack.upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'It was' }));
      reply.end();
    });
    const errors: unknown[] = [];
    const answer = streamText({
      ...options(),
      prompt: 'x',
      onError: ({ error }) => {
        errors.push(error);
      },
    });
    await answer.consumeStream();
    expect(errors).toHaveLength(1);
  });
});
