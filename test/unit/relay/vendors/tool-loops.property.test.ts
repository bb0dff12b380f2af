/** Tool loops of every kind of client against every double, through the whole core. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientNamed, Conversation, loopClients } from '../../../support/loop-clients.ts';
import { sentPrefix, vendorModels, VendorRig, type VendorCall } from '../../../support/vendor-rig.ts';

/** The state in a vendor's answer that it wants back. */
const stateIn = ({ text }: VendorCall): string[] =>
  [...text.matchAll(/"(?:encrypted_content|thought_signature|signature)":"([^"]+)"/g)].map(
    ([, state = '']) => state,
  );

const loops = fc.record({
  model: fc.constantFrom(...vendorModels.map(({ model }) => model)),
  kind: fc.constantFrom(...loopClients.map(({ kind }) => kind)),
  stream: fc.boolean(),
  turns: fc.integer({ min: 1, max: 5 }),
  calls: fc.constantFrom(1, 3),
  words: fc.subarray(['explain', 'interleave', 'redacted']),
  effort: fc.constantFrom(undefined, 'none', 'high'),
  goesOn: fc.boolean(),
});

/** Models that think in the doubles. */
const thinkers = /gpt-[56]|claude|gemini|deepseek/;

function effortField({ client }: Conversation, effort: string): Record<string, unknown> {
  if (client.path.endsWith('responses')) return { reasoning: { effort } };
  if (client.path.endsWith('completions')) return { reasoning_effort: effort };
  // A Claude that always thinks rejects an effort of none, so do not send one.
  return effort === 'none' ? {} : { output_config: { effort } };
}

describe('a tool loop through the relay', () => {
  it('has no rejected request, ends with the same text, and returns all state', async () => {
    await fc.assert(
      fc.asyncProperty(loops, async ({ model, kind, stream, turns, calls, words, effort, goesOn }) => {
        const rig = new VendorRig(vendorModels.filter((one) => one.model === model));
        const loop = new Conversation(clientNamed(kind), stream);
        const asked = `turns=${turns} ${calls === 3 ? 'three' : 'one'} ${words.join(' ')}: the weather`;
        const more = effort && thinkers.test(model) ? effortField(loop, effort) : {};
        const { text, turns: taken, answers } = await loop.ask(asked).run(rig.core, more);
        const results = [...loop.results];
        if (goesOn) await loop.ask(`and again: ${asked}`).run(rig.core, more);
        expect(rig.objections).toEqual([]);
        expect([taken, loop.ids.length]).toEqual([turns, turns * calls * (goesOn ? 2 : 1)]);
        expect(new Set(loop.ids).size).toBe(loop.ids.length);
        // After thinking in tags, the text begins with line breaks.
        expect(text.trimStart()).toBe(
          `The tools answered: ${results.map((result) => `weather: ${result}`).join('; ')}.`,
        );
        expect(answers.map(({ headers }) => headers['x-relay-dropped'])).toEqual(
          answers.map(() => undefined),
        );
        const prefixes = rig.calls.map(({ body }) => sentPrefix(body));
        for (const [index, prefix] of prefixes.slice(1).entries())
          expect(prefix.startsWith(prefixes[index] ?? '')).toBe(true);
        const last = prefixes.at(-1) ?? '';
        // After turns without calls, only state held by clients comes back.
        const isKept = (index: number): boolean => index !== turns || loop.keepsState;
        for (const call of rig.calls.slice(0, -1).filter((_, index) => isKept(index)))
          for (const state of stateIn(call))
            expect({ state, found: last.includes(state) }).toEqual({ state, found: true });
        expect(rig.core.faults).toEqual([]);
      }),
      { numRuns: 75, seed: 10 },
    );
  });
});
