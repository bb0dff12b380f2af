import { describe, expect, it } from 'vitest';
import { openStates, TurnStates, encryptTurn } from '../../../../shared/relay/state/turn-states.ts';
import { WorkBudget } from '../../../../shared/relay/money/admission.ts';
import type { Sealer } from '../../../../shared/relay/ports/host.ts';
import type { ChatMessage } from '../../../../shared/wire/canonical-call.ts';

const binding = { account: 'acme', model: 'm' };
const origin = { dialect: 'chat', channel: 'main', secret: '', model: 'm' };

/** A sealer that does not encrypt and counts its openings. */
class CountingSealer implements Sealer {
  opens = 0;

  seal(text: string): string {
    return text;
  }

  open(text: string): { text: string } {
    this.opens += 1;
    return { text };
  }
}

const stateOf = (text: string) => ({ origin, callIds: [], parts: [{ opaque: { text } }] });
const turn = (): ChatMessage => ({ role: 'assistant', content: 'a' });

/** This many seals of this length. With an `itemId`, all are copies of one seal that belongs to that item. */
function added(count: number, length: number, copies?: { itemId: string }) {
  const sealer = new CountingSealer();
  const turns = new TurnStates(
    sealer,
    { account: binding.account, models: [binding.model] },
    new WorkBudget(),
  );
  const messages = Array.from({ length: count }, turn);
  const state = stateOf('x'.repeat(length));
  for (const [at, message] of messages.entries()) {
    const text = encryptTurn(sealer, binding, { state, itemId: copies ? 'rs' : `rs_${at}` });
    expect(turns.add(message, { text, itemId: copies?.itemId, whole: false })).toBe(true);
  }
  return { opens: sealer.opens, kept: [...turns.states.keys()], dropped: turns.dropped, messages };
}

describe('returned seals', () => {
  it('are opened up to 200; the others are left out and reported', () => {
    const { opens, kept, dropped, messages } = added(205, 1);
    expect(opens).toBe(200);
    expect(kept).toEqual(messages.slice(0, 200));
    expect(dropped).toBe(true);
  });

  it('are not opened after the first 16 MB', () => {
    const { opens, kept, dropped } = added(5, 6 * 1024 * 1024);
    expect([opens, kept.length, dropped]).toEqual([3, 2, true]);
  });

  it('are opened once if they are equal, and sent as often as the limit allows', () => {
    const foreign = added(200, 1024, { itemId: 'rs_other' });
    expect([foreign.opens, foreign.kept.length, foreign.dropped]).toEqual([1, 0, true]);
    const own = added(5, 6 * 1024 * 1024, { itemId: 'rs' });
    expect([own.opens, own.kept.length, own.dropped]).toEqual([1, 2, true]);
  });

  it('count towards the limit even if they do not match', () => {
    const sealer = new CountingSealer();
    const turns = new TurnStates(
      sealer,
      { account: binding.account, models: [binding.model] },
      new WorkBudget(),
    );
    const state = stateOf('x'.repeat(6 * 1024 * 1024));
    for (const at of Array.from({ length: 5 }).keys()) {
      const of = at % 2 === 0 ? { account: 'other', model: 'm' } : { account: 'acme', model: 'other' };
      const text = encryptTurn(sealer, of, { state, itemId: `rs_${at}` });
      turns.add(turn(), { text, itemId: undefined, whole: false });
    }
    expect([sealer.opens, turns.states.size, turns.dropped]).toEqual([3, 0, true]);
  });

  it('are opened for the newest turns, and older ones are left out a hundred at a time', () => {
    const sealer = new CountingSealer();
    const messages = Array.from({ length: 201 }, turn);
    const sealOf = (at: number): string =>
      encryptTurn(sealer, binding, { state: stateOf('x'), itemId: `rs_${at}` });
    const sealed = new Map(
      messages.map((one, at) => [one, { text: sealOf(at), itemId: undefined, param: 'input' }]),
    );
    const call = { form: 'responses', request: { model: 'm', messages }, unknown: {} };
    const turns = openStates(
      sealer,
      { account: binding.account, models: [binding.model] },
      { call, sealed },
      new WorkBudget(),
    );
    expect([...turns.states.keys()]).toEqual(messages.slice(-101).toReversed());
    expect(turns.dropped).toBe(true);
  });
});
