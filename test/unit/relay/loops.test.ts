/** A channel that leads back to the relay, as the pipeline sees it. */
import { describe, expect, it } from 'vitest';
import { BillingRig, small, yuan } from '../../support/billing-rig.ts';
import { hello } from '../../support/core-rig.ts';

const own = { baseUrl: 'https://Relay.example/v1', hops: 'aaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbb' };
const rigOf = (...endpoints: string[]): BillingRig =>
  new BillingRig({
    channels: endpoints.map((endpoint, i) => ({ id: `c${i}`, endpoint, priority: 9 - i })),
  }).granted(100n * yuan);
const errorOf = ({ text }: { text: string }): unknown => (JSON.parse(text) as { error: unknown }).error;

describe('a channel that leads back to the relay', () => {
  it.each(['https://relay.example/v1', 'https://RELAY.example:443/v1'])(
    'is not called if its address %s shows it',
    async (endpoint) => {
      const rig = rigOf(endpoint).upstream({ steps: hello });
      const answer = await rig.call(small, own);
      expect([answer.status, rig.sent.length]).toEqual([508, 0]);
      expect(errorOf(answer)).toMatchObject({ type: 'upstream_error', code: 'relay_loop', param: null });
      expect(answer.headers).toMatchObject({ 'x-relay-loop': '1', 'x-should-retry': 'false' });
      expect(rig.logged.at(-1)).toMatchObject({ reason: 'upstream_loop' });
      expect(rig.item).toMatchObject({ available: 100n * yuan, spent: 0n });
    },
  );

  it('is named if only the call reveals it, and nothing is charged', async () => {
    const rig = rigOf('https://alias.example/v1').upstream({
      status: 508,
      headers: { 'x-relay-loop': '1' },
      steps: ['{"error":{"code":"relay_loop"}}'],
    });
    const answer = await rig.call(small, own);
    expect([answer.status, errorOf(answer)]).toEqual([508, expect.objectContaining({ code: 'relay_loop' })]);
    expect(rig.logged.at(-1)).toMatchObject({ reason: 'upstream_loop_508' });
    expect(rig.item).toMatchObject({ available: 100n * yuan, spent: 0n });
  });

  it('is skipped for the next channel', async () => {
    const rig = rigOf('https://relay.example/v1', 'https://upstream.test/v1').upstream({ steps: hello });
    expect((await rig.call(small, own)).status).toBe(200);
    expect(rig.sent.map(({ url }) => url)).toEqual(['https://upstream.test/v1/chat/completions']);
  });
});

describe('the hop header of a caller', () => {
  // Another relay as upstream rejects calls that passed four relays.
  const refusing = {
    status: 508,
    headers: { 'x-relay-loop': '1' },
    steps: ['{"error":{"code":"relay_loop"}}'],
  };
  const events = async (hops: string): Promise<number> => {
    const rig = rigOf('https://relay-of-others.example/v1').upstream(refusing);
    for (let call = 0; call < 4; call += 1)
      expect((await rig.call(small, { ...own, hops })).status).toBe(508);
    return rig.health.sent;
  };

  it('puts no channel into cooldown, but a real loop does', async () => {
    expect(await events('cccccccccccccccc, dddddddddddddddd, aaaaaaaaaaaaaaaa')).toBe(0);
    expect(await events('aaaaaaaaaaaaaaaa')).toBeGreaterThan(0);
  });
});

describe('an upstream that is a relay, too', () => {
  it('gets the list of relays that the call passed', async () => {
    const rig = rigOf('https://upstream.test/v1').upstream({ steps: hello });
    await rig.call(small, own);
    expect(rig.sent[0]?.headers).toMatchObject({ 'x-relay-hop': own.hops });
  });
});
