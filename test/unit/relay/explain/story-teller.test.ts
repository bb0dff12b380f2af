import { describe, expect, it } from 'vitest';
import { RefusalTally } from '../../../../shared/relay/explain.ts';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';

describe('a flood of refused calls', () => {
  it('of a stranger leaves five stories a minute, and counts for nobody', async () => {
    const rig = new BillingRig().granted(yuan).upstream({ steps: hello });
    for (let call = 0; call < 40; call += 1)
      await rig.call(small, { headers: { authorization: 'Bearer sk-unknown' } });
    expect(rig.logged).toHaveLength(40);
    expect(rig.stories).toHaveLength(5);
    expect(rig.refusals.added).toEqual([]);
    await rig.clock.run(rig.clock.sleep(60_000));
    await rig.call(small, { headers: { authorization: 'Bearer sk-unknown' } });
    expect(rig.stories).toHaveLength(6);
  });

  it('that an upstream refused because of what was sent leaves sixty stories a minute', async () => {
    const refusal = { status: 400, steps: ['{"error":{"message":"no"}}'] };
    const rig = new BillingRig().granted(yuan).upstream(...Array.from({ length: 70 }, () => refusal));
    for (let call = 0; call < 70; call += 1) await rig.call(small);
    expect(rig.logged).toHaveLength(70);
    expect(rig.stories).toHaveLength(60);
  });

  it('of an account leaves sixty stories and one write a minute', async () => {
    const rig = new BillingRig().granted(1n).upstream({ steps: hello });
    for (let call = 0; call < 100; call += 1) await rig.call(small);
    expect(rig.stories).toHaveLength(60);
    expect(rig.refusals.added).toMatchObject([{ account: 'acme', counts: { insufficient_quota: 1 } }]);
    await rig.clock.run(rig.clock.sleep(60_000));
    await rig.call(small);
    expect(rig.refusals.added.slice(1)).toMatchObject([{ counts: { insufficient_quota: 100 } }]);
  });
});

describe('counts that wait', () => {
  it('are written after the next call of the environment, also one that succeeds', async () => {
    const rig = new BillingRig().granted(yuan).upstream({ status: 500 }, { status: 500 }, { steps: hello });
    await rig.call(small);
    await rig.call(small);
    expect(rig.refusals.added).toHaveLength(1);
    await rig.clock.run(rig.clock.sleep(60_000));
    await rig.call(small);
    expect(rig.refusals.added).toMatchObject([
      { counts: { upstream_unavailable: 1 } },
      { counts: { upstream_unavailable: 1 } },
    ]);
  });
});

describe('the tally', () => {
  it('has no more accounts than 200, and gives ten at once', () => {
    const tally = new RefusalTally();
    for (let account = 0; account < 5_000; account += 1) tally.count(`account ${account}`, 'internal', 0);
    let written = 0;
    for (let due = tally.due(1); due.length > 0; due = tally.due(1)) {
      expect(due.length).toBeLessThanOrEqual(10);
      written += due.length;
    }
    expect(written).toBe(200);
    expect(tally.isOpen).toBe(false);
    tally.count('account 5001', 'internal', 61_000);
    expect(tally.due(61_000)).toMatchObject([{ account: 'account 5001' }]);
  });
});
