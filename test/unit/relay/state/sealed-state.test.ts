/** State of turns that clients keep, sealed. */
import { describe, expect, it, vi } from 'vitest';
import { CoreRig, hello, keyRow, type RigOptions } from '../../../support/core-rig.ts';
import { createSealer } from '../../../../shared/adapters/system/node-ports.ts';
import { chatEndpoint } from '../../../../shared/endpoints/chat/chat-endpoint.ts';
import type { Endpoint, SealedState } from '../../../../shared/endpoints/endpoint.ts';
import type { ChatMessage } from '../../../../shared/wire/canonical-call.ts';
import { calledTurn, kept, turn1, turn2, statesSent, withState } from './tool-loop.ts';

vi.mock('../../../../shared/upstreams/dialects/dialects.ts', async () => {
  const { statefulRegistry } = await import('../../../support/stateful-dialects.ts');
  return statefulRegistry;
});

/** Chat, but `x_seal` of a message is a seal that came back, and the answer ends with the seal of an item `rs_1`. */
const sealing: Endpoint = {
  ...chatEndpoint,
  read(body, headers) {
    const read = chatEndpoint.read(body, headers);
    const seals = read.call.request.messages.flatMap((message, index): [ChatMessage, SealedState][] => {
      const { x_seal: text, x_item: itemId } = message as { x_seal?: string; x_item?: string };
      const param = `input[${index}].encrypted_content`;
      return text === undefined ? [] : [[message, { text, itemId, param }]];
    });
    return {
      ...read,
      sealed: new Map(seals),
      keepsState: true,
      renderer(identity, facts) {
        const renderer = read.renderer(identity, facts);
        return {
          ...renderer,
          end: () => [...[...renderer.end()].flat(), `seal: ${facts.sealedState('rs_1') ?? 'none'}`],
        };
      },
    };
  },
};

const sealOf = (text: string): string => /seal: (.*)$/.exec(text)?.[1] ?? '';

async function sealed(options: RigOptions = {}) {
  const rig = new CoreRig({ endpoint: sealing, ...options });
  const { text } = await rig.upstream(withState).post(turn1);
  return { rig, seal: sealOf(text) };
}

const sealedTurn2 = (seal: string, itemId?: string) =>
  turn2({ ...calledTurn(), x_seal: seal, ...(itemId !== undefined && { x_item: itemId }) });

describe('a seal', () => {
  it('restores the state with or without its item id, and nothing is stored', async () => {
    const { rig, seal } = await sealed();
    expect(seal).toMatch(/^relay1\.1\.[\w-]+$/);
    for (const itemId of ['rs_1', undefined]) {
      await rig.post(sealedTurn2(seal, itemId));
      expect(statesSent(rig)).toEqual(kept);
    }
    expect([rig.turnStates.puts, rig.turnStates.reads]).toEqual([0, []]);
    expect(rig.learned.written).toEqual([]);
  });

  it('of an unfinished turn matches the whole turn, but not a turn with other calls', async () => {
    const { rig, seal } = await sealed();
    const [call] = calledTurn().tool_calls;
    const more = {
      ...calledTurn(),
      tool_calls: [call, { ...call, id: 'call_after_the_seal' }],
      x_seal: seal,
    };
    await rig.post(turn2(more));
    expect(statesSent(rig)).toEqual(kept);
    const other = { ...calledTurn('call_of_another_turn'), x_seal: seal };
    const answer = await rig.post(turn2(other));
    expect(statesSent(rig)).toEqual([]);
    expect(answer.headers['x-relay-dropped']).toBe('reasoning');
  });

  const others: [string, RigOptions & { model?: string; itemId?: string }][] = [
    ['a removed key', { sealKeys: [{ number: 2, secret: 'second' }] }],
    ['another account', { keys: { 'sk-test': { row: keyRow({ account: 'other' }) } } }],
    ['another model', { channels: [{ models: ['m', 'n'] }], model: 'n' }],
    ['another item', { itemId: 'rs_2' }],
    ['another channel', { channels: [{ id: 'other' }] }],
  ];
  it.each(others)('of %s is left out and named, and never sent', async (_case, other) => {
    const { model = 'm', itemId, ...options } = other;
    const { rig, seal } = await sealed();
    const next = new CoreRig({ beside: rig, endpoint: sealing, ...options }).upstream({ steps: hello });
    const answer = await next.post({ ...sealedTurn2(seal, itemId), model });
    expect(answer.status).toBe(200);
    expect(statesSent(next)).toEqual([]);
    expect(answer.headers['x-relay-dropped']).toBe('reasoning');
  });

  it('of a turn that the relay also keeps is used without a lookup', async () => {
    const { rig, seal } = await sealed();
    const chat = new CoreRig({ beside: rig });
    await chat.upstream(withState).post(turn1);
    await new CoreRig({ beside: chat, endpoint: sealing }).upstream(withState).post(sealedTurn2(seal));
    expect(rig.turnStates.kept.size).toBe(1);
    expect(rig.turnStates.reads).toEqual([]);
  });
});

describe('the sealer', () => {
  const sealer = createSealer([{ number: 7, secret: 'x' }]);
  const bytesOf = (seal: string): Buffer => Buffer.from(seal.split('.')[2] ?? '', 'base64url');
  const withBytes = (bytes: Buffer): string => `relay1.7.${bytes.toString('base64url')}`;

  it('detects every changed byte', () => {
    const bytes = bytesOf(sealer.seal('some state'));
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      // The first bytes name the key.
      expect(sealer.open(withBytes(changed))).toBe(at < 4 ? 'unknown_key' : 'damaged');
    }
  });

  it('rejects a seal with a changed key number', () => {
    const two = createSealer([
      { number: 7, secret: 'x' },
      { number: 8, secret: 'x' },
    ]);
    expect(two.open(sealer.seal('a').replace('.7.', '.8.'))).toBe('damaged');
  });

  it('stops inflating at a limit', () => {
    expect(sealer.open(sealer.seal('x'.repeat(17 * 1024 * 1024)))).toBe('damaged');
  });
});
