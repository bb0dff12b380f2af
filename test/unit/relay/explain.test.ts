import { describe, expect, it } from 'vitest';

import { BillingRig, small, yuan } from '../../support/billing-rig.ts';
import { hello } from '../../support/core-rig.ts';

const pair = [
  { id: 'first', priority: 3 },
  { id: 'second', priority: 2, endpoint: 'https://second.test/v1' },
  { id: 'third', priority: 1, endpoint: 'https://third.test/v1' },
];
const errorBody = (code: string, message: string): string => JSON.stringify({ error: { code, message } });
const canary = 'CANARY-4711';

describe('the log line of a call', () => {
  it('names each candidate tried, with its failure and time, and the reserved amount', async () => {
    const rig = new BillingRig({ channels: pair }).granted(yuan);
    rig.upstream(
      { status: 503 },
      { status: 429, steps: [errorBody('rate_limit_exceeded', canary)] },
      { steps: hello },
    );
    await rig.call(small);
    expect(rig.logged).toMatchObject([
      {
        status: 200,
        retries: 2,
        account: 'acme',
        attempts: [
          { channel: 'first', outcome: 'upstream_status_503', status: 503, at: 0, ms: 0 },
          { channel: 'second', outcome: 'upstream_status_429', status: 429, code: 'rate_limit_exceeded' },
          { channel: 'third', outcome: 'answered', status: 200 },
        ],
        reserved: { yuan: expect.stringMatching(/^0\.\d+$/) },
        sent: expect.arrayContaining(['messages', 'model']),
      },
    ]);
    expect(JSON.stringify(rig.logged)).not.toContain(canary);
  });

  it('names the candidates that were skipped, with the reason', async () => {
    const rig = new BillingRig({ channels: pair.slice(0, 2) }).granted(yuan);
    rig.upstream(
      { status: 429, headers: { 'retry-after': '40' } },
      { steps: hello },
      { status: 400, steps: [errorBody('invalid_value', canary)] },
    );
    await rig.call(small);
    await rig.call(small);
    expect(rig.logged[1]).toMatchObject({
      code: 'invalid_value',
      attempts: [{ channel: 'second', outcome: 'refused', status: 400 }],
      passed_over: [{ channel: 'first', why: 'blocked', kind: 'rate_limit', seconds: 40 }],
    });
  });

  it('shows the needed and the free amount of a refused call', async () => {
    const rig = new BillingRig().granted(1000n).upstream({ steps: hello });
    await rig.call(small);
    expect(rig.logged).toMatchObject([
      {
        status: 429,
        code: 'insufficient_quota',
        facts: { needed: expect.any(String), free: '0.000001' },
      },
    ]);
  });

  it('holds only known words of an upstream’s error', async () => {
    const rig = new BillingRig().granted(yuan);
    const body = JSON.stringify({ error: { code: canary, message: canary, param: canary, type: canary } });
    rig.upstream({ status: 400, headers: { 'content-type': 'application/json' }, steps: [body] });
    await rig.call(small);
    expect(rig.logged).toMatchObject([{ status: 400, param: true }]);
    expect(JSON.stringify(rig.logged)).not.toContain(canary);
  });
});

describe('the counts of refused calls', () => {
  it('are written once a minute, even in a flood', async () => {
    const rig = new BillingRig().granted(1n).upstream({ steps: hello });
    for (let call = 0; call < 100; call += 1) await rig.call(small);
    expect(rig.logged).toHaveLength(100);
    expect(rig.refusals.added).toMatchObject([{ account: 'acme', counts: { insufficient_quota: 1 } }]);
    await rig.clock.run(rig.clock.sleep(60_000));
    await rig.call(small);
    expect(rig.refusals.added.slice(1)).toMatchObject([{ counts: { insufficient_quota: 100 } }]);
  });
});
