import { formatYuan } from '../../billing/amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import { sayCsv } from '../prices/csv.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { ledgerColumns, ledgerJson } from './ledger-view.ts';
import { selectRows, type LedgerOptions } from './select-rows.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark, say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

/** The newest rows; as CSV all of them, as they are read. */
export async function listLedger(
  session: Session,
  options: LedgerOptions & { limit: number },
): Promise<void> {
  if (session.csv) return exportLedger(session, options);
  let rows: LedgerRow[] = [];
  let count = 0;
  for await (const page of selectRows(session, options)) {
    count += page.length;
    rows = [...rows, ...page].toSorted((a, b) => ledgerTimeMs(b) - ledgerTimeMs(a)).slice(0, options.limit);
  }
  if (session.json) sayJson(rows.map(ledgerJson));
  else if (count === 0) say('no ledger rows');
  else sayRows(rows);
  if (count > rows.length) remark(`the newest ${rows.length} of ${count}: see --limit, --from, --csv`);
}

function sayRows(rows: LedgerRow[]): void {
  sayColumns([['BEGAN', 'ACCOUNT', 'ID', 'KIND', 'MODEL', 'TOKENS', 'YUAN', 'NOTE'], ...rows.map(columnsOf)]);
}

async function exportLedger(session: Session, options: LedgerOptions): Promise<void> {
  sayCsv([...ledgerColumns]);
  for await (const page of selectRows(session, options)) {
    for (const row of page) {
      const cells = ledgerJson(row);
      sayCsv(ledgerColumns.map((name) => String(cells[name] ?? '')));
    }
  }
}

function columnsOf(row: LedgerRow): string[] {
  const start = [isoTime(ledgerTimeMs(row)), row.account, row.id, row.kind];
  if (row.kind === 'grant')
    return [...start, '-', '-', `${row.amount > 0n ? '+' : ''}${formatYuan(row.amount)}`, row.reason];
  const { prompt_tokens: input, completion_tokens: output } = row;
  const tokens = input === undefined ? '-' : `${input}+${output ?? 0}`;
  const notes = [
    row.plan_slot === undefined ? '' : `plan ${row.plan_slot}`,
    row.official ? `official, would cost ${formatYuan(row.cost ?? 0n)}` : '',
    row.estimated ? 'estimated' : '',
    row.end === 'completed' ? '' : (row.end ?? ''),
  ];
  return [
    ...start,
    row.model,
    tokens,
    formatYuan(row.charge),
    notes.filter((note) => note !== '').join(', '),
  ];
}
