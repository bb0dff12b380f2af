import { describe, expect, it } from 'vitest';
import { loadOnFirstCall } from '../../../functions/compose/late-adapters.ts';

describe('a lazily loaded adapter', () => {
  it('is loaded once, by the first call, and receives the arguments of each call', async () => {
    let loads = 0;
    const calls: unknown[][] = [];
    const port = loadOnFirstCall<{ note: (first: number) => Promise<void> }>(async () => {
      loads += 1;
      return { note: async (...given) => void calls.push(given) };
    });
    expect((await Promise.resolve(port)) === port && loads === 0).toBe(true);
    const { note }: { note: (...given: number[]) => Promise<void> } = port;
    await note(1, 2, 3);
    await note(4);
    expect({ loads, calls }).toEqual({ loads: 1, calls: [[1, 2, 3], [4]] });
  });

  it("fails a call when it can't be loaded, and the next call tries again", async () => {
    let asked = 0;
    const accounts = loadOnFirstCall<{ quota: (account: string) => Promise<void> }>(async () => {
      asked += 1;
      throw new Error(`no file ${asked}`);
    });
    await expect(accounts.quota('acme')).rejects.toThrow('no file 1');
    await expect(accounts.quota('acme')).rejects.toThrow('no file 2');
  });
});
