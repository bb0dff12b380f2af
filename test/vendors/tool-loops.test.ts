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
  { way: 'chat, streamed', run: chatLoop, stream: true },
  { way: 'chat, JSON', run: chatLoop, stream: false },
  { way: 'Responses, streamed', run: responsesLoop, stream: true },
  { way: 'Responses, JSON', run: responsesLoop, stream: false },
  { way: 'Responses, streamed, with encrypted reasoning', run: responsesLoop, stream: true, include: true },
  { way: 'Responses, JSON, with encrypted reasoning', run: responsesLoop, stream: false, include: true },
];
const cases = servedModels.flatMap(({ model, vendor }) =>
  ways.map(({ way, run, stream, include }) => ({ model, vendor, way, run, stream, include })),
);

describe('a tool loop against a strict vendor', () => {
  it.each(cases)('$model, $way: five turns', async ({ model, vendor, way, run, stream, include }) => {
    const before = stack.vendors.requests(vendor).length;
    const said = `turns=5 explain: the weather in Paris? ${model} ${way}`;
    const loop = await run({ client: stack.client, model, said, stream, include });
    expect({ turns: loop.turns, calls: loop.calls.length }).toEqual({ turns: 5, calls: 5 });
    expect(new Set(loop.calls.map(({ id }) => id)).size).toBe(5);
    expect(loop.text).toContain('weather');
    expect(objections(stack, vendor, before)).toEqual([]);
  });

  it.each(cases)(
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
