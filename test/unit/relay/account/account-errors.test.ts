import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccountRig } from './account-rig.ts';

const key = `sk-${'a'.repeat(48)}`;
let rig: AccountRig;
beforeAll(async () => {
  rig = await AccountRig.start();
  await rig.putKey(key, { account: 'acme' });
});
afterAll(() => rig.stop());

const hourOf = (time: string): number => Date.parse(time) / 1000;

describe('the error counts of an account', () => {
  it('cover the last 24 hours by hour and code, for this account only', async () => {
    const add = (account: string, hour: string, counts: Record<string, number>): Promise<void> =>
      rig.refusals.add({ account, hour, counts });
    await add('acme', '2026-11-20T09', { insufficient_quota: 7 });
    await add('acme', '2026-11-21T11', { insufficient_quota: 2, upstream_timeout: 1 });
    await add('acme', '2026-11-21T11', { insufficient_quota: 3 });
    await add('acme', '2026-11-20T12', { internal: 1 });
    await add('other', '2026-11-21T11', { invalid_value: 9 });
    // A count that somebody edited to invalid text is skipped; the others are still listed.
    await rig.put('daily', { id: 'refused#acme', period: 'hour#2026-11-20T13', code_internal: 'many' });
    expect((await rig.get('/v1/account', key)).body['errors']).toEqual([
      { hour: hourOf('2026-11-21T11:00:00Z'), code: 'insufficient_quota', count: 5 },
      { hour: hourOf('2026-11-21T11:00:00Z'), code: 'upstream_timeout', count: 1 },
      { hour: hourOf('2026-11-20T12:00:00Z'), code: 'internal', count: 1 },
    ]);
  });
});
