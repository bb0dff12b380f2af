/** The contract of turn state stores, for the in-memory store and the real one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StateTooLarge, type TurnStateStore } from '../../shared/relay/ports/runtime-stores.ts';

export interface OpenedTurnStates extends AsyncDisposable {
  store: TurnStateStore;
}

/** @param nowSeconds the time of the store's clock */
export function turnStateStoreContract(
  name: string,
  open: () => Promise<OpenedTurnStates>,
  nowSeconds: number,
): void {
  describe(`the store of turns ${name}`, () => {
    let opened: OpenedTurnStates;
    const later = nowSeconds + 60;
    const all = async (account: string, ...ids: string[]) =>
      Object.fromEntries(await opened.store.read(account, ids));
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());

    it('returns stored states, and nothing for other ids', async () => {
      await opened.store.put({ account: 'a', callId: 'one' }, 'relay1.1.AAA', later);
      await opened.store.put({ account: 'a', callId: 'two' }, 'relay1.1.BBB', later);
      expect(await all('a', 'two', 'three', 'one', 'one')).toEqual({
        one: 'relay1.1.AAA',
        two: 'relay1.1.BBB',
      });
      expect(await all('a')).toEqual({});
    });

    it('separates accounts, whatever their names and ids are', async () => {
      await opened.store.put({ account: 'b', callId: 'same' }, 'of b', later);
      await opened.store.put({ account: 'c', callId: 'same' }, 'of c', later);
      expect(await all('b', 'same')).toEqual({ same: 'of b' });
      expect(await all('b\nsame', '')).toEqual({});
    });

    it('replaces a state with the same key', async () => {
      await opened.store.put({ account: 'd', callId: 'x' }, 'y'.repeat(700_000), later);
      await opened.store.put({ account: 'd', callId: 'x' }, 'short', later);
      expect(await all('d', 'x')).toEqual({ x: 'short' });
    });

    it('returns nothing that has expired', async () => {
      await opened.store.put({ account: 'e', callId: 'x' }, 'old', nowSeconds);
      await opened.store.put({ account: 'e', callId: 'y' }, 'new', nowSeconds + 1);
      expect(await all('e', 'x', 'y')).toEqual({ y: 'new' });
    });

    it('keeps a state of 1.2 MB, and rejects a larger one', async () => {
      const large = 'abcdefghij'.repeat(120_000);
      await opened.store.put({ account: 'f', callId: 'large' }, large, later);
      expect((await opened.store.read('f', ['large'])).get('large') === large).toBe(true);
      const put = opened.store.put({ account: 'f', callId: 'larger' }, `${large}x`, later);
      await expect(put).rejects.toThrow(StateTooLarge);
      expect(await all('f', 'larger')).toEqual({});
    });

    it('returns 200 turns at once', async () => {
      const ids = Array.from({ length: 200 }, (_, i) => `call${i}`);
      await Promise.all(ids.map((callId) => opened.store.put({ account: 'g', callId }, callId, later)));
      expect(await all('g', ...ids)).toEqual(Object.fromEntries(ids.map((id) => [id, id])));
    });
  });
}
