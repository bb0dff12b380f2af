/**
 * Formats the result of a sheet as CSV for a mail merge: new keys, and a message for each customer. It contains keys, so only its owner may
 * read the file, and only the operator who applied the sheet may see it.
 */
import { formatYuan, type NanoYuan } from '../../shared/billing/money.ts';
import { nameSheetKey, type LineOutcome } from '../../shared/operate/apply-sheet.ts';
import { formatCount, formatMoney } from '../../shared/operate/plan.ts';
import { isSecretKey } from '../../shared/wire/ids.ts';
import { formatCsv, parseCsvLines } from './csv.ts';
import { listTexts } from '../../shared/wire/json.ts';

const resultColumns = [
  'account',
  'contact.email',
  'state',
  'key_id',
  'key',
  'hash',
  'grant_id',
  'credited',
  'balance',
  'problem',
  'message',
] as const;

const formatAmount = (amount: NanoYuan | undefined): string =>
  amount === undefined ? '' : formatYuan(amount);

const formatOutcome = ({ line, state, ...outcome }: LineOutcome): string[] => [
  line.account,
  line.email ?? '',
  state,
  line.key?.id ?? '',
  outcome.secretKey ?? '',
  outcome.hash ?? '',
  line.credit?.id ?? '',
  formatAmount(outcome.credited),
  formatAmount(outcome.balance),
  outcome.problem ?? '',
  outcome.message?.join('\n') ?? '',
];

/** Leaves out unchanged lines, except those that an interrupted run may have carried out. */
const hasResult = ({ line, state, secretKey }: LineOutcome): boolean =>
  state !== 'unchanged' || secretKey !== undefined || line.credit !== undefined;

const findColumn = (name: (typeof resultColumns)[number]): number => resultColumns.indexOf(name);

/** Result lines with the same name (customer, key and credit) replace each other. */
const nameLine = (cells: readonly string[]): string =>
  JSON.stringify([cells[0], cells[findColumn('key_id')], cells[findColumn('grant_id')]]);

/** @param earlier the file's previous content. Its other lines stay, because they may be the only copy of their keys. */
export function formatResult(outcomes: readonly LineOutcome[], earlier = ''): string {
  const rows = new Map(readRows(earlier).map((cells) => [nameLine(cells), cells]));
  for (const outcome of outcomes.filter(hasResult)) {
    const cells = formatOutcome(outcome);
    const name = nameLine(cells);
    if (outcome.state !== 'unchanged' || !rows.has(name)) rows.set(name, cells);
  }
  return formatCsv([[...resultColumns], ...rows.values()]);
}

function readRows(csv: string): string[][] {
  const [header, ...lines] = csv === '' ? [] : parseCsvLines(csv, ',');
  const places = resultColumns.map((name) => header?.cells.indexOf(name) ?? -1);
  // Results of earlier versions have no address.
  if (places.some((place, at) => place === -1 && resultColumns[at] !== 'contact.email')) return [];
  return lines.map(({ cells }) => places.map((place) => (cells[place] ?? '').replace(/^'(?=[=+\-@])/, '')));
}

/** The keys of an earlier result, by customer and id. */
export const readResultKeys = (csv: string): [string, string][] =>
  readRows(csv).flatMap((cells): [string, string][] => {
    const secretKey = cells[findColumn('key')] ?? '';
    const name = nameSheetKey(cells[0] ?? '', cells[findColumn('key_id')] ?? '');
    return isSecretKey(secretKey) ? [[name, secretKey]] : [];
  });

export function describeResult(outcomes: readonly LineOutcome[]): { lines: string[]; warnings: string[] } {
  const done = outcomes.filter(({ state }) => state === 'new' || state === 'changed');
  const credits = outcomes.flatMap(({ credited }) => credited ?? []);
  const failed = outcomes.filter(({ problem }) => problem !== undefined);
  const pending = outcomes.filter(
    ({ credited, balance, problem }) =>
      credited !== undefined && balance === undefined && problem === undefined,
  );
  const total = credits.reduce((sum, amount) => sum + amount, 0n);
  return {
    lines: listTexts(
      (done.length > 0 || failed.length === 0) &&
        `Saved ${formatCount(done.length, 'row')} (live within 30 s).`,
      credits.length > 0 && `Credited ${formatMoney(total)} in ${formatCount(credits.length, 'grant')}.`,
    ),
    warnings: listTexts(
      failed.length > 0 &&
        `${formatCount(failed.length, 'line')} failed. Apply the sheet again: nothing is done twice.`,
      pending.length > 0 &&
        `${formatCount(pending.length, 'grant is', 'grants are')} pending and will be applied within minutes.`,
      ...failed.slice(0, 20).map(({ line, problem }) => `${line.place} (${line.account}): ${problem}`),
    ),
  };
}
