/** Tool loops whose conversations the relay has, by real clients on the running stack. */
import { Agent, OpenAIProvider, Runner, tool as agentTool } from '@openai/agents';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { aiSdks } from '../support/ai-sdks.ts';
import { objections } from './objections.ts';
import { responsesLoop } from './tool-loop.ts';
import { servedModels, startVendorStack, type VendorStack } from './vendor-stack.ts';

let stack: VendorStack;
beforeAll(async () => {
  stack = await startVendorStack();
}, 60_000);
afterAll(() => stack.stop());

const description = 'Weather of a city';
const inputSchema = z.object({ city: z.string() });
const system = 'Be brief. '.repeat(40);
const dialects = servedModels.filter(({ model }) =>
  ['gpt-5.6', 'claude-opus-5-5', 'gemini-3-pro-preview', 'deepseek-v4-pro'].includes(model),
);

/** What a client sends. */
function recorded() {
  const sent: { input: Record<string, unknown>[]; previous_response_id?: string }[] = [];
  const recording: typeof fetch = (url, init) => {
    sent.push(JSON.parse(typeof init?.body === 'string' ? init.body : '{}'));
    return fetch(url, init);
  };
  return { sent, fetch: recording };
}

describe('the official client', () => {
  it.each(
    servedModels.map(({ model, vendor }, index) => ({
      model,
      vendor,
      stream: index % 2 === 0,
      turns: index === 0 ? 20 : 6,
    })),
  )(
    'goes on by previous_response_id over $turns turns with tools of $model (stream: $stream)',
    async ({ model, vendor, stream, turns }) => {
      const before = stack.vendors.requests(vendor).length;
      const said = `turns=${turns} explain: the weather in Paris? ${model} chained`;
      const loop = await responsesLoop({ client: stack.storing, model, said, stream, chained: true });
      expect({ turns: loop.turns, calls: loop.calls.length }).toEqual({ turns, calls: turns });
      expect(new Set(loop.calls.map(({ id }) => id)).size).toBe(turns);
      expect(loop.text).toContain('weather');
      expect(objections(stack, vendor, before)).toEqual([]);
    },
    60_000,
  );
});

describe.each(aiSdks)('the AI SDK $version in its default mode, which refers to items', (sdk) => {
  it.each(dialects)(
    'runs tools over 5 turns of $model, twice',
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
        // Of models that it knows to think it refers to messages after reasoning alone, which is shown as a summary.
        ...(model.startsWith('gpt-5') && { providerOptions: { openai: { reasoningSummary: 'auto' } } }),
        ...sdk.instructions(system),
        maxRetries: 0,
        tools: { weather },
        stopWhen: sdk.isStepCount(12),
      };
      const question = { role: 'user' as const, content: `turns=5 explain: the weather? ${model} AI SDK` };
      const first = sdk.streamText({ ...options, messages: [question] });
      await first.consumeStream();
      expect(asked).toHaveLength(5);
      const messages = await sdk.messagesOf(first);
      const second = sdk.streamText({ ...options, messages: [question, ...messages, question] });
      await second.consumeStream();
      expect(asked).toHaveLength(10);
      expect(await second.text).toContain('weather');
      expect(sent.at(-1)?.input.map(({ type }) => type)).toContain('item_reference');
      expect(objections(stack, vendor, before)).toEqual([]);
    },
    60_000,
  );
});

describe('@openai/agents with the state at the server', () => {
  it.each(dialects)(
    'sends what is new of each turn of $model',
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
      expect(objections(stack, vendor, before)).toEqual([]);
    },
    60_000,
  );
});
