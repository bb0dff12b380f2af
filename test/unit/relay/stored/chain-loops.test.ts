/** Tool loops whose conversations the relay has, through the whole core, against every double. */
import { beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import type { RigOptions } from '../../../support/core-rig.ts';
import { clientNamed, Conversation, storingClients } from '../../../support/loop-clients.ts';
import { vendorModels, VendorRig } from '../../../support/vendor-rig.ts';

const kinds = storingClients.map(({ kind }) => kind);
const options: RigOptions = { settings: { store: { allKeys: true, days: 30, eventMinutes: 10 } } };
/** A task that the doubles understand. */
const task = 'turns=8 three interleave explain: the weather';

/** Runs a whole loop and returns the body that each call sent upstream. */
async function sentUp(model: string, kind: string, stream: boolean) {
  const rig = new VendorRig(
    vendorModels.filter((one) => one.model === model),
    options,
  );
  // For clients of this kind, the stored responses hold all earlier turns, so no turn state may be read.
  if (kinds.includes(kind))
    rig.core.turnStates.before = () => Promise.reject(new StoreUnavailable('not to be needed'));
  const loop = new Conversation(clientNamed(kind), stream).ask(task);
  const { text, turns, answers } = await loop.run(rig.core);
  expect(turns).toBe(8);
  expect(rig.objections).toEqual([]);
  expect(new Set(answers.map(({ headers }) => headers['x-relay-dropped']))).toEqual(new Set([undefined]));
  expect(rig.core.faults.filter((fault) => !(fault instanceof StoreUnavailable))).toEqual([]);
  return { text, bodies: rig.calls.map(({ body }) => body) };
}

describe.each(vendorModels.map(({ model }) => model))('in a loop of 8 turns with tools of %s', (model) => {
  let sent: Awaited<ReturnType<typeof sentUp>>;
  beforeAll(async () => {
    sent = await sentUp(model, 'a Responses client that keeps encrypted reasoning', true);
  });

  it.each(kinds)(
    '%s causes the same upstream requests as a client that sends the whole conversation',
    async (kind) => {
      const stored = await sentUp(model, kind, true);
      expect(stored.text).toBe(sent.text);
      expect(stored.bodies).toEqual(sent.bodies);
    },
  );
});
