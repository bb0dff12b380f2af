/** `customer profile` registers a customer with a provider, and shows the provider's measures against it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { LedgerRig } from './ledger-rig.ts';

let rig: LedgerRig;
let upstream: ScriptedUpstream;
beforeAll(async () => {
  [rig, upstream] = await Promise.all([LedgerRig.start(), startScriptedUpstream()]);
});
afterAll(async () => Promise.all([rig.stop(), upstream.close()]));

const made = {
  id: 'uprof_1',
  name: 'Acme Corp',
  enforcement_status: 'unrestricted',
  enforcement_actions: [],
};
beforeEach(async () => {
  upstream.forget();
  upstream.script((_call, reply) => reply.json(200, made));
  const secret = 'env:UPSTREAM_KEY';
  await rig.put('channels', { id: 'chat', endpoint: upstream.endpoint, secret, models: ['a'], state: true });
  await rig.put('channels', {
    id: 'claude',
    type: 'anthropic',
    endpoint: upstream.endpoint,
    secret,
    models: ['b'],
    state: true,
  });
  await rig.put('accounts', { account: 'acme', note: 'kept' });
});
const ops = (words: string[]) =>
  rig.ops(['customer', 'profile', ...words], '', { UPSTREAM_KEY: 'upstream-key' });

describe('customer profile', () => {
  it('registers a customer, without its name', async () => {
    expect((await ops(['acme', '--dry-run'])).output).toContain(
      'Register acme with the provider of channel claude',
    );
    expect(upstream.requests).toEqual([]);
    const run = await ops(['acme']);
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toContain('acme is uprof_1 (Acme Corp) at the provider: unrestricted');
    const [request] = upstream.requests;
    expect(request).toMatchObject({ method: 'POST', path: '/v1/user_profiles' });
    expect(request?.headers['x-api-key']).toBe('upstream-key');
    expect(request?.body).toEqual({ access_type: 'passthrough' });
    expect(await rig.row('accounts', { account: 'acme' })).toMatchObject({
      note: 'kept',
      anthropic_profile: 'uprof_1',
    });
  });

  it('sends the given name', async () => {
    await ops(['acme', '--name', 'Acme Corp', '--channel', 'claude']);
    expect(upstream.requests[0]?.body).toMatchObject({ name: 'Acme Corp' });
  });

  it('shows the provider’s measures against a registered customer, and writes nothing', async () => {
    await rig.put('accounts', { account: 'acme', anthropic_profile: 'uprof_7' });
    const actions = [
      { type: 'restriction', reason: 'fraud_or_abuse', expires_at: '2026-12-01T00:00:00Z' },
      { type: 'ban', reason: '\u001b[31mtext of another', expires_at: null },
    ];
    upstream.script((_call, reply) =>
      reply.json(200, { ...made, id: 'uprof_7', enforcement_status: 'banned', enforcement_actions: actions }),
    );
    const run = await ops(['acme']);
    expect(run.output).toContain(
      'acme is uprof_7 (Acme Corp) at the provider: banned\n' +
        'Open action: restriction fraud_or_abuse until 2026-12-01T00:00:00Z\nOpen action: ban\n',
    );
    expect(upstream.requests).toMatchObject([{ method: 'GET', path: '/v1/user_profiles/uprof_7' }]);
    expect(await rig.row('accounts', { account: 'acme' })).toEqual({
      account: 'acme',
      anthropic_profile: 'uprof_7',
    });
  });

  it.each([
    [['nobody'], 'no customer nobody'],
    [['acme', '--channel', 'chat'], 'the provider of channel chat registers no customers'],
    [['acme', '--channel', 'none'], 'no channel none'],
  ])('refuses %j', async (words, said) => {
    const run = await ops(words);
    expect([run.code, run.errors]).toEqual([2, expect.stringContaining(said)]);
  });

  it('shows the provider’s error, without the key', async () => {
    upstream.script((_call, reply) => reply.json(403, { error: { message: 'not for upstream-key' } }));
    const run = await ops(['acme']);
    expect(run.code).toBe(1);
    expect(run.errors).toContain('the provider answered 403');
    expect(run.errors).not.toContain('upstream-key');
  });

  it('writes a row that no later edit can make invalid', async () => {
    const run = await rig.ops('customer set acme anthropic_profile=someone');
    expect([run.code, run.errors]).toEqual([2, expect.stringContaining('the id of a user profile')]);
  });
});
