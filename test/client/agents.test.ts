import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { textStream, toolLoop } from '../support/upstream-scripts.ts';
import { models, clientStack } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let runner: Runner;

beforeAll(async () => {
  stack = await clientStack();
  const modelProvider = new OpenAIProvider({ openAIClient: stack.client(), useResponses: true });
  runner = new Runner({ modelProvider, tracingDisabled: true });
});
beforeEach(() => stack.upstream.forget());

const asked: string[] = [];
const getWeather = tool({
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => {
    asked.push(city);
    return `sunny in ${city}`;
  },
});
const agent = new Agent({
  name: 'Weather',
  instructions: 'Be brief.',
  model: models.scripted,
  tools: [getWeather],
});

describe('@openai/agents', () => {
  beforeEach(() => asked.splice(0));

  test('runs a tool and ends with the answer to its result', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const { finalOutput, state } = await runner.run(agent, 'Rome?');
    expect(finalOutput).toBe('The tool said sunny in Rome');
    expect(asked).toEqual(['Rome']);
    expect(state.usage).toMatchObject({ requests: 2, inputTokens: 22, outputTokens: 14 });
    expect(stack.sentMessages()[1]).toMatchObject([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Rome?' },
      { role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'get_weather' } }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny in Rome' },
    ]);
  });

  test('streams the same run', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Oslo' }));
    const run = await runner.run(agent, 'Oslo?', { stream: true });
    let text = '';
    for await (const piece of run.toTextStream()) text += piece;
    await run.completed;
    expect(text).toBe('The tool said sunny in Oslo');
    expect(run.finalOutput).toBe(text);
    expect(asked).toEqual(['Oslo']);
  });

  test('continues from the history of a run', async () => {
    stack.upstream.script(toolLoop('get_weather', { city: 'Rome' }));
    const first = await runner.run(agent, 'Rome?');
    stack.upstream.script(textStream('You are welcome.'));
    const second = await runner.run(agent, [...first.history, { role: 'user', content: 'Thanks.' }]);
    expect(second.finalOutput).toBe('You are welcome.');
    expect(
      stack
        .sentMessages()
        .at(-1)
        ?.map(({ role }) => role),
    ).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user']);
  });

  test('returns structured output', async () => {
    stack.upstream.script(textStream('{"city": "Rome", "people": 3}'));
    const outputType = z.object({ city: z.string(), people: z.number() });
    const counting = new Agent({ name: 'Count', model: models.scripted, outputType });
    expect((await runner.run(counting, 'Rome?')).finalOutput).toEqual({ city: 'Rome', people: 3 });
  });
});
