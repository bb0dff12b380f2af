import { describe, expect, it } from 'vitest';
import { byTokens, small, yuan } from '../../support/billing-rig.ts';
import { CoreRig, hello, type RigOptions } from '../../support/core-rig.ts';

const channel = (id: string, priority: number): Record<string, unknown> => ({
  id,
  priority,
  endpoint: `https://${id}.test/v1`,
});

describe('a running call whose channels and price are edited', () => {
  it('still uses the deleted channels and is charged the old price', async () => {
    const options: RigOptions = {
      channels: [channel('first', 2), channel('second', 1)],
      charges: [byTokens],
    };
    options.send = async ({ url }) => {
      options.channels = [{ ...channel('third', 3) }];
      options.charges = [{ ...byTokens, output: 2000 }];
      const isFirst = url.startsWith('https://first.');
      return { status: isFirst ? 500 : 200, headers: {}, body: bytesOf(isFirst ? [] : hello) };
    };
    const rig = new CoreRig(options);
    rig.quotas.grant('acme', 1_000n * yuan);

    expect((await rig.post(small)).status).toBe(200);
    expect(rig.sent.map(({ url }) => new URL(url).host)).toEqual(['first.test', 'second.test']);
    // 7 tokens in and 2 out.
    expect(rig.quotas.items.get('acme')).toMatchObject({ spent: 11_000_000n });

    await rig.post(small, { id: 'the-next-call' });
    expect(rig.sent.slice(2).map(({ url }) => new URL(url).host)).toEqual(['third.test']);
  });
});

async function* bytesOf(steps: readonly unknown[]): AsyncGenerator<Uint8Array> {
  for (const step of steps) yield new TextEncoder().encode(String(step));
}
