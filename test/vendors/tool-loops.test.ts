import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { objections } from './objections.ts';
import { chatLoop, responsesLoop } from './tool-loop.ts';
import { servedModels, startVendorStack, type VendorStack } from './vendor-stack.ts';

let stack: VendorStack;
beforeAll(async () => {
  stack = await startVendorStack();
}, 60_000);
afterAll(() => stack.stop());

const ways = [
  { way: 'chat, streamed', run: chatLoop, stream: true, include: false },
  { way: 'chat, JSON', run: chatLoop, stream: false, include: false },
  { way: 'Responses, streamed', run: responsesLoop, stream: true, include: false },
  { way: 'Responses, JSON', run: responsesLoop, stream: false, include: false },
  { way: 'Responses, streamed, with encrypted reasoning', run: responsesLoop, stream: true, include: true },
  { way: 'Responses, JSON, with encrypted reasoning', run: responsesLoop, stream: false, include: true },
];
/** Every other way of each model: five turns on one half, calls at once on the other. */
const casesOf = (half: number) =>
  servedModels.flatMap(({ model, vendor }, index) =>
    ways.filter((_, at) => (at + index) % 2 === half).map((way) => Object.assign({ model, vendor }, way)),
  );

describe('a tool loop against a strict vendor', () => {
  it.each(casesOf(0))('$model, $way: five turns', async ({ model, vendor, way, run, stream, include }) => {
    const before = stack.vendors.requests(vendor).length;
    const said = `turns=5 explain: the weather in Paris? ${model} ${way}`;
    const loop = await run({ client: stack.client, model, said, stream, include });
    expect({ turns: loop.turns, calls: loop.calls.length }).toEqual({ turns: 5, calls: 5 });
    expect(new Set(loop.calls.map(({ id }) => id)).size).toBe(5);
    expect(loop.text).toContain('weather');
    expect(objections(stack, vendor, before)).toEqual([]);
  });

  it.each(casesOf(1))(
    '$model, $way: three calls at once',
    async ({ model, vendor, way, run, stream, include }) => {
      const before = stack.vendors.requests(vendor).length;
      const said = `turns=2 three in parallel: the weather? ${model} ${way}`;
      const loop = await run({ client: stack.client, model, said, stream, include });
      expect({ turns: loop.turns, calls: loop.calls.length }).toEqual({ turns: 2, calls: 6 });
      expect(new Set(loop.calls.map(({ id }) => id)).size).toBe(6);
      expect(objections(stack, vendor, before)).toEqual([]);
    },
  );
});

describe('two accounts behind one organisation', () => {
  const messages = [{ role: 'user' as const, content: 'the same words, '.repeat(600) }];
  // Gemini's and the strict one's fields have no name of an end user.
  const ends = servedModels.filter(({ vendor }) => vendor !== 'gemini' && vendor !== 'picky');
  const named = { prompt_cache_key: 'shared', safety_identifier: 'alice', user: 'alice' };

  it.each(['gpt-5.6', 'gpt-4.1'])(
    'read each its own cache of %s alone, whatever they call it',
    async (model) => {
      const cached = async (client: VendorStack['client'], more: object): Promise<number | undefined> => {
        const { usage } = await client.chat.completions.create({ model, messages, ...more });
        return usage?.prompt_tokens_details?.cached_tokens;
      };
      const own = { prompt_cache_key: `prefix of ${model}` };
      expect(await cached(stack.client, own)).toBe(0);
      expect(await cached(stack.neighbour, own)).toBe(0);
      expect(await cached(stack.client, own)).toBeGreaterThan(1000);
      // Not even by the name that the vendor was told.
      const told = bodyOf('openai')['prompt_cache_key'];
      expect(await cached(stack.neighbour, { prompt_cache_key: told })).toBe(0);
    },
  );

  it.each(ends)('are two to the vendor of $model under one name, and each always the same', async (one) => {
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
