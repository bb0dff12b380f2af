/** A conversation that goes over to another vendor, and back. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientNamed, Conversation, loopClients } from '../../../support/loop-clients.ts';
import { vendorModels, VendorRig } from '../../../support/vendor-rig.ts';

const models = vendorModels.map(({ model }) => model);
/** Their turns have no state. */
const stateless = new Set(['gpt-4.1', 'picky', 'picky-repeat', 'picky-think']);
/** They take each other's reasoning, which is plain text. */
const plain = new Set(['deepseek-v4-pro', 'kimi-k2.6']);

const losesState = (from: string, to: string): boolean =>
  !stateless.has(from) && !(plain.has(from) && plain.has(to));

const minutes = 60_000;

async function moveOver({ from, to, kind, stream, before }: Move) {
  const rig = new VendorRig([from, to].flatMap((name) => vendorModels.filter(({ model }) => model === name)));
  const loop = new Conversation(clientNamed(kind), stream).ask('turns=6 three: the weather');
  rig.down.add(to);
  for (let turn = 0; turn < before; turn += 1) loop.take(await loop.post(rig.core));
  rig.down.clear();
  rig.down.add(from);
  const over = await loop.post(rig.core);
  loop.take(over);
  // Its cooldown ends.
  await rig.core.clock.run(rig.core.clock.sleep(30 * minutes));
  rig.down.clear();
  rig.down.add(to);
  const back = await loop.post(rig.core);
  loop.take(back);
  return { rig, over, back };
}

interface Move {
  from: string;
  to: string;
  kind: string;
  stream: boolean;
  before: number;
}

const moves = fc
  .record({
    from: fc.constantFrom(...models),
    to: fc.constantFrom(...models),
    kind: fc.constantFrom(...loopClients.map(({ kind }) => kind)),
    stream: fc.boolean(),
    before: fc.integer({ min: 1, max: 3 }),
  })
  .filter(({ from, to }) => from !== to)
  // Nobody knows whose reasoning between tags was, so a strict server is asked twice: see lost-state.test.ts.
  .filter(({ from, to, kind }) => ![from, to].includes('picky-think') || !kind.includes('whole messages'));

describe('a conversation that goes over to another vendor in the middle of a tool loop, and back', () => {
  it('is refused by neither, and says each time whether reasoning was left out', async () => {
    await fc.assert(
      fc.asyncProperty(moves, async (move) => {
        const { rig, over, back } = await moveOver(move);
        expect(rig.calls.filter(({ status }) => status !== 200)).toEqual([]);
        expect(rig.calls.slice(-2).map(({ body }) => body['model'])).toEqual([move.to, move.from]);
        const { from, to } = move;
        expect(rig.core.faults).toEqual([]);
        // What a client wrote itself goes up to upstreams of the same form.
        if (move.kind.includes('whole messages')) return;
        const said = (isLost: boolean) => (isLost ? 'reasoning' : undefined);
        expect([over, back].map(({ headers }) => headers['x-relay-dropped'])).toEqual([
          said(losesState(from, to)),
          said(losesState(to, from)),
        ]);
      }),
      { numRuns: 250, seed: 10 },
    );
  });
});
