import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { formatYuan } from '../../billing/amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import { sayCsv } from '../prices/csv.ts';
import { selectRows, type LedgerOptions } from './select-rows.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

export type Grouping = 'account' | 'model' | 'day';
export const groupings: readonly Grouping[] = ['account', 'model', 'day'];

interface Total {
  groups: string[];
  calls: number;
  promptTokens: number;
  completionTokens: number;
  charged: bigint;
  official: bigint;
  granted: bigint;
}

const groupOf: Record<Grouping, (row: LedgerRow) => string> = {
  account: (row) => row.account,
  model: (row) => (row.kind === 'grant' ? '(grants)' : row.model),
  day: (row) => new Date(ledgerTimeMs(row)).toISOString().slice(0, 10),
};

/** Sums of the selected rows, exact, by account, model and day as asked. Days are UTC days on which calls began. */
export async function totalLedger(
  session: Session,
  options: LedgerOptions & { by: Grouping[] },
): Promise<void> {
  const totals = new Map<string, Total>();
  for await (const page of selectRows(session, options))
    for (const row of page) addTo(totals, row, options.by);
  const sorted = [...totals.entries()]
    .toSorted(([a], [b]) => compareCodeUnits(a, b))
    .map(([, total]) => total);
  report(session, options.by, sorted);
}

function addTo(totals: Map<string, Total>, row: LedgerRow, by: Grouping[]): void {
  const groups = by.map((grouping) => groupOf[grouping](row));
  const key = groups.join('\u0000');
  const total = totals.get(key) ?? {
    groups,
    calls: 0,
    promptTokens: 0,
    completionTokens: 0,
    charged: 0n,
    official: 0n,
    granted: 0n,
  };
  totals.set(key, total);
  if (row.kind === 'grant') {
    total.granted += row.amount;
    return;
  }
  total.calls += 1;
  total.promptTokens += row.prompt_tokens ?? 0;
  total.completionTokens += row.completion_tokens ?? 0;
  total.charged += row.charge;
  total.official += row.cost ?? 0n;
}

function report(session: Session, by: Grouping[], totals: Total[]): void {
  const head = [...by, 'calls', 'prompt_tokens', 'completion_tokens', 'charged', 'official', 'granted'];
  const rows = totals.map((total) => [
    ...total.groups,
    String(total.calls),
    String(total.promptTokens),
    String(total.completionTokens),
    ...[total.charged, total.official, total.granted].map(formatYuan),
  ]);
  if (session.csv) return [head, ...rows].forEach(sayCsv);
  if (session.json)
    return sayJson(rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at]]))));
  if (rows.length === 0) return say('no ledger rows');
  const sum = (pick: (total: Total) => bigint): string =>
    formatYuan(totals.reduce((all, total) => all + pick(total), 0n));
  const calls = totals.reduce((all, total) => all + total.calls, 0);
  sayColumns([head.map((name) => name.toUpperCase()), ...rows]);
  say(
    `all: ${calls} calls, ${sum((total) => total.charged)} yuan charged, ${sum((total) => total.granted)} granted`,
  );
}
