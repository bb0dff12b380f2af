/** The contract of the quota store for what versions before parts left in items. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accountRate } from '../../shared/billing/quota-item.ts';
import { itemOf, minute, type OpenedStore } from './quota-store-rig.ts';

const counted = (at: number, count = 3) => ({ minute: at, count, tokens: 0 });

export function quotaOldContract(name: string, open: () => Promise<OpenedStore & AsyncDisposable>): void {
  describe(`counts of older versions ${name}`, () => {
    let opened: OpenedStore & AsyncDisposable;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    const old = (account: string) =>
      itemOf(account, {
        available: 10n,
        rate: new Map([
          [accountRate, counted(minute)],
          ['a', counted(minute - 9)],
          ['b', counted(minute)],
        ]),
        busy: new Map([
          ['a', 0],
          ['b', 1],
        ]),
      });
    const minutes = new Map([['a', minute - 9]]);

    test('are dropped as they were read, forty of each kind at once', async () => {
      const keys = Array.from({ length: 40 }, (_, at) => `old key ${at}`);
      const item = old('drops');
      for (const each of keys) {
        item.rate.set(each, counted(minute - 9));
        item.busy.set(each, 0);
      }
      await opened.put(item);
      const write = { minutes: new Map(keys.map((each) => [each, minute - 9])), idle: keys };
      expect(await opened.store.dropCounts({ account: 'drops', ...write })).toMatchObject({ done: true });
      expect(await opened.read('drops')).toEqual(old('drops'));
    });

    test.each([
      ['a minute of it was counted since', { minutes: new Map([['b', minute - 9]]), idle: ['a'] }],
      ['a call of it began since', { minutes, idle: ['b'] }],
      ['another call dropped it', { minutes, idle: ['c'] }],
    ])('of a key stay if %s', async (_, write) => {
      const item = old('stays');
      await opened.put(item);
      expect(await opened.store.dropCounts({ account: 'stays', ...write })).toEqual({ done: false, item });
      expect(await opened.read('stays')).toEqual(item);
    });
  });
}
