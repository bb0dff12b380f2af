import { describe, expect, it } from 'vitest';
import type { Notice } from '../../shared/wire/public-api.ts';
import type { AlertStore, NoticeStore } from '../../shared/relay/ports/alerts.ts';

export interface OpenedAlertStores extends AsyncDisposable {
  marks: AlertStore;
  notices: NoticeStore;
}

const noticeOf = (id: string): Notice => ({
  id,
  type: 'balance.low',
  created: 1_795_000_000,
  account: 'acme',
  data: { balance: '0.5' },
});

/** The contract that alerts require of the in-memory store and of DynamoDB. */
export function alertStoresContract(name: string, open: () => Promise<OpenedAlertStores>): void {
  describe(`marks and notices ${name}`, () => {
    it('open a mark together with its notice, and only once per observed state', async () => {
      await using stores = await open();
      const raised = { cause: 'balance#acme', seen: undefined };
      expect(await stores.marks.raise({ ...raised, notice: noticeOf('n1') })).toBe(true);
      expect(await stores.marks.raise({ ...raised, notice: noticeOf('n2') })).toBe(false);
      const seen = (await stores.marks.marks(['balance#acme', 'balance#other'])).get('balance#acme');
      expect(seen).toEqual({ open: true, changes: 1 });
      expect(await stores.notices.find('n1')).toMatchObject({ notice: noticeOf('n1'), tries: 0, dueMs: 0 });
      expect(await stores.notices.find('n2')).toBeUndefined();
    });

    it('close a mark only in the observed state, and reopen it after that', async () => {
      await using stores = await open();
      const cause = 'balance#acme';
      await stores.marks.raise({ cause, seen: undefined, notice: noticeOf('n1') });
      const first = { open: true, changes: 1 };
      expect(await stores.marks.clear(cause, { open: true, changes: 3 })).toBe(false);
      expect(await stores.marks.clear(cause, first)).toBe(true);
      expect(await stores.marks.clear(cause, first)).toBe(false);
      expect(await stores.marks.raise({ cause, seen: first, notice: noticeOf('n2') })).toBe(false);
      const closed = { open: false, changes: 2 };
      expect(await stores.marks.raise({ cause, seen: closed, notice: noticeOf('n3') })).toBe(true);
      expect((await stores.marks.marks([cause])).get(cause)).toEqual({ open: true, changes: 3 });
    });

    it('let only one of several concurrent claims try a notice', async () => {
      await using stores = await open();
      await stores.marks.raise({ cause: 'c', seen: undefined, notice: noticeOf('n1') });
      const claims = await Promise.all([1, 2, 3].map(() => stores.notices.claim('n1', 0, 5_000)));
      expect(claims.filter(Boolean)).toHaveLength(1);
      expect(await stores.notices.find('n1')).toMatchObject({ tries: 1, dueMs: 5_000 });
      expect(await stores.notices.claim('unknown', 0, 5_000)).toBe(false);
    });

    it('keep the remaining receivers of the newest try only, and delete a notice without receivers', async () => {
      await using stores = await open();
      await stores.marks.raise({ cause: 'c', seen: undefined, notice: noticeOf('n1') });
      await stores.notices.claim('n1', 0, 1);
      await stores.notices.claim('n1', 1, 2);
      await stores.notices.leave('n1', 1, []);
      expect((await stores.notices.find('n1'))?.left).toContain('webhook');
      await stores.notices.leave('n1', 2, ['topic']);
      expect((await stores.notices.find('n1'))?.left).toEqual(['topic']);
      await stores.notices.leave('n1', 2, []);
      expect(await stores.notices.find('n1')).toBeUndefined();
    });

    it('list each waiting notice once', async () => {
      await using stores = await open();
      await Promise.all(['n1', 'n2', 'n1'].map((id) => stores.notices.await(id)));
      expect((await stores.notices.waiting()).toSorted()).toEqual(['n1', 'n2']);
      await stores.notices.forget(['n1', 'n3']);
      await stores.notices.forget(['n1']);
      expect(await stores.notices.waiting()).toEqual(['n2']);
    });
  });
}
