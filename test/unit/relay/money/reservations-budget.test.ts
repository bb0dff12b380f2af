import { describe, expect, it } from 'vitest';
import { budgetUseOf, closeRowBetween } from '../../../../shared/billing/ledger-row.ts';
import { closeExpired } from '../../../../shared/billing/quota-item.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { ReservationsRig } from '../../../support/reservations-rig.ts';

const counter = { key: 'key1', period: '2026-11-21', expires: 2e9 };
const budget = { counter, call: 'call1', most: 50_000n, resetsAtMs: Date.UTC(2026, 10, 22) };

function rigWithBudget() {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 1_000_000n);
  const used = (): bigint | undefined => rig.counters.budgets.get('key1#2026-11-21')?.used;
  return { rig, used, request: { ...rig.reservationRequest(), budget } };
}

/** The sweeper closes what is open, and the projector puts the row of it. */
async function expire(rig: ReservationsRig): Promise<void> {
  const before = rig.item;
  for (const write of before ? closeExpired(before, rig.clock.now() / 1000, 120) : []) {
    await rig.memory.close(write);
    const row = closeRowBetween(before, rig.item);
    if (row) await rig.counters.change(counter, budgetUseOf(row));
  }
}

describe('what a call holds of the budget of its key', () => {
  it('is free again when the store never took the reserve', async () => {
    const { rig, used, request } = rigWithBudget();
    rig.store.always('dropped', 'reserve');
    await expect(rig.reserve(request)).rejects.toThrow(StoreUnavailable);
    expect(rig.item?.open.size).toBe(1);
    expect(used()).toBe(0n);
  });

  it('is not released twice when the call slept until its reserve had expired', async () => {
    const { rig, used, request } = rigWithBudget();
    const { reserve } = rig.store;
    rig.store.reserve = async (write) => {
      await reserve(write);
      await rig.clock.sleep(400_000);
      await expire(rig);
      throw new StoreUnavailable('no reply');
    };
    await rig.counters.change(counter, { used: 20_000n, running: 0 });
    await expect(rig.reserve(request)).rejects.toThrow(StoreUnavailable);
    // The expiry charged the input.
    expect(used()).toBe(20_010n);
  });
});
