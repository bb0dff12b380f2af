import { describe, expect, it } from 'vitest';
import { jsonLog } from '../../../../shared/adapters/telemetry/json-log.ts';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { delta, done, finish, hello, usage } from '../../../support/core-rig.ts';
import { linesOf } from '../../../support/embedded-metrics.ts';

const pair = [
  { id: 'first', priority: 3 },
  { id: 'second', priority: 2, endpoint: 'https://second.test/v1' },
  { id: 'third', priority: 1, endpoint: 'https://third.test/v1' },
];
const errorBody = (code: string, message: string): string => JSON.stringify({ error: { code, message } });
const canary = 'CANARY-4711';

describe('the story of a call', () => {
  it('is not there for an answer that nobody will ask about', async () => {
    const rig = new BillingRig().granted(yuan).upstream({ steps: hello });
    await rig.call(small);
    expect(rig.stories).toEqual([]);
  });

  it('names each candidate that was tried, with its cause and time, and what was reserved', async () => {
    const rig = new BillingRig({ channels: pair }).granted(yuan);
    rig.upstream(
      { status: 503 },
      { status: 429, steps: [errorBody('rate_limit_exceeded', canary)] },
      { steps: hello },
    );
    await rig.call(small);
    expect(rig.stories).toMatchObject([
      {
        why: 'retried',
        account: 'acme',
        client: { status: 200 },
        tried: [
          { channel: 'first', outcome: 'upstream_status_503', status: 503, at: 0, ms: 0 },
          { channel: 'second', outcome: 'upstream_status_429', status: 429, code: 'rate_limit_exceeded' },
          { channel: 'third', outcome: 'answered', status: 200 },
        ],
        reserved: { yuan: expect.stringMatching(/^0\.\d+$/) },
        sent: expect.arrayContaining(['messages', 'model']),
      },
    ]);
    expect(JSON.stringify(rig.stories)).not.toContain(canary);
  });

  it('names candidates that were passed over, and why', async () => {
    const rig = new BillingRig({ channels: pair.slice(0, 2) }).granted(yuan);
    rig.upstream(
      { status: 429, headers: { 'retry-after': '40' } },
      { steps: hello },
      {
        status: 400,
        steps: [errorBody('invalid_value', canary)],
      },
    );
    await rig.call(small);
    await rig.call(small);
    expect(rig.stories[1]).toMatchObject({
      why: 'refused',
      tried: [{ channel: 'second', outcome: 'refused', status: 400 }],
      passed_over: [{ channel: 'first', why: 'blocked', kind: 'rate_limit', seconds: 40 }],
    });
  });

  it('says what a refused call needed and what there was', async () => {
    const rig = new BillingRig().granted(1000n).upstream({ steps: hello });
    await rig.call(small);
    expect(rig.stories).toMatchObject([
      {
        why: 'refused',
        client: { status: 429, code: 'insufficient_quota' },
        facts: { needed: expect.any(String), free: '0.000001' },
      },
    ]);
  });

  it('has only words that are known of what an upstream refuses', async () => {
    const rig = new BillingRig().granted(yuan);
    const body = JSON.stringify({ error: { code: canary, message: canary, param: canary, type: canary } });
    rig.upstream({ status: 400, headers: { 'content-type': 'application/json' }, steps: [body] });
    await rig.call(small);
    expect(rig.stories).toMatchObject([{ client: { status: 400, code: 'invalid_request', param: true } }]);
    expect(JSON.stringify(rig.stories)).not.toContain(canary);
  });

  it('says when the client left', async () => {
    const rig = new BillingRig().granted(yuan);
    rig.upstream({ steps: [delta('a'), 1000, delta('b'), finish(), usage(7, 2), done] });
    await rig.call({ ...small, stream: true }, { leaveAfter: 1 });
    expect(rig.stories).toMatchObject([{ why: 'client_gone', client: { left: true, first_ms: 0 } }]);
  });
});

describe('a slow call', () => {
  const slowly = (ms: number) => ({ steps: [ms, ...hello] });

  it('is one that begins later than 95 of 100 of its channel and model, once fifty are known', async () => {
    const rig = new BillingRig().granted(1000n * yuan).upstream(slowly(3_000));
    await rig.call(small);
    rig.upstream(slowly(400));
    for (let call = 0; call < 60; call += 1) await rig.call(small);
    expect(rig.stories).toEqual([]);
    rig.upstream(slowly(900));
    await rig.call(small);
    expect(rig.stories).toMatchObject([{ why: 'slow', usual_ms: 420, first_content_ms: 900 }]);
  });

  it('is none that begins within a quarter of a second', async () => {
    const rig = new BillingRig().granted(1000n * yuan).upstream(slowly(1));
    for (let call = 0; call < 60; call += 1) await rig.call(small);
    rig.upstream(slowly(240));
    await rig.call(small);
    expect(rig.stories).toEqual([]);
  });
});

describe('the line of a story', () => {
  it('is at most 2 KB with hostile names, three candidates and everything', async () => {
    const long = (letter: string): string => letter.repeat(200);
    const channel = (id: string, priority: number) => ({ id: `${id}"\\\u20ac${long('c')}`, priority });
    const channels = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map((id, index) => channel(id, 9 - index));
    const rig = new BillingRig({ channels }).granted(yuan);
    rig.upstream({ status: 429, headers: { 'retry-after': '9999' } });
    for (let call = 0; call < 4; call += 1)
      await rig.call({
        ...small,
        stream: true,
        [`x${long('f')}`]: 1,
        ...Object.fromEntries(
          Array.from({ length: 300 }, (_, index) => [`field_${index}_${'n'.repeat(20)}`, 1]),
        ),
      });
    expect(rig.stories.length).toBeGreaterThan(2);
    const log = jsonLog('1.12.3');
    const lines = await linesOf(() => {
      for (const story of rig.stories) log.explain({ ...story, request_id: '01kaz0000000000000000000xx' });
      return Promise.resolve();
    });
    const sizes = lines.map((line) => Buffer.byteLength(line) + 1);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2048);
    expect(Math.max(...sizes)).toBeGreaterThan(1000);
  });
});
