/** State of turns that the relay keeps, for clients that send back standard fields only. */
import { describe, expect, it, vi } from 'vitest';
import { CoreRig, hello, keyRow, type RigOptions } from '../../../support/core-rig.ts';

import { calling } from '../../../support/stateful-dialects.ts';
import {
  calledTurn,
  callId,
  kept,
  plain,
  startLoop,
  statesSent,
  turn1,
  turn2,
  withState,
} from './tool-loop.ts';

vi.mock('../../../../shared/upstreams/dialects/dialects.ts', async () => {
  const { statefulRegistry } = await import('../../../support/stateful-dialects.ts');
  return statefulRegistry;
});

const two: RigOptions = {
  channels: [
    { id: 'first', priority: 2, secret: 'ssm:/relay/a' },
    { id: 'second', priority: 1 },
  ],
};
const days = (count: number): number => count * 24 * 60 * 60 * 1000;

describe('the second turn of a tool loop', () => {
  it('is sent with the state of the first, even from another environment', async () => {
    const rig = new CoreRig();
    await startLoop(rig);
    const fresh = new CoreRig({ beside: rig }).upstream(withState);
    expect((await fresh.post(turn2())).status).toBe(200);
    expect(statesSent(fresh)).toEqual(kept);
    expect(rig.turnStates.reads).toEqual([[callId]]);
  });

  it.each([
    ['of a removed key', { sealKeys: [{ number: 2, secret: 'other' }] }],
    ['of another key under the same number', { sealKeys: [{ number: 1, secret: 'made anew' }] }],
    ['of a removed channel', { channels: [{ id: 'other' }] }],
    ['of another model of the upstream', { channels: [{ id: 'main', mapper: { m: 'newer' } }] }],
    ['of another secret of the channel', { channels: [{ id: 'main', secret: 'ssm:/relay/b' }] }],
  ])('leaves out the state %s and names it', async (_case, options) => {
    const rig = new CoreRig();
    await startLoop(rig);
    const fresh = new CoreRig({ beside: rig, ...options }).upstream(withState);
    const answer = await fresh.post(turn2());
    expect(answer.status).toBe(200);
    expect(statesSent(fresh)).toEqual([]);
    expect(answer.headers['x-relay-dropped']).toBe('reasoning');
    expect(fresh.logged[0]?.dropped).toEqual(['reasoning']);
  });

  it('leaves out the state of another account without a trace', async () => {
    const rig = new CoreRig();
    await startLoop(rig);
    const keys = { 'sk-test': { row: keyRow({ account: 'other' }) } };
    const fresh = new CoreRig({ beside: rig, keys }).upstream(withState);
    const answer = await fresh.post(turn2());
    expect(statesSent(fresh)).toEqual([]);
    expect(answer.headers).not.toHaveProperty('x-relay-dropped');
  });

  it('leaves out a state whose calls differ from those of the turn', async () => {
    const rig = new CoreRig();
    await startLoop(rig);
    const [call] = calledTurn().tool_calls;
    const more = { ...calledTurn(), tool_calls: [call, { ...call, id: 'call_that_was_not_made' }] };
    await rig.post(turn2(more));
    expect(statesSent(rig)).toEqual([]);
  });

  it.each([
    [
      'a call',
      { ...calledTurn(), tool_calls: [{ ...calledTurn().tool_calls[0], extra_content: { google: {} } }] },
    ],
    ['reasoning details', { ...calledTurn(), reasoning_details: [{ type: 'x' }] }],
  ])(
    "reads no store when the client sends the upstream's own field back with %s",
    async (_case, assistant) => {
      const rig = new CoreRig();
      await startLoop(rig);
      await rig.post(turn2(assistant));
      expect(rig.turnStates.reads).toEqual([]);
    },
  );

  it('goes first to the channel and secret that the state came from', async () => {
    const rig = new CoreRig(two).upstream({ status: 500 }, withState);
    await rig.post(turn1);
    expect(rig.logged[0]?.channel).toBe('second');
    await rig.post(turn2());
    expect(rig.logged[1]?.attempts).toEqual([{ channel: 'second', outcome: 'answered' }]);
    expect(statesSent(rig)).toEqual(kept);
  });

  it.each([
    [200, 200],
    [201, 101],
    [300, 200],
    [301, 101],
  ])(
    'with %i turns looks up the newest %i: older turns are left out a hundred at a time',
    async (count, found) => {
      const rig = new CoreRig();
      await startLoop(rig);
      const ids = Array.from({ length: count }, (_, i) => `call_of_some_turn_number_${i}`);
      const messages = ids.flatMap((id) => turn2(calledTurn(id), id).messages.slice(1));
      await rig.post({ ...turn1, messages });
      expect(rig.turnStates.reads[0]).toEqual(ids.toReversed().slice(0, found));
    },
  );
});

describe('a model without state', () => {
  it('causes no write, and no read once it answered with calls', async () => {
    const rig = new CoreRig().upstream(plain);
    await rig.post(turn1);
    for (let turn = 0; turn < 5; turn += 1) await rig.post(turn2());
    expect(rig.turnStates.puts).toBe(0);
    expect(rig.turnStates.reads).toEqual([]);
    expect(rig.learned.written).toEqual([]);
  });

  it('causes one read in an environment that does not know it yet', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    for (let turn = 0; turn < 5; turn += 1) await rig.post(turn2());
    expect(rig.turnStates.reads).toHaveLength(1);
    expect(rig.turnStates.puts).toBe(0);
  });
});

describe('a model that keeps state', () => {
  it('is recorded once, and again before its states outlive the record', async () => {
    const rig = new CoreRig();
    await startLoop(rig);
    await startLoop(rig);
    expect(rig.learned.written).toMatchObject([{ fact: 'keeps_state', channel: 'main', model: 'm' }]);
    await rig.clock.run(rig.clock.sleep(days(31)));
    await startLoop(rig);
    expect(rig.learned.written).toHaveLength(2);
  });
});

describe('the finish chunk', () => {
  /** When the call and when the finish reason were sent, in ms. */
  async function times(rig: CoreRig) {
    const { said } = await rig.upstream(withState).post(turn1);
    const at = (text: string) => said.find((one) => one.text.includes(text))?.atMs;
    return { call: at(callId), finish: at('"finish_reason":"tool_calls"') };
  }

  it('waits for the state to be written, but the call before it does not', async () => {
    const rig = new CoreRig();
    rig.turnStates.before = () => rig.clock.sleep(120);
    expect(await times(rig)).toEqual({ call: 0, finish: 120 });
  });

  it('waits 300 ms at most, and the write continues before the invocation ends', async () => {
    const rig = new CoreRig();
    rig.turnStates.before = () => rig.clock.sleep(2_000);
    expect(await times(rig)).toEqual({ call: 0, finish: 300 });
    expect(rig.turnStates.kept.size).toBe(1);
    expect(rig.events).toEqual([]);
  });
});

describe('a failing state store', () => {
  it('logs a state that is too large for it', async () => {
    const rig = new CoreRig();
    const noise = Array.from({ length: 300_000 }, (_, i) => Math.imul(i + 1, 0x9e3779b1).toString(36)).join(
      '',
    );
    await rig.upstream({ steps: calling(callId, { noise }) }).post(turn1);
    expect(rig.events[0]?.fields['why']).toBe('too_large');
  });

  it('delays a turn for at most a second', async () => {
    const rig = new CoreRig();
    await startLoop(rig);
    rig.turnStates.before = () => rig.clock.sleep(5_000);
    const { said } = await rig.upstream({ steps: hello }).post(turn2());
    expect(said[0]?.atMs).toBe(1_000);
    expect(rig.events[0]?.fields['why']).toBe('read_late');
  });

  it('leaves no timer behind when the reservation is rejected first', async () => {
    const rig = new CoreRig({
      charges: [{ id: 1, type: 'token-billing', models: ['m'], input: 1, output: 1 }],
    });
    rig.turnStates.before = () => new Promise(() => {});
    const answer = await rig.post(turn2());
    expect(answer.status).toBe(429);
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
