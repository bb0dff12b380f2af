/** Tool loops of real clients on the running stack against the strict doubles: with the whole conversation, and with stored ones. */
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner, tool as agentTool } from '@openai/agents';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { aiSdks } from '../support/ai-sdks.ts';
import { chatLoop, responsesLoop } from './tool-loop.ts';
import { servedModels, vendorStack, type VendorStack } from './vendor-stack.ts';

let stack: Awaited<ReturnType<typeof vendorStack>>;
beforeAll(async () => {
  stack = await vendorStack();
}, 60_000);

/** What a vendor rejected or only tolerated in the relay's requests, starting at a request. */
const objections = (vendor: string, from: number): object[] =>
  stack.vendors
    .requests(vendor)
    .slice(from)
    .filter(({ status, notes, rule }) => status >= 400 || notes.length > 0 || rule !== undefined)
    .map(({ path, status, rule, notes }) => ({ path, status, rule, notes }));

const ways = [
  { way: 'chat, streamed', run: chatLoop, stream: true, include: false },
  { way: 'chat, JSON', run: chatLoop, stream: false, include: false },
  { way: 'Responses, streamed', run: responsesLoop, stream: true, include: false },
  { way: 'Responses, JSON', run: responsesLoop, stream: false, include: false },
  { way: 'Responses, streamed, with encrypted reasoning', run: responsesLoop, stream: true, include: true },
  { way: 'Responses, JSON, with encrypted reasoning', run: responsesLoop, stream: false, include: true },
];
/** One way for each model: the property test of test/unit/relay/vendors covers every way of every model. */
const casesFrom = (first: number) =>
  servedModels.map(({ model, vendor }, index) =>
    Object.assign({ model, vendor }, ways[(index + first) % ways.length] ?? ways[0]),
  );

describe('a tool loop against a strict vendor', () => {
  it.each(casesFrom(0))('$model, $way: three turns', async ({ model, vendor, way, run, stream, include }) => {
    const before = stack.vendors.requests(vendor).length;
    const said = `turns=3 explain: the weather in Paris? ${model} ${way}`;
    const loop = await run({ client: stack.client, model, said, stream, include });
    expect({ turns: loop.turns, calls: loop.calls.length }).toEqual({ turns: 3, calls: 3 });
    expect(new Set(loop.calls.map(({ id }) => id)).size).toBe(3);
    expect(loop.text).toContain('weather');
    expect(objections(vendor, before)).toEqual([]);
  });

  it.each(casesFrom(3))(
    '$model, $way: three calls at once',
    async ({ model, vendor, way, run, stream, include }) => {
      const before = stack.vendors.requests(vendor).length;
      const said = `turns=2 three in parallel: the weather? ${model} ${way}`;
      const loop = await run({ client: stack.client, model, said, stream, include });
      expect({ turns: loop.turns, calls: loop.calls.length }).toEqual({ turns: 2, calls: 6 });
      expect(new Set(loop.calls.map(({ id }) => id)).size).toBe(6);
      expect(objections(vendor, before)).toEqual([]);
    },
  );
});

describe('two accounts behind one organisation', () => {
  const messages = [{ role: 'user' as const, content: 'the same words, '.repeat(600) }];
  // Gemini's and the strict one's fields have no name of an end user.
  const ends = servedModels.filter(({ vendor }) => vendor !== 'gemini' && vendor !== 'picky');
  const named = { prompt_cache_key: 'shared', safety_identifier: 'alice', user: 'alice' };

  it.each(['gpt-5.6', 'gpt-4.1'])(
    'each read only their own cache of %s, whatever they name it',
    async (model) => {
      const cached = async (client: VendorStack['client'], more: object): Promise<number | undefined> => {
        const { usage } = await client.chat.completions.create({ model, messages, ...more });
        return usage?.prompt_tokens_details?.cached_tokens;
      };
      const own = { prompt_cache_key: `prefix of ${model}` };
      expect(await cached(stack.client, own)).toBe(0);
      expect(await cached(stack.neighbour, own)).toBe(0);
      expect(await cached(stack.client, own)).toBeGreaterThan(1000);
      // Not even under the name that the vendor received.
      const told = bodyOf('openai')['prompt_cache_key'];
      expect(await cached(stack.neighbour, { prompt_cache_key: told })).toBe(0);
    },
  );

  it.each(ends)('get different stable names at the vendor of $model for the same end user', async (one) => {
    const toldOf = async (client: VendorStack['client']): Promise<string> => {
      await client.chat.completions.create({ model: one.model, messages, ...named });
      const { prompt_cache_key: key, safety_identifier: safety, user, metadata } = bodyOf(one.vendor);
      return JSON.stringify({ key, safety, user, metadata });
    };
    const told = await toldOf(stack.client);
    expect(told).toMatch(/[0-9a-f]{64}/);
    expect(told).not.toMatch(/alice|shared|test/);
    expect(await toldOf(stack.client)).toBe(told);
    expect(await toldOf(stack.neighbour)).not.toBe(told);
  });

  it('see their own names in the answer', async () => {
    const answer = await stack.client.responses.create({ model: 'gpt-5.6', input: 'hi', ...named });
    expect(answer).toMatchObject({ prompt_cache_key: 'shared', safety_identifier: 'alice' });
  });

  const bodyOf = (vendor: string): Record<string, unknown> =>
    stack.vendors.requests(vendor).at(-1)?.body as Record<string, unknown>;
});

const description = 'Weather of a city';
const inputSchema = z.object({ city: z.string() });
const system = 'Be brief. '.repeat(40);
const dialects = servedModels.filter(({ model }) =>
  ['gpt-5.6', 'claude-opus-5-5', 'gemini-3-pro-preview', 'deepseek-v4-pro'].includes(model),
);

/** One conversation with tools: the requested cities, and the last text. */
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

const turnsMax = 12;

async function aiSdk({ model, said, stream, endpoint }: LoopTask): Promise<Loop> {
  const asked: string[] = [];
  const openai = createOpenAI({ baseURL: stack.baseUrl, apiKey: stack.key });
  const weather = tool({ description, inputSchema, execute: ({ city }) => asked.push(city) });
  const options = {
    model: openai[endpoint](model),
    // The relay stores no responses.
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

const libraryWays = [
  { endpoint: 'chat' as const, stream: true },
  { endpoint: 'chat' as const, stream: false },
  { endpoint: 'responses' as const, stream: true },
  { endpoint: 'responses' as const, stream: false },
];
/** Each library uses each way once, with a different model. */
const casesOf = (library: number) =>
  dialects.map(({ model, vendor }, index) =>
    Object.assign({ model, vendor }, libraryWays[(index + library) % libraryWays.length] ?? libraryWays[0]),
  );

describe.each([
  ['AI SDK', aiSdk, 0],
  ['@openai/agents', agents, 1],
  ['LangChain', langChain, 2],
] as const)('a tool loop of %s against a strict vendor', (library, run, number) => {
  it.each(casesOf(number))(
    '$model, $endpoint, stream: $stream: three turns, then three calls at once',
    async ({ vendor, ...way }) => {
      const before = stack.vendors.requests(vendor).length;
      const about = `the weather in Paris? ${library} ${JSON.stringify(way)}`;
      const single = await run({ ...way, said: `turns=3 explain: ${about}` });
      expect(single.asked).toEqual(Array(3).fill('Paris'));
      expect(single.text).toContain('weather');
      const parallel = await run({ ...way, said: `turns=2 three in parallel: ${about}` });
      expect(parallel.asked).toEqual(Array(6).fill('Paris'));
      expect(objections(vendor, before)).toEqual([]);
      expect(stack.vendors.requests(vendor).length - before).toBe(4 + 3);
    },
  );
});

/** What a client sends. */
function recorded() {
  const sent: { input: Record<string, unknown>[]; previous_response_id?: string }[] = [];
  const recording: typeof fetch = (url, init) => {
    sent.push(JSON.parse(typeof init?.body === 'string' ? init.body : '{}'));
    return fetch(url, init);
  };
  return { sent, fetch: recording };
}

describe('a stored conversation of the official client', () => {
  it.each(servedModels.map(({ model, vendor }, index) => ({ model, vendor, stream: index % 2 === 0 })))(
    'continues by previous_response_id over three turns with tools of $model (stream: $stream)',
    async ({ model, vendor, stream }) => {
      const turns = 3;
      const before = stack.vendors.requests(vendor).length;
      const said = `turns=${turns} explain: the weather in Paris? ${model} chained`;
      const loop = await responsesLoop({ client: stack.storing, model, said, stream, chained: true });
      expect({ turns: loop.turns, calls: loop.calls.length }).toEqual({ turns, calls: turns });
      expect(new Set(loop.calls.map(({ id }) => id)).size).toBe(turns);
      expect(loop.text).toContain('weather');
      expect(objections(vendor, before)).toEqual([]);
    },
    60_000,
  );
});

describe.each(aiSdks)('the AI SDK $version in its default mode, which refers to items', (sdk) => {
  it.each(dialects.filter((_, index) => index % 2 === sdk.version % 2))(
    'runs tools over 3 turns of $model, twice',
    async ({ model, vendor }) => {
      const before = stack.vendors.requests(vendor).length;
      const { sent, fetch } = recorded();
      const openai = sdk.createOpenAI({
        baseURL: stack.baseUrl,
        apiKey: String(stack.storing.apiKey),
        fetch,
      });
      const asked: string[] = [];
      const weather = sdk.tool({ description, inputSchema, execute: ({ city }) => asked.push(city) });
      const options = {
        model: openai.responses(model),
        // For known reasoning models it refers to messages only after reasoning, which is shown as a summary.
        ...(model.startsWith('gpt-5') && { providerOptions: { openai: { reasoningSummary: 'auto' } } }),
        ...sdk.instructions(system),
        maxRetries: 0,
        tools: { weather },
        stopWhen: sdk.isStepCount(12),
      };
      const question = { role: 'user' as const, content: `turns=3 explain: the weather? ${model} AI SDK` };
      const first = sdk.streamText({ ...options, messages: [question] });
      await first.consumeStream();
      expect(asked).toHaveLength(3);
      const messages = await sdk.messagesOf(first);
      const second = sdk.streamText({ ...options, messages: [question, ...messages, question] });
      await second.consumeStream();
      expect(asked).toHaveLength(6);
      expect(await second.text).toContain('weather');
      expect(sent.at(-1)?.input.map(({ type }) => type)).toContain('item_reference');
      expect(objections(vendor, before)).toEqual([]);
    },
    60_000,
  );
});

describe('@openai/agents with server-side state', () => {
  it.each(dialects.slice(0, 2))(
    'sends only the new items of each turn of $model',
    async ({ model, vendor }) => {
      const before = stack.vendors.requests(vendor).length;
      const { sent, fetch } = recorded();
      const openAIClient = stack.storing.withOptions({ fetch });
      const modelProvider = new OpenAIProvider({ openAIClient, useResponses: true });
      const runner = new Runner({ modelProvider, tracingDisabled: true });
      const asked: string[] = [];
      const execute = ({ city }: { city: string }): string => `${asked.push(city)} degrees`;
      const weather = agentTool({ name: 'weather', description, parameters: inputSchema, execute });
      const agent = new Agent({ name: 'Weather', instructions: system, model, tools: [weather] });
      const said = (more: string): string => `turns=3 explain: the weather? ${model} agents ${more}`;
      const first = await runner.run(agent, said('first'), { maxTurns: 12 });
      const run = await runner.run(agent, said('second'), {
        maxTurns: 12,
        stream: true,
        previousResponseId: first.lastResponseId,
      });
      await run.completed;
      expect(asked).toHaveLength(6);
      expect(run.finalOutput).toContain('weather');
      const chained = sent.slice(-4);
      expect(chained.map(({ input }) => input.length)).toEqual([1, 1, 1, 1]);
      expect(chained.every((body) => typeof body.previous_response_id === 'string')).toBe(true);
      expect(objections(vendor, before)).toEqual([]);
    },
    60_000,
  );
});

describe("@anthropic-ai/sdk's count of tokens", () => {
  const estimated = 'x-relay-estimated';
  const asked = {
    system: 'Be brief.',
    messages: [{ role: 'user' as const, content: 'How many tokens are these words?' }],
    tools: [{ name: 'weather', input_schema: { type: 'object' as const } }],
    thinking: { type: 'adaptive' as const },
  };

  it.each(servedModels.filter(({ vendor }) => ['anthropic', 'bedrock', 'deepseek'].includes(vendor)))(
    'of $model is the vendor’s if that counts, or else an estimate',
    async ({ model, vendor }) => {
      const client = new Anthropic({
        baseURL: stack.baseUrl.replace(/\/v1$/, ''),
        apiKey: stack.key,
        maxRetries: 0,
      });
      const { data, response } = await client.messages.countTokens({ model, ...asked }).withResponse();
      const isVendors = vendor === 'anthropic';
      expect(response.headers.get(estimated)).toBe(isVendors ? null : 'true');
      expect(data).toEqual({ input_tokens: expect.any(Number) });
      if (isVendors) {
        const { usage } = await client.messages.create({ model, max_tokens: 64, ...asked });
        expect(data.input_tokens).toBe(usage.input_tokens);
      }
      expect(data.input_tokens).toBeGreaterThan(5);
    },
  );
});
