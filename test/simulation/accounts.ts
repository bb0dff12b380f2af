import { AccountRow } from '../../shared/config/rows/account-row.ts';
import { ChannelRow } from '../../shared/config/rows/channel-row.ts';
import { ChargeRow } from '../../shared/config/rows/charge-row.ts';
import { KeyRow } from '../../shared/config/rows/key-row.ts';
import { PlanRow } from '../../shared/config/rows/plan-row.ts';
import { emptySnapshot, type Snapshot } from '../../shared/config/snapshot.ts';
import { defaultSettings } from '../../shared/config/settings/settings.ts';
import type { SeededRandom } from './seeded-random.ts';

/** The plans' months turn some minutes after the world began. */
export const startMs = Date.UTC(2026, 10, 20, 23, 54);

export const models = ['by-token', 'by-call', 'free'] as const;

const channel = ChannelRow.parse({
  id: 'main',
  endpoint: 'https://upstream.test/v1',
  models: [...models],
  state: true,
});
export const channels: [ChannelRow] = [channel];

/** 0.001 and 0.002 yuan a token; 0.05 a call. */
export const snapshot: Snapshot = {
  ...emptySnapshot(startMs / 1000),
  channels,
  charges: [
    ChargeRow.parse({ id: 1, type: 'token-billing', models: ['by-token'], input: 1, output: 2 }),
    ChargeRow.parse({ id: 2, type: 'times-billing', models: ['by-call'], output: 0.05 }),
  ],
  plans: [
    PlanRow.parse({
      level: 1,
      items: [
        { id: 'a', value: 2, models: ['by-token'] },
        { id: 'b', value: 3, models: ['by-token', 'by-call'] },
      ],
    }),
    PlanRow.parse({
      level: 2,
      items: [
        { id: 'a', value: 4, models: ['by-token'] },
        { id: 'c', value: -1, models: ['by-call'] },
      ],
    }),
  ],
  settings: { ...defaultSettings, subscriptionEnabled: true },
};

export interface Customer {
  account: AccountRow;
  keys: [KeyRow, ...KeyRow[]];
}

const sinces = ['2026-09-21T00:00:00Z', '2026-11-01T00:00:00Z'] as const;

export function makeCustomers(random: SeededRandom): [Customer, ...Customer[]] {
  const make = (number: number): Customer => {
    const account = `account${number}`;
    const plan = random.chance(0.5) ? { level: random.integer(1, 2), since: random.pick(sinces) } : undefined;
    const key = (position: number): KeyRow =>
      KeyRow.parse({
        hash: `${number}${position}`.padEnd(64, 'a'),
        account,
        official: random.chance(0.2),
        ...(random.chance(0.4) && { max_concurrency: random.integer(1, 3) }),
        ...(random.chance(0.4) && { rpm: random.integer(1, 5) }),
      });
    return { account: AccountRow.parse({ account, plan }), keys: [key(0), key(1)] };
  };
  const more = Array.from({ length: random.integer(0, 4) }, (_, index) => make(index + 1));
  return [make(0), ...more];
}
