import { createOpenAI } from '@ai-sdk/openai';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner, tool as agentTool } from '@openai/agents';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { objections } from './objections.ts';
import { servedModels, startVendorStack, type VendorStack } from './vendor-stack.ts';

let stack: VendorStack;
beforeAll(async () => {
  stack = await startVendorStack();
}, 60_000);
afterAll(() => stack.stop());

/** One conversation with tools: the cities that were asked for, and the last text. */
interface Loop {
  asked: string[];
  text: string;
}

interface LoopTask {
  model: string;
  said: string;
  stream: boolean;
  endpoint: 'chat' | 'responses';
}

const description = 'Weather of a city';
const inputSchema = z.object({ city: z.string() });
const system = 'Be brief. '.repeat(40);
const turnsMax = 12;

async function aiSdk({ model, said, stream, endpoint }: LoopTask): Promise<Loop> {
  const asked: string[] = [];
  const openai = createOpenAI({ baseURL: stack.baseUrl, apiKey: stack.key });
  const weather = tool({ description, inputSchema, execute: ({ city }) => asked.push(city) });
  const options = {
    model: openai[endpoint](model),
    // The relay keeps no responses.
    ...(endpoint === 'responses' && { providerOptions: { openai: { store: false } } }),
    instructions: system,
    prompt: said,
    maxRetries: 0,
    tools: { weather },
    stopWhen: isStepCount(turnsMax),
  };
  if (!stream) return { asked, text: (await generateText(options)).text };
  const answer = streamText(options);
  await answer.consumeStream();
  return { asked, text: await answer.text };
}

async function agents({ model, said, stream, endpoint }: LoopTask): Promise<Loop> {
  const asked: string[] = [];
  const useResponses = endpoint === 'responses';
  const modelProvider = new OpenAIProvider({ openAIClient: stack.client, useResponses });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  const execute = ({ city }: { city: string }): string => `${asked.push(city)} degrees`;
  const weather = agentTool({ name: 'weather', description, parameters: inputSchema, execute });
  const agent = new Agent({ name: 'Weather', instructions: system, model, tools: [weather] });
  const options = { maxTurns: turnsMax };
  if (!stream) return { asked, text: (await runner.run(agent, said, options)).finalOutput ?? '' };
  const run = await runner.run(agent, said, { ...options, stream: true });
  await run.completed;
  return { asked, text: run.finalOutput ?? '' };
}

type Said = Parameters<ChatOpenAI['invoke']>[0];

async function langChain({ model, said, stream, endpoint }: LoopTask): Promise<Loop> {
  const asked: string[] = [];
  const bound = new ChatOpenAI({
    model,
    apiKey: stack.key,
    configuration: { baseURL: stack.baseUrl },
    useResponsesApi: endpoint === 'responses',
    zdrEnabled: true,
    maxRetries: 0,
  }).bindTools([
    { type: 'function', function: { name: 'weather', description, parameters: z.toJSONSchema(inputSchema) } },
  ]);
  const answerTo = async (messages: Said): Promise<Awaited<ReturnType<typeof bound.invoke>>> => {
    if (!stream) return bound.invoke(messages);
    let whole: Awaited<ReturnType<typeof bound.invoke>> | undefined;
    for await (const piece of await bound.stream(messages)) whole = whole?.concat(piece) ?? piece;
    if (!whole) throw new Error('the stream was empty');
    return whole;
  };
  const messages: Extract<Said, unknown[]> = [
    { role: 'system', content: system },
    { role: 'user', content: said },
  ];
  for (let turn = 0; turn < turnsMax; turn += 1) {
    const answer = await answerTo(messages);
    messages.push(answer);
    if (!answer.tool_calls?.length) return { asked, text: answer.text };
    for (const { id = '', args } of answer.tool_calls)
      messages.push({
        role: 'tool',
        tool_call_id: id,
        content: `${asked.push(String(args['city']))} degrees`,
      });
  }
  throw new Error('the loop does not end');
}

const tried = new Set(['gpt-5.6', 'claude-opus-5-5', 'gemini-3-pro-preview', 'deepseek-v4-pro']);
const ways = [
  { endpoint: 'chat' as const, stream: true },
  { endpoint: 'chat' as const, stream: false },
  { endpoint: 'responses' as const, stream: true },
  { endpoint: 'responses' as const, stream: false },
];
/** Two ways of each library with each model, so that each library goes each way with two models. */
const casesOf = (half: number) =>
  servedModels
    .filter(({ model }) => tried.has(model))
    .flatMap(({ model, vendor }, index) =>
      ways.filter((_, at) => (at + index) % 2 === half).map((way) => Object.assign({ model, vendor }, way)),
    );

describe.each([
  ['AI SDK', aiSdk, 0],
  ['@openai/agents', agents, 1],
  ['LangChain', langChain, 0],
] as const)('a tool loop of %s against a strict vendor', (library, run, half) => {
  it.each(casesOf(half))(
    '$model, $endpoint, stream: $stream: five turns, then three calls at once',
    async ({ vendor, ...way }) => {
      const before = stack.vendors.requests(vendor).length;
      const about = `the weather in Paris? ${library} ${JSON.stringify(way)}`;
      const five = await run({ ...way, said: `turns=5 explain: ${about}` });
      expect(five.asked).toEqual(Array(5).fill('Paris'));
      expect(five.text).toContain('weather');
      const parallel = await run({ ...way, said: `turns=2 three in parallel: ${about}` });
      expect(parallel.asked).toEqual(Array(6).fill('Paris'));
      expect(objections(stack, vendor, before)).toEqual([]);
      expect(stack.vendors.requests(vendor).length - before).toBe(6 + 3);
    },
  );
});
