import { expect, it } from 'vitest';
import { noFigures } from '../../../shared/billing/daily-figures.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { boundExactly, type ModelEffect } from '../../../shared/operate/what-if/edit-effects.ts';
import { findRunningEmpty } from '../../../shared/operate/what-if/what-if.ts';

const yuan = 1_000_000_000n;
const figures = (charged: bigint) => ({ counts: { calls: 1 }, amounts: { charged } });

it('the forecast at the beginning of a month includes the accounts of the month before', async () => {
  const months: Record<string, string[]> = { '2026-11': ['acme', 'late'], '2026-12': ['acme'] };
  const ports = {
    clock: { now: () => Date.parse('2026-12-01T12:00:00Z') },
    ledger: {
      async *monthAccounts(month: string) {
        yield (months[month] ?? []).map((account) => ({ row: { account, month, figures: figures(yuan) } }));
      },
      quotas: async (accounts: string[]) =>
        accounts.map((account) => ({ row: { account, available: 7n * yuan, spent: 9n * yuan } })),
      async *daily(id: string) {
        yield [{ row: { key: { id, period: 'day#2026-11-30#m' }, figures: figures(yuan) } }];
      },
    },
  } as unknown as OperatorPorts;
  const revenue = { before: boundExactly(yuan), after: boundExactly(2n * yuan) };
  const effect = {
    model: 'm',
    calls: 1,
    charged: yuan,
    revenue,
    figures: noFigures,
  } as unknown as ModelEffect;
  const days = { from: '2026-11-25', to: '2026-12-01' };
  const found = await findRunningEmpty(ports, days, [effect]);
  expect(found).toMatchObject({ looked: 2, accounts: 2 });
  expect(found.sooner.map(({ account }) => account)).toEqual(['acme', 'late']);
});
