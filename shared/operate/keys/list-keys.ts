import { judgeKey, type KeyVerdict } from './key-state.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

/** Enough of a hash to name a key by. */
const shownHashCharacters = 12;

export async function listKeys(
  session: Session,
  options: { account?: string },
  nowMs: number,
): Promise<void> {
  const rows = (await session.tables.scan('keys'))
    .filter((row) => options.account === undefined || row['account'] === options.account)
    .toSorted((a, b) => sortText(a).localeCompare(sortText(b)));
  const judged = rows.map((row) => ({ row, verdict: judgeKey(row, nowMs) }));
  if (session.json) {
    sayJson(judged.map(({ row, verdict }) => asJson(row, verdict)));
    return;
  }
  if (judged.length === 0) {
    say('no keys: make one with `npm run ops -- key create --account <name>`');
    return;
  }
  sayColumns([
    ['HINT', 'HASH', 'ACCOUNT', 'STATE', 'WHY'],
    ...judged.map(({ row, verdict }) => [
      asText(row['hint']) || '-',
      asText(row['hash']).slice(0, shownHashCharacters),
      asText(row['account']),
      verdict.state,
      verdict.why,
    ]),
  ]);
}

function asJson(row: RawRow, verdict: KeyVerdict): Record<string, unknown> {
  const { hash, hint, account } = row;
  const written = Object.entries(row).map(([name, value]) => [
    name,
    value instanceof Set ? [...value] : value,
  ]);
  return { hash, hint, account, state: verdict.state, why: verdict.why, row: Object.fromEntries(written) };
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : '');
const sortText = (row: RawRow): string => `${asText(row['account'])} ${asText(row['hint'])}`;
