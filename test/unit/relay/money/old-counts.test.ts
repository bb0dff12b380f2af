import { expect, it } from 'vitest';
import { accountRate } from '../../../../shared/billing/quota-item.ts';
import { ReservationsRig } from '../../../support/reservations-rig.ts';

/** An account whose item has counts of so many keys, as versions before parts kept them. */
function oldRig(keys: number): ReservationsRig {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 1_000n);
  const minute = Math.floor(rig.clock.now() / 60_000) - 10;
  for (let key = 0; key < keys; key += 1) {
    rig.item?.rate.set(`old ${key}`, { minute, count: 4 });
    rig.item?.busy.set(`old ${key}`, 0);
  }
  return rig;
}

const call = async (rig: ReservationsRig): Promise<void> => rig.close(await rig.reserve(), 1n);

it('an item that counts of keys made large is small again after some calls, which pay the same', async () => {
  const rig = oldRig(100);
  for (let calls = 0; calls < 3; calls += 1) await call(rig);
  expect(rig.item).toMatchObject({ rate: new Map(), busy: new Map(), spent: 3n, available: 997n });
  expect(rig.store.sent.filter((operation) => operation === 'dropCounts')).toHaveLength(3);
  await call(rig);
  expect(rig.store.sent.slice(-2)).toEqual(['reserve', 'close']);
});

it('counts that an older version may still change stay, and so does the account’s own minute', async () => {
  const rig = oldRig(0);
  const now = Math.floor(rig.clock.now() / 60_000);
  rig.item?.rate.set('current', { minute: now - 1, count: 4 });
  rig.item?.rate.set(accountRate, { minute: now - 30, count: 4 });
  rig.item?.busy.set('runs', 1);
  await call(rig);
  expect([...(rig.item?.rate.keys() ?? [])]).toEqual(['current', accountRate]);
  expect(rig.item?.busy).toEqual(new Map([['runs', 1]]));
  expect(rig.store.sent).toEqual(['reserve', 'close']);
});

it('a call does not fail if the store does not drop what is old', async () => {
  const rig = oldRig(5);
  rig.store.meets('dropCounts', 'busy');
  await call(rig);
  expect(rig.item).toMatchObject({ spent: 1n, open: new Map() });
  await call(rig);
  expect(rig.item?.rate.size).toBe(0);
});
