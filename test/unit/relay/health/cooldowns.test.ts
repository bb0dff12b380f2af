import { describe, expect, it } from 'vitest';
import {
  CoreRig,
  data,
  delta,
  demoKey,
  finish,
  hang,
  hello,
  keyRow,
  reset,
  type Answer,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true };
const good: UpstreamScript = { steps: hello };
const limited = (seconds?: string): UpstreamScript => ({
  status: 429,
  headers: seconds === undefined ? {} : { 'retry-after': seconds },
});
const one = { channels: [{ id: 'c', secret: ['ssm:/relay/relay/1'] }] };
const candidate = 'c|ssm:/relay/relay/1';
const two = {
  channels: [
    { id: 'first', priority: 2 },
    { id: 'second', priority: 1 },
  ],
};
const otherKey = 'sk-other';
const keys = {
  [demoKey]: { row: keyRow() },
  [otherKey]: { row: keyRow({ account: 'other' }) },
};
const asOther = { headers: { authorization: `Bearer ${otherKey}` } };

/** The channels that were asked, in order, and the status that the client got. */
async function asked(rig: CoreRig, options: Parameters<CoreRig['post']>[1] = {}): Promise<string> {
  const { status } = await rig.post(ask, options);
  const attempts = rig.logged.at(-1)?.attempts ?? [];
  return [...attempts.map(({ channel }) => channel), status].join(' ');
}

const after = (rig: CoreRig, seconds: number): Promise<void> =>
  rig.clock.run(rig.clock.sleep(seconds * 1000));

const errorOf = ({ text }: Answer): { code: string; message: string } => JSON.parse(text).error;

describe('a rate limit', () => {
  it('with a Retry-After delays every call, which gets the remaining time', async () => {
    const rig = new CoreRig(one).upstream(limited('30'), good);
    await rig.post(ask);
    await after(rig, 10);
    const refused = await rig.post(ask);
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '20']);
    expect(errorOf(refused).message).toContain('try again in 20s');
    expect(rig.logged.at(-1)?.reason).toBe('all_channels_cooling');
    expect(rig.sent).toHaveLength(1);
    await after(rig, 20);
    expect((await rig.post(ask)).status).toBe(200);
  });

  it('without a Retry-After does not keep the next call from the only channel', async () => {
    const rig = new CoreRig(one).upstream(limited(), good);
    expect((await rig.post(ask)).status).toBe(429);
    expect(rig.health.limitOf(candidate)).toEqual({ kind: 'rate_limit', untilMs: rig.clock.now() + 15_000 });
    expect((await rig.post(ask)).status).toBe(200);
    expect(rig.sent).toHaveLength(2);
  });

  it('affects one model only: the channel still serves its others', async () => {
    const rig = new CoreRig({ channels: [{ id: 'c', models: ['m', 'n'] }] }).upstream(limited('60'), good);
    await rig.post(ask);
    expect((await rig.post(ask)).status).toBe(429);
    expect((await rig.post({ ...ask, model: 'n' })).status).toBe(200);
    expect(rig.sent).toHaveLength(2);
  });
});

describe('a candidate in cooldown', () => {
  it('is probed by one call after its cooldown, while others go to another candidate', async () => {
    const rig = new CoreRig(two).upstream(limited(), good);
    await rig.post(ask);
    await after(rig, 16);
    rig.upstream({ steps: [5_000, ...hello] }, good);
    const probe = rig.respond(ask);
    const others = [rig.respond(ask), rig.respond(ask)];
    await rig.clock.run(Promise.all([probe, ...others].map(async (answer) => (await answer).done)));
    expect(rig.logged.filter(({ channel }) => channel === 'first')).toHaveLength(1);
    expect(rig.health.limitOf('first')).toBeUndefined();
    expect(await asked(rig)).toBe('first 200');
  });

  it.each<[string, UpstreamScript, number]>([
    ['rejected content', { status: 403 }, 200],
    ['silence before the first content', { steps: [hang] }, 200],
    ['an invalid request', { status: 400, steps: ['{"error":{"message":"x"}}'] }, 400],
  ])('offers its probe to the next call after %s', async (_case, failure, status) => {
    const rig = new CoreRig(two).upstream(limited(), good);
    await rig.post(ask);
    await after(rig, 16);
    rig.upstream(failure, good);
    expect((await rig.post({ ...ask, stream: false })).status).toBe(status);
    rig.upstream(good);
    expect(await asked(rig)).toBe('first 200');
  });
});

describe('a secret that is rejected or out of credit', () => {
  const several = {
    channels: [{ id: 'c', secret: ['ssm:/relay/relay/1', 'ssm:/relay/relay/2'] }],
  };
  const empty = JSON.stringify({ error: { code: 'insufficient_quota', message: 'exceeded' } });

  it.each<[string, UpstreamScript]>([
    ['a 401', { status: 401 }],
    ['a 402', { status: 402 }],
    ['insufficient_quota', { status: 429, steps: [empty] }],
  ])('goes into cooldown alone for five minutes after %s', async (_case, refused) => {
    const rig = new CoreRig(several).upstream(refused, good);
    expect((await rig.post(ask)).status).toBe(200);
    expect(rig.health.writes).toEqual([{ kind: 'credentials', untilMs: rig.clock.now() + 300_000 }]);
    const [refusedOne, other] = rig.secretsRead;
    await rig.post(ask);
    expect([rig.secretsRead.slice(2), refusedOne === other]).toEqual([[other], false]);
  });

  it('stays in use when the store has a new one', async () => {
    const changed = new CoreRig({ ...several, secretChanges: true }).upstream({ status: 401 });
    await changed.post(ask);
    expect(changed.health.writes).toEqual([]);
  });

  it('is used again when there is no other, and the client sees no quota error', async () => {
    const rig = new CoreRig(one).upstream({ status: 402 });
    for (let calls = 1; calls <= 2; calls += 1) {
      const answer = await rig.post(ask);
      expect([answer.status, errorOf(answer).code]).toEqual([502, 'upstream_unavailable']);
      expect(errorOf(answer).message).toMatch(/own account at the upstream/);
      expect(errorOf(answer).message).not.toMatch(/quota|rate|credit/);
      expect(rig.logged.at(-1)?.reason).toBe('upstream_account upstream_status_402');
      expect(rig.sent).toHaveLength(calls);
    }
  });
});

describe('failures in a row', () => {
  it('by one account put the candidate last for that account’s calls only', async () => {
    const rig = new CoreRig({ ...two, keys }).upstream({ status: 500 }, good);
    for (let i = 0; i < 3; i += 1) {
      rig.upstream({ status: 500 }, good);
      expect(await asked(rig)).toBe('first second 200');
    }
    expect(await asked(rig)).toBe('second 200');
    expect(await asked(rig, asOther)).toBe('first 200');
    expect(await asked(rig)).toBe('first 200');
  });

  it.each<[string, UpstreamScript]>([
    ['rejected content', { status: 403 }],
    ['a 400 without a known error', { status: 400, steps: ['<html>'] }],
    ['a 413 without a known error', { status: 413 }],
    ['an invalid request', { status: 422, steps: ['{"error":{"message":"x"}}'] }],
    ['a prompt that is too long', { status: 413, steps: ['{"error":{"message":"prompt is too long"}}'] }],
    ['silence before the first content', { steps: [hang] }],
  ])('do not count %s, even from several accounts', async (_case, failure) => {
    const rig = new CoreRig({ ...one, keys }).upstream(failure);
    for (const options of [{}, asOther, {}, asOther]) await rig.post(ask, options);
    expect(rig.health.writes).toEqual([]);
  });

  it.each<[string, UpstreamScript]>([
    ['an empty answer', { steps: [] }],
    ['an answer that breaks off', { steps: [delta('a'), finish().slice(0, 5), reset] }],
    ['an error in the answer', { steps: [data({ error: { message: 'x' } })] }],
    ['an unreadable answer', { steps: ['data: {{{\n\n'] }],
    ['an endless line', { steps: [`data: ${'x'.repeat(9 * 1024 * 1024)}`] }],
  ])('that content can cause never affect other accounts: %s', async (_case, failure) => {
    const rig = new CoreRig({ ...two, keys });
    for (let i = 0; i < 8; i += 1) {
      rig.upstream(failure, good);
      await rig.post(ask);
    }
    expect(rig.health.writes.some((entry) => entry?.kind === 'failing')).toBe(false);
    rig.upstream(good);
    expect(await asked(rig, asOther)).toBe('first 200');
  });
});
