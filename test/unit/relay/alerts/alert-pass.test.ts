import { expect, it } from 'vitest';
import type { AlertedAccount } from '../../../../shared/config/rows/alerted-account.ts';
import type { KeyRow } from '../../../../shared/config/rows/key-row.ts';
import { createAlertPass } from '../../../../shared/relay/alerts/alert-pass.ts';
import { balanceWatch } from '../../../../shared/relay/alerts/balance-watch.ts';
import { MemoryAlertStores } from '../../../support/memory-alert-stores.ts';

const nowMs = Date.parse('2026-12-30T00:00:00Z');
const soonMs = Date.parse('2026-12-31T00:00:00Z');

function rig(rows: AlertedAccount[], keys: Partial<KeyRow>[] = []) {
  const stores = new MemoryAlertStores();
  const faults: string[] = [];
  const cards: string[] = [];
  const toppedUp: string[] = [];
  const accounts = {
    async *accounts() {
      for (const row of rows) yield [row];
    },
    async *keys() {
      yield keys as KeyRow[];
    },
    row: async (name: string) => rows.find(({ account }) => account === name),
    alertBelow: async () => undefined,
    balance: async (account: string) => {
      if (account === 'broken') throw new Error('unreadable');
      return 5n;
    },
  };
  const parts = {
    marks: stores,
    accounts,
    clock: { now: () => nowMs },
    ids: { next: () => `n${stores.put.length}` },
  };
  const pass = createAlertPass({
    ...parts,
    watch: balanceWatch(parts),
    topUpWatch: {
      active: async (names) => names.filter((name) => cards.includes(name)),
      look: async (name) => void toppedUp.push(name),
    },
    watchUpstreams: async () => {},
    settings: async () => ({ planDays: 7, keyDays: 7 }),
    log: { request: () => {}, event: () => {}, fault: (what) => void faults.push(what) },
  });
  return {
    stores,
    pass,
    faults,
    rows,
    cards,
    toppedUp,
    reported: () => stores.put.map(({ type, account }) => `${type} ${account}`),
  };
}

const key = {
  hash: 'f'.repeat(64),
  account: 'acme',
  agent: 'api',
  enabled: true,
  expires_at: soonMs,
  hint: '',
};

it('reports each date and each low balance once, however often it runs', async () => {
  const rows = [
    { account: 'ending', planUntilMs: soonMs },
    { account: 'ended', planUntilMs: nowMs },
    { account: 'low', alertBelow: 6n },
    { account: 'fine', alertBelow: 5n },
  ];
  const { pass, reported } = rig(rows, [key]);
  for (let run = 0; run < 3; run += 1) await pass();
  expect(reported().toSorted()).toEqual([
    'balance.low low',
    'key.expiring acme',
    'plan.ended ended',
    'plan.ending ending',
  ]);
});

it('continues after an unreadable account and fails at the end', async () => {
  const { pass, reported, faults } = rig([
    { account: 'broken', alertBelow: 6n },
    { account: 'low', alertBelow: 6n },
  ]);
  await expect(pass()).rejects.toThrow('unreadable');
  expect(reported()).toEqual(['balance.low low']);
  expect(faults).toEqual(['alert_balances']);
});

it('tops up the accounts with a usable card', async () => {
  const { pass, cards, toppedUp } = rig([{ account: 'acme' }, { account: 'beta' }]);
  cards.push('beta');
  await pass();
  expect(toppedUp).toEqual(['beta']);
});
