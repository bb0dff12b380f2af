/** Unknown models with unusual rules: served by the settings of a row, and by facts learned from their refusals. */
import Anthropic from '@anthropic-ai/sdk';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { chatLoop } from './tool-loop.ts';
import { addToStack, vendorStack, type ServedModel } from './vendor-stack.ts';

const messages = [{ role: 'user' as const, content: 'hello' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = ['get_weather', 'get_time'].map((name) => ({
  type: 'function' as const,
  function: { name, parameters },
}));
const forced = { type: 'function' as const, function: { name: 'get_weather' } };

/** A vendor's announcement, the operator's row, and calls of a client for today's models. */
const announced = [
  {
    upstream: 'claude-lyra-7',
    vendor: 'anthropic',
    row: { type: 'anthropic' },
    rules: {
      thinking: 'budget',
      sampling: 'one',
      forced_calls: true,
      last_turn: 'user',
      max_output_tokens: 48_000,
    },
    calls: [
      { messages, reasoning_effort: 'high' as const },
      { messages, temperature: 0.5, top_p: 0.9 },
      { messages, tools, tool_choice: forced },
    ],
  },
  {
    upstream: 'gpt-7-orion',
    vendor: 'openai',
    row: { type: 'openai' },
    said: { dialect: 'responses' },
    rules: {
      efforts: ['minimal', 'medium'],
      sampling: 'none',
      stop: false,
    },
    calls: [
      { messages, reasoning_effort: 'low' as const, max_tokens: 300 },
      { messages, reasoning_effort: 'high' as const, temperature: 0.2, stop: ['END'] },
    ],
  },
  {
    upstream: 'deepseek-comet',
    vendor: 'deepseek',
    row: { type: 'openai' },
    rules: { efforts: ['high', 'max'], forced_calls: true, wants_back: 'reasoning_content' },
    calls: [
      { messages, reasoning_effort: 'low' as const },
      { messages, tools, tool_choice: forced },
    ],
  },
];

const served = announced.flatMap(({ upstream, vendor, row, said, rules }): ServedModel[] => [
  {
    model: `told-${upstream}`,
    upstream,
    vendor,
    row: { ...row, ...said, params: { model_rules: { [`${upstream.slice(0, -1)}*`]: rules } } },
  },
  { model: `untold-${upstream}`, upstream, vendor, row },
]);

addToStack(() => ({ models: served }));

let stack: Awaited<ReturnType<typeof vendorStack>>;
beforeAll(async () => {
  stack = await vendorStack();
}, 60_000);

/** What the vendor rejected in a model's calls, starting at a request. */
const refusals = (vendor: string, from: number): (string | undefined)[] =>
  stack.vendors
    .requests(vendor)
    .slice(from)
    .filter(({ status }) => status >= 400)
    .map(({ rule }) => rule);

describe('a model that is new at its vendor', () => {
  it.each(announced)(
    'is served by a row alone, without a rejected call: $upstream',
    async ({ upstream, vendor, calls }) => {
      const model = `told-${upstream}`;
      const before = stack.vendors.requests(vendor).length;
      for (const call of calls) {
        const { choices } = await stack.client.chat.completions.create({ model, ...call });
        expect(choices[0]?.message).toBeDefined();
      }
      const loop = { client: stack.client, model, stream: true, include: false };
      const { turns } = await chatLoop({ ...loop, said: `turns=3 explain: the weather in Paris? ${model}` });
      expect(turns).toBe(3);
      expect(refusals(vendor, before)).toEqual([]);
    },
  );

  it('receives only what its row allows', async () => {
    const bodyOf = async (model: string, vendor: string, call: object) => {
      await stack.client.chat.completions.create({ model, messages, ...call });
      return stack.vendors.requests(vendor).at(-1)?.body;
    };
    expect(await bodyOf('told-claude-lyra-7', 'anthropic', { temperature: 0.5 })).toMatchObject({
      temperature: 0.5,
    });
    const choice = { tools, tool_choice: forced };
    expect(await bodyOf('told-claude-lyra-7', 'anthropic', choice)).toMatchObject({
      tool_choice: { type: 'tool' },
    });
    expect(await bodyOf('told-deepseek-comet', 'deepseek', choice)).toMatchObject({ tool_choice: forced });
    expect(await bodyOf('untold-deepseek-comet', 'deepseek', choice)).toMatchObject({ tool_choice: 'auto' });
    const effort = { reasoning_effort: 'high' };
    expect(await bodyOf('told-gpt-7-orion', 'openai', effort)).toMatchObject({
      reasoning: { effort: 'medium' },
    });
  });

  it.each(announced)(
    'teaches the relay its rules within two calls, invisibly to the client, without a row: $upstream',
    async ({ upstream, vendor, calls }) => {
      const model = `untold-${upstream}`;
      for (const call of calls) {
        const first = stack.vendors.requests(vendor).length;
        await stack.client.chat.completions.create({ model, ...call });
        expect(stack.vendors.requests(vendor).length - first).toBeLessThanOrEqual(3);
        // Another environment may answer the next call; it gets the learned facts within seconds.
        await vi.waitFor(
          async () => {
            const second = stack.vendors.requests(vendor).length;
            await stack.client.chat.completions.create({ model, ...call });
            expect(refusals(vendor, second)).toEqual([]);
          },
          { timeout: 20_000, interval: 200 },
        );
      }
      const loop = { client: stack.client, model, stream: false, include: false };
      const { turns } = await chatLoop({ ...loop, said: `turns=3 explain: the weather in Paris? ${model}` });
      expect(turns).toBe(3);
    },
    60_000,
  );

  it('receives a Messages body unchanged, whatever is known about the model', async () => {
    const client = new Anthropic({
      baseURL: stack.baseUrl.replace(/\/v1$/, ''),
      apiKey: stack.key,
      maxRetries: 0,
    });
    const adaptive = client.messages.create({
      model: 'untold-claude-lyra-7',
      max_tokens: 500,
      messages,
      thinking: { type: 'adaptive' },
    });
    await expect(adaptive).rejects.toMatchObject({ status: 400 });
  });
});
