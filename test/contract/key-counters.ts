/** The contract of key counters, for the in-memory store and the real one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KeyCounters } from '../../shared/relay/ports/runtime-stores.ts';

export interface OpenedKeyCounters extends AsyncDisposable {
  counters: KeyCounters;
}

export function keyCountersContract(name: string, open: () => Promise<OpenedKeyCounters>): void {
  describe(`the counters of keys ${name}`, () => {
    let opened: OpenedKeyCounters;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());
    const counterOf = (key: string) => ({ key, period: '2026-11-21', expires: 1_795_300_000 });
    let holds = 0;
    const hold = (key: string, amount: bigint, most: bigint) => {
      holds += 1;
      return opened.counters.hold({ ...counterOf(key), name: `call#${holds}` }, amount, most);
    };
    const times = <Result>(count: number, act: () => Promise<Result>): Promise<Result[]> =>
      Promise.all(Array.from({ length: count }, act));

    it('count calls up to the limit, separately for each minute and key', async () => {
      const counts = [];
      for (const minute of [7, 7, 7, 8]) counts.push(await opened.counters.countCall('a', minute, 2));
      expect(counts).toEqual([1, 2, undefined, 1]);
      expect(await opened.counters.countCall('b', 7, 2)).toBe(1);
    });

    it('admit exactly the limit out of a hundred concurrent calls', async () => {
      const counts = await times(100, () => opened.counters.countCall('c', 7, 30));
      expect(counts.filter((count) => count !== undefined).toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: 30 }, (_, index) => index + 1),
      );
    });

    it('follow a limit that is lowered or raised within the minute', async () => {
      await times(3, () => opened.counters.countCall('d', 7, 3));
      expect(await opened.counters.countCall('d', 7, 2)).toBeUndefined();
      expect(await opened.counters.countCall('d', 7, 4)).toBe(4);
    });

    it('reserve amounts up to exactly the budget', async () => {
      const held = await times(50, () => hold('e', 7n, 100n));
      expect(held.filter(({ done }) => done)).toHaveLength(14);
      expect(held.filter(({ done }) => !done).every(({ used }) => used <= 100n)).toBe(true);
      expect(await hold('e', 3n, 100n)).toEqual({
        done: false,
        used: 98n,
        running: 14,
      });
      expect(await hold('e', 2n, 100n)).toEqual({
        done: true,
        used: 100n,
        running: 15,
      });
    });

    it('reject an amount above the budget, and report that nothing is used', async () => {
      expect(await hold('f', 8n, 7n)).toEqual({
        done: false,
        used: 0n,
        running: 0,
      });
      expect(await hold('f', 7n, 7n)).toEqual({
        done: true,
        used: 7n,
        running: 1,
      });
    });

    it('return the unspent part of a call to the next call', async () => {
      const counter = counterOf('g');
      await hold(counter.key, 10n, 10n);
      await opened.counters.change(counter, { used: -6n, running: -1 });
      expect(await hold(counter.key, 7n, 10n)).toEqual({ done: false, used: 4n, running: 0 });
      expect(await hold(counter.key, 6n, 10n)).toEqual({ done: true, used: 10n, running: 1 });
    });

    it('reserve an amount once when the reply is lost, even the last amount of the budget', async () => {
      const counter = { ...counterOf('i'), name: 'call' };
      for (const most of [10n, 10n, 20n])
        expect(await opened.counters.hold(counter, 10n, most)).toEqual({ done: true, used: 10n, running: 1 });
      expect(await hold('i', 3n, 20n)).toEqual({ done: true, used: 13n, running: 2 });
    });

    it('report the reserved amount and the number of running calls, also for an unused budget', async () => {
      expect(await opened.counters.use(counterOf('j'))).toEqual({ used: 0n, running: 0 });
      await hold('j', 3n, 10n);
      await hold('j', 4n, 10n);
      expect(await opened.counters.use(counterOf('j'))).toEqual({ used: 7n, running: 2 });
    });

    it('reserve nothing more after a charge exceeded the budget', async () => {
      await opened.counters.change(counterOf('h'), { used: 11n, running: 0 });
      expect(await hold('h', 0n, 10n)).toMatchObject({ done: false, used: 11n });
    });
  });
}
