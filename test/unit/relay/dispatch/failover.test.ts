import { describe, expect, it } from 'vitest';
import { SecretUnusable } from '../../../../shared/relay/ports/config-store.ts';
import {
  CoreRig,
  data,
  delta,
  frames,
  hello,
  reset,
  usage,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true };
const good: UpstreamScript = { steps: hello };
const call = data({
  choices: [
    { index: 0, delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'look', arguments: '{' } }] } },
  ],
});
/** Tried in this order, because their priorities differ. */
const two = {
  channels: [
    { id: 'first', priority: 2 },
    { id: 'second', priority: 1 },
  ],
};
const four = { channels: ['a', 'b', 'c', 'd'].map((id, i) => ({ id, priority: -i })) };

describe('failover before the first content', () => {
  const failures: [string, UpstreamScript][] = [
    ['a refused connection', { connect: 'refused' }],
    ['a 500', { status: 500 }],
    ['a 408', { status: 408 }],
    ['a 429', { status: 429 }],
    ['a 401', { status: 401 }],
    ['a 402', { status: 402 }],
    ['a 403', { status: 403 }],
    ['a 400 without a JSON error', { status: 400, steps: ['<html>'] }],
    ['an error in a 200', { steps: ['{"error":{"message":"x"}}'] }],
    [
      'an error event after the role',
      { steps: [data({ choices: [{ index: 0, delta: { role: 'assistant' } }] }), data({ error: {} })] },
    ],
    ['an empty 200', { steps: [] }],
    ['a web page', { steps: ['<!doctype html>'] }],
    ['a reset', { steps: [reset] }],
  ];
  it.each(failures)('hides %s: the next channel answers', async (_case, failure) => {
    const rig = new CoreRig(two).upstream(failure, good);
    const answer = await rig.post(ask);
    expect(answer.status).toBe(200);
    expect(frames(answer.text)).toHaveLength(4);
    expect(answer.headers['x-relay-attempts']).toBe('2');
    expect(rig.logged[0]?.attempts).toMatchObject([
      { channel: 'first' },
      { channel: 'second', outcome: 'answered' },
    ]);
    expect(rig.quotas.items.get('acme')).toMatchObject({ spent: 0n, settled: 1 });
  });

  it("does not happen for a caller's own mistake", async () => {
    const refusal = { status: 400, steps: ['{"error":{"message":"bad","code":"bad_thing"}}'] };
    const rig = new CoreRig(two).upstream(refusal, good);
    expect((await rig.post(ask)).status).toBe(400);
    expect(rig.sent).toHaveLength(1);
    expect(rig.health.writes).toEqual([]);
  });

  it('never happens after the first content', async () => {
    const rig = new CoreRig(two).upstream({ steps: [delta('a'), reset] }, good);
    const answer = await rig.post(ask);
    expect(rig.sent).toHaveLength(1);
    expect(answer.text).toContain('upstream_unavailable');
    expect(rig.health.of('first')).toMatchObject({ kind: 'failures', count: 1 });
    expect(rig.health.writes).toHaveLength(1);
  });

  it('covers at most three channels, once each', async () => {
    const rig = new CoreRig(four).upstream({ status: 500 });
    const answer = await rig.post(ask);
    expect(answer.status).toBe(502);
    expect(rig.logged[0]?.attempts?.map(({ channel }) => channel)).toEqual(['a', 'b', 'c']);
    expect(answer.headers['x-relay-attempts']).toBe('3');
  });

  it('ends in 429 only if every channel returned it, with the shortest wait', async () => {
    const limited = (seconds: string): UpstreamScript => ({
      status: 429,
      headers: { 'retry-after': seconds },
    });
    const all = await new CoreRig(two).upstream(limited('30'), limited('12')).post(ask);
    expect([all.status, all.headers['retry-after']]).toEqual([429, '12']);
    const one = await new CoreRig(two).upstream(limited('30'), { status: 500 }).post(ask);
    expect(one.status).toBe(502);
  });

  it('ends in 429 if all other failures were of our own accounts, tried now or in cooldown', async () => {
    const channels = [{ id: 'a', priority: 1 }, { id: 'b' }];
    const limited = { status: 429, headers: { 'retry-after': '30' } };
    const rig = new CoreRig({ channels }).upstream(limited, { status: 402 });
    for (const asked of [2, 3]) {
      const { status, headers } = await rig.post(ask);
      expect([status, headers['retry-after'], rig.sent.length]).toEqual([429, '30', asked]);
    }
  });

  it('tells the client not to retry after content of a JSON answer', async () => {
    const broken = { steps: [delta('Hal'), data({ error: { message: 'x', type: 'rate_limit_error' } })] };
    const rig = new CoreRig({ channels: [{ id: 'a', priority: 1 }, { id: 'b' }] });
    rig.upstream(broken, { status: 429 });
    const { status, headers } = await rig.post({ ...ask, stream: false });
    expect([status, headers['x-should-retry'], rig.sent.length]).toEqual([429, 'false', 2]);
  });
});

describe('a channel’s secret', () => {
  const withSecret = { channels: [{ id: 'c', secret: 'ssm:/relay/relay/1' }] };

  it('puts its candidate into cooldown when it is missing, but not when the secret store fails', async () => {
    const missing = new CoreRig({
      ...withSecret,
      secretError: new SecretUnusable('missing'),
    }).upstream(good);
    expect((await missing.post(ask)).status).toBe(502);
    expect(missing.health.of('c|ssm:/relay/relay/1')).toMatchObject({ kind: 'credentials' });
    const silent = new CoreRig({ ...withSecret, secretError: new Error('throttled') }).upstream(good);
    for (let i = 0; i < 4; i += 1)
      expect(await silent.post(ask)).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    expect(silent.sent).toEqual([]);
    expect(silent.health.writes).toEqual([]);
    expect(silent.logged[0]?.reason).toBe('upstream_secret_store');
  });
});

describe('a JSON answer that breaks off after content', () => {
  const whole = { ...ask, stream: false };
  const first = delta('The first half of an answer');
  const content = ({ text }: { text: string }): unknown => {
    const { choices, usage: counts } = JSON.parse(text);
    return [choices, counts.completion_tokens];
  };
  const hi = [
    [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello', refusal: null, tool_calls: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    2,
  ];

  it.each<[string, UpstreamScript]>([
    ['a reset', { steps: [first, reset] }],
    ['an error in its stream', { steps: [first, data({ error: { message: 'x' } })] }],
    ['silence', { steps: [first, 900_000] }],
    ['a reset after usage and a tool call', { steps: [first, usage(7, 90), call, reset] }],
  ])('by %s is replaced by the whole answer of the next channel', async (_case, failure) => {
    const rig = new CoreRig(two).upstream(failure, good);
    const answer = await rig.post(whole);
    expect(answer.status).toBe(200);
    expect(content(answer)).toEqual(hi);
    expect(rig.logged[0]?.attempts).toMatchObject([
      { channel: 'first', outcome: expect.stringMatching(/^upstream_/) },
      { channel: 'second', outcome: 'answered' },
    ]);
  });
});
