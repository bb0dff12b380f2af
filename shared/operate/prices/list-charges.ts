import { ChargeRow } from '../../config/rows/charge-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { remark, say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

/** Lists billing rules as the relay reads them, and says which of their models an earlier rule prices. */
export async function listCharges(session: Session): Promise<void> {
  const { charges, problems } = readCharges(await session.tables.scan('charges'));
  const priced = new Set<string>();
  if (session.json) sayJson(charges);
  else if (charges.length === 0) say('no rules: every model is free');
  else sayColumns([chargeHead, ...charges.map(chargeCells)]);
  for (const { id, models } of charges) {
    const shadowed = models.filter((model) => priced.has(model));
    if (shadowed.length > 0) remark(`${id}: a rule with a lower id prices ${shadowed.join(', ')}`);
    models.forEach((model) => priced.add(model));
  }
  for (const problem of problems) remark(problem);
}

/** The rows that can be read, by id, and a line for each that cannot. */
export function readCharges(rows: RawRow[]): { charges: ChargeRow[]; problems: string[] } {
  const charges: ChargeRow[] = [];
  const problems: string[] = [];
  for (const raw of rows) {
    const reading = readRow(ChargeRow, raw);
    if ('problem' in reading) problems.push(`${String(raw['id'])} is not used: ${reading.problem}`);
    else charges.push(reading.row);
  }
  return { charges: charges.toSorted((a, b) => a.id - b.id), problems };
}

export const chargeHead = ['ID', 'TYPE', 'INPUT', 'OUTPUT', 'MODELS'];

const modelsShown = 6;

export function chargeCells({ id, type, models, input, output }: Omit<ChargeRow, 'anonymous'>): string[] {
  const more = models.length > modelsShown ? ` and ${models.length - modelsShown} more` : '';
  const free = type === 'non-billing';
  return [
    String(id),
    type,
    type === 'token-billing' ? String(input) : '-',
    free ? '-' : String(output),
    models.slice(0, modelsShown).join(' ') + more,
  ];
}
