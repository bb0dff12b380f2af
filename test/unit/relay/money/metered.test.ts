import { expect, it } from 'vitest';
import { firstCounter } from '../../../../shared/billing/shares.ts';
import { closeExpired, findImbalance, type QuotaItem } from '../../../../shared/billing/quota-item.ts';
import type { Reservation } from '../../../../shared/relay/money/open-reservation.ts';
import { ReservationsRig, slot } from '../../../support/reservations-rig.ts';

const metered = { metered: true };

/** An account that owes five. */
function rigInDebt(): ReservationsRig {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', -5n);
  return rig;
}

const sums = (rig: ReservationsRig): QuotaItem => rig.memory.whole('acme')!;

it('calls of a metered account start in debt, reserve nothing, and leave the debt unchanged', async () => {
  const rig = rigInDebt();
  const call = await rig.reserve(metered);
  expect(call).toMatchObject({ payment: { amount: 0n }, entry: { amount: 0n, metered: true } });
  expect(call.shard).toBeGreaterThanOrEqual(firstCounter);
  await rig.close(call, 40n);
  expect(sums(rig)).toMatchObject({ available: -5n, spent: 40n, metered: 40n, granted: -5n });
  expect(findImbalance(sums(rig))).toBeUndefined();
  await expect(rig.reserve()).rejects.toThrow('refused: quota');
});

it('a call settles as it was accepted after the row’s metered flag changes', async () => {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 100_000n);
  const bounded = await rig.reserve();
  const counted = await rig.reserve(metered);
  expect(sums(rig).available).toBe(99_990n);
  await rig.close(counted, 70n);
  await rig.close(bounded, 30n);
  expect(sums(rig)).toMatchObject({ available: 99_970n, spent: 100n, metered: 70n, open: new Map() });
  expect(findImbalance(sums(rig))).toBeUndefined();
});

it('limits and plans apply to a metered account, but its balance does not limit it', async () => {
  const rig = rigInDebt();
  const limited = { ...metered, maxConcurrency: 1 };
  const call = await rig.reserve(limited);
  expect(call.shard).toBe(0);
  await expect(rig.reserve(limited)).rejects.toThrow('refused: concurrency');
  await expect(rig.reserve({ ...metered, accountConcurrency: 1 })).rejects.toThrow('refused: open_entries');
  await rig.close(call, 40n);
  const planned = { ...metered, slots: [slot('chat', 1)] };
  expect(await rig.reserve(planned)).toMatchObject({ payment: { slot: { itemId: 'chat' } } });
  expect(await rig.reserve(planned)).toMatchObject({ entry: { slot: '', metered: true } });
  expect(sums(rig)).toMatchObject({ available: -5n, metered: 40n });
});

it('overdrawn shards of a metered account are neither joined nor gathered for its calls', async () => {
  const rig = rigInDebt();
  for (const [name, item] of rig.memory.items) rig.memory.items.set(name, { ...item, overdraft: true });
  const call = await rig.reserve({ ...metered, accountRpm: 9 });
  await rig.close(call, 8n);
  expect(rig.memory.calls).not.toContain('move');
  expect(rig.item).toMatchObject({ available: -5n, metered: 8n, overdraft: true });
});

async function crashed(rig: ReservationsRig): Promise<Reservation> {
  const call = await rig.reserve(metered);
  const counter = rig.memory.items.get(`acme#${call.shard}`)!;
  for (const write of closeExpired(counter, call.entry.until + 121, 120)) await rig.memory.close(write);
  return call;
}

it('a crashed metered call is charged its input, and the difference if it ends later', async () => {
  const rig = rigInDebt();
  const call = await crashed(rig);
  expect(sums(rig)).toMatchObject({ spent: 10n, metered: 10n, open: new Map() });
  await rig.close(call, 35n);
  expect(sums(rig)).toMatchObject({ available: -5n, spent: 35n, metered: 35n });
  expect(findImbalance(sums(rig))).toBeUndefined();
});
