import { expect, it } from 'vitest';
import { balanceWatch } from '../../../../shared/relay/alerts/balance-watch.ts';
import { MemoryAlertStores } from '../../../support/memory-alert-stores.ts';

function rig(balance: bigint) {
  const stores = new MemoryAlertStores();
  const account = { balance, alertBelow: 10n as bigint | undefined };
  const watch = balanceWatch({
    marks: stores,
    accounts: {
      row: async () => ({ account: 'acme', alertBelow: account.alertBelow }),
      alertBelow: async () => account.alertBelow,
      balance: async () => account.balance,
    },
    clock: { now: () => 1_795_000_000_000 },
    ids: { next: () => `n${stores.put.length + 1}` },
  });
  return { stores, account, look: () => watch.look('acme') };
}

it('removing the limit ends the alert, so a new limit reports again', async () => {
  const { stores, account, look } = rig(9n);
  await look();
  account.alertBelow = undefined;
  await look();
  account.alertBelow = 10n;
  await look();
  expect(stores.put).toHaveLength(2);
});

it('simultaneous checks send one notice', async () => {
  const { stores, look } = rig(9n);
  await Promise.all(Array.from({ length: 100 }, look));
  expect(stores.put).toHaveLength(1);
});
