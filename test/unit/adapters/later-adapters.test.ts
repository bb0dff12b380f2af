import { describe, expect, it } from 'vitest';
import { lateTracing, lazily } from '../../../functions/compose/late-adapters.ts';
import { BillingRig, small, yuan } from '../../support/billing-rig.ts';
import { hello } from '../../support/core-rig.ts';

const settings = { url: 'http://127.0.0.1:1', headers: {}, service: undefined, ratio: 0 };
const route = { method: 'POST', path: '/v1/chat/completions' };

describe('an adapter that could not be loaded', () => {
  it('of traces leaves its call untraced, and is tried again by the next one', async () => {
    const traced: boolean[] = [];
    let composed = 0;
    const rig = new BillingRig({
      composed: (ports, handleOf) =>
        lateTracing({
          settings,
          route,
          ports,
          stack: 'relay',
          version: '1',
          handleOf(given) {
            composed += 1;
            if (composed === 1) throw new Error('no memory');
            const handle = handleOf(given);
            return (request) => {
              traced.push(given !== ports);
              return handle(request);
            };
          },
        }),
    })
      .granted(yuan)
      .upstream({ steps: hello });
    for (let call = 0; call < 3; call += 1) expect((await rig.call(small)).status).toBe(200);
    expect(traced).toEqual([false, true, true]);
    expect(rig.faults).toMatchObject([{ message: 'no memory' }]);
  });

  it('is loaded once, by the first call, and has all that each call is given', async () => {
    let loads = 0;
    const calls: unknown[][] = [];
    const port = lazily<{ note: (first: number) => Promise<void> }>(async () => {
      loads += 1;
      return { note: async (...given) => void calls.push(given) };
    });
    expect((await Promise.resolve(port)) === port && loads === 0).toBe(true);
    const { note }: { note: (...given: number[]) => Promise<void> } = port;
    await note(1, 2, 3);
    await note(4);
    expect({ loads, calls }).toEqual({ loads: 1, calls: [[1, 2, 3], [4]] });
  });

  it('that cannot be loaded fails its call, and is tried again by the next one', async () => {
    let asked = 0;
    const accounts = lazily<{ quota: (account: string) => Promise<void> }>(async () => {
      asked += 1;
      throw new Error(`no file ${asked}`);
    });
    await expect(accounts.quota('acme')).rejects.toThrow('no file 1');
    await expect(accounts.quota('acme')).rejects.toThrow('no file 2');
  });
});
