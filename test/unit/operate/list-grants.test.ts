import { expect, it } from 'vitest';
import type { WrittenGrant } from '../../../shared/billing/ledger-row.ts';
import { listGrants, type GrantsWanted } from '../../../shared/operate/customers/grants.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';

const [pageRows, pageCount, few] = [25, 40, 10];

/** In no order. Every tenth is not applied. */
const grantAt = (at: number): WrittenGrant => ({
  account: `account-${at % 7}`,
  grantId: `grant-${(at * 617) % 1000}`,
  amount: '1',
  applied: at % 10 === 0 ? undefined : `2026-11-${10 + (at % 13)}T00:00:00Z`,
  problem: undefined,
});

it.each<[GrantsWanted, number]>([
  [{ limit: few }, 1000],
  [{ limit: few, open: true }, 100],
  [{ limit: 2000 }, 1000],
])('lists %j in the order of the whole table, without holding it', async (wanted, count) => {
  let isRead = false;
  /** The rows that somebody still has after the last page. */
  const held = new Set<number>();
  const watched = (at: number): WrittenGrant => {
    const { grantId, ...grant } = grantAt(at);
    return Object.defineProperty(grant, 'grantId', {
      enumerable: true,
      get: () => {
        if (isRead) held.add(at);
        return grantId;
      },
    }) as WrittenGrant;
  };
  async function* grants(): AsyncGenerator<WrittenGrant[]> {
    for (let page = 0; page < pageCount; page += 1)
      yield Array.from({ length: pageRows }, (_, at) => watched(page * pageRows + at));
    isRead = true;
  }
  const ports = { ledger: { grants } } as unknown as OperatorPorts;
  let progress = 0;
  const listed = await listGrants(ports, wanted, (rows) => {
    progress += rows;
  });
  const inOrder = Array.from({ length: pageRows * pageCount }, (_, at) => grantAt(at))
    .filter(({ applied }) => !wanted.open || applied === undefined)
    .toSorted((a, b) => ((a.applied ?? '~') + a.grantId > (b.applied ?? '~') + b.grantId ? -1 : 1));
  expect(listed).toEqual({ grants: inOrder.slice(0, wanted.limit), count });
  expect(progress).toBe(1000);
  expect(held.size).toBeLessThanOrEqual(2 * wanted.limit + pageRows);
});
