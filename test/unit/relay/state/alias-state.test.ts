/** Turn states of a conversation with an alias are bound to the model that answered. */
import { expect, it, vi } from 'vitest';
import { CoreRig, keyRow, type RigOptions } from '../../../support/core-rig.ts';
import { kept, plain, statesSent, turn1, turn2, withState } from './tool-loop.ts';

vi.mock('../../../../shared/upstreams/dialects/dialects.ts', async () => {
  const { statefulRegistry } = await import('../../../support/stateful-dialects.ts');
  return statefulRegistry;
});

const aliased: RigOptions = {
  channels: [
    { id: 'first', models: ['small'] },
    { id: 'second', models: ['large'] },
  ],
  settings: { aliases: [{ name: 'm', models: ['small', 'large'], onContextLength: false }] },
};

/** A first turn that the second model answered. */
async function started(): Promise<CoreRig> {
  const rig = new CoreRig(aliased).upstream({ status: 500 }, withState);
  expect((await rig.post(turn1)).headers['x-relay-model']).toBe('large');
  return rig;
}

it('a conversation returns to the model that answered, with its state', async () => {
  const rig = await started();
  const fresh = new CoreRig({ ...aliased, beside: rig }).upstream(withState);
  expect((await fresh.post(turn2())).headers['x-relay-model']).toBe('large');
  expect(statesSent(fresh)).toEqual(kept);
  expect(fresh.sent).toHaveLength(1);
});

it('a key never gets the state of a model that it may not use', async () => {
  const rig = await started();
  const keys = { 'sk-test': { row: keyRow({ models: ['small'] }) } };
  const fresh = new CoreRig({ ...aliased, keys, beside: rig }).upstream(plain);
  expect((await fresh.post(turn2())).headers['x-relay-model']).toBe('small');
  expect(statesSent(fresh)).toEqual([]);
});
