/** OpenAI's own client compacts conversations twice on the running stack, with the doubles of four vendors. */
import { beforeAll, describe, expect, it } from 'vitest';
import type OpenAI from 'openai';
import { runOps } from '../ops/run-ops.ts';
import { addToStack, servedModels, vendorStack } from './vendor-stack.ts';

type Input = OpenAI.Responses.ResponseInputItem[];

const price = { type: 'token-billing', input: 0.001, output: 0.002 };
const compacting = new Set(['gpt-5.6', 'claude-opus-5-5', 'gemini-3-pro-preview', 'deepseek-v4-pro']);
const priced = servedModels.flatMap(({ model, ...own }) =>
  compacting.has(model) ? [{ ...own, model: `priced-${model}`, upstream: model }] : [],
);

addToStack(() => ({
  models: priced,
  rows: [{ table: 'charges', row: { id: 700, models: priced.map(({ model }) => model), ...price } }],
}));

let stack: Awaited<ReturnType<typeof vendorStack>>;
beforeAll(async () => {
  stack = await vendorStack();
}, 60_000);

const said = (role: 'user' | 'assistant', content: string): Input[number] => ({ role, content });

describe('responses.compact()', () => {
  it.each(priced)('of $model returns a conversation that can continue, twice', async ({ model, vendor }) => {
    const { client } = stack;
    const instructions = 'Work on the files.';
    const before = stack.vendors.requests(vendor).length;
    let input: Input = [said('user', 'What does the file say?'), said('assistant', 'It says fact-first.')];
    for (const fact of ['fact-second', 'fact-third']) {
      const compacted = await client.responses.compact({ model, input, instructions });
      expect(compacted).toMatchObject({
        object: 'response.compaction',
        usage: { output_tokens: expect.any(Number) },
      });
      expect(compacted.output.at(-1)?.type).toBe('compaction');
      input = [...(compacted.output as Input), said('user', `And now ${fact}?`)];
      const counted = await client.responses.inputTokens.count({ model, input, instructions });
      expect(counted).toEqual({ object: 'response.input_tokens', input_tokens: expect.any(Number) });
      const { output, output_text: text } = await client.responses.create({ model, input, instructions });
      expect(text).toContain(fact);
      input.push(...(output as Input));
    }
    const requests = stack.vendors.requests(vendor).slice(before);
    expect(requests.filter(({ status, rule }) => status >= 400 || rule !== undefined)).toEqual([]);
    // The last summary includes the first one; only the vendor can read its own summary.
    const asked = JSON.stringify(requests.at(-1)?.body);
    if (vendor !== 'openai') expect(asked).toMatch(/fact-first.*fact-third/);
    else expect(asked).toMatch(/gAAAA.*fact-third/);
  });

  it('leaves balances that match', { timeout: 60_000 }, async () => {
    const audit = await runOps(['audit'], { AWS_ENDPOINT_URL_DYNAMODB: stack.dynamodbEndpoint });
    expect(audit).toMatchObject({ code: 0, output: expect.stringContaining('all balances match') });
  });
});
