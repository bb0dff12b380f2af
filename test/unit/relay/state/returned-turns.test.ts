import { describe, expect, it } from 'vitest';
import { openSeals, TurnStates, sealTurn } from '../../../../shared/relay/state/turn-states.ts';
import type { Sealer } from '../../../../shared/relay/ports/host.ts';
import type { ChatMessage } from '../../../../shared/wire/canonical-call.ts';

const binding = { account: 'acme', model: 'm' };
const origin = { dialect: 'chat', channel: 'main', secret: '', model: 'm' };

/** Seals nothing, and counts what it opens. */
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

function added(count: number, length: number) {
  const sealer = new CountingSealer();
  const turns = new TurnStates(sealer, { account: binding.account, models: [binding.model] });
  const state = { origin, callIds: [], parts: [{ opaque: { text: 'x'.repeat(length) } }] };
  const text = sealTurn(sealer, binding, { state, itemId: '' });
  const messages = Array.from({ length: count }, (): ChatMessage => ({ role: 'assistant', content: 'a' }));
  for (const message of messages)
    expect(turns.add(message, { text, itemId: undefined, whole: false })).toBe(true);
  return { opens: sealer.opens, kept: [...turns.states.keys()], dropped: turns.dropped, messages };
}

describe('seals that came back', () => {
  it('are opened up to 200; the others are left out, and that is said', () => {
    const { opens, kept, dropped, messages } = added(205, 1);
    expect(opens).toBe(200);
    expect(kept).toEqual(messages.slice(0, 200));
    expect(dropped).toBe(true);
  });

  it('are not opened once those before them pass 16 MB', () => {
    const { opens, kept, dropped } = added(20, 6 * 1024 * 1024);
    expect([opens, kept.length, dropped]).toEqual([3, 2, true]);
  });

  it('are opened for the newest turns, the others left out a hundred at a time', () => {
    const sealer = new CountingSealer();
    const state = { origin, callIds: [], parts: [{ opaque: { text: 'x' } }] };
    const text = sealTurn(sealer, binding, { state, itemId: '' });
    const messages = Array.from({ length: 201 }, (): ChatMessage => ({ role: 'assistant', content: 'a' }));
    const sealed = new Map(messages.map((one) => [one, { text, itemId: undefined, param: 'input' }]));
    const call = { form: 'responses', request: { model: 'm', messages }, unknown: {} };
    const turns = openSeals(sealer, { account: binding.account, models: [binding.model] }, { call, sealed });
    expect([...turns.states.keys()]).toEqual(messages.slice(-101).toReversed());
    expect(turns.dropped).toBe(true);
  });
});
