/** Lists the billing rules as the relay reads them. */
import { ruleOf, sinceMs } from '../../billing/price-rule.ts';
import { ChargeRow } from '../../config/rows/charge-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';

export interface ReadCharges {
  /** Sorted by id. */
  charges: ChargeRow[];
  /** A sentence for each row that cannot be read. */
  problems: string[];
}

export interface ChargeList extends ReadCharges {
  /** The models of a rule that another one prices, now or, if the rule is not in force yet, from then on. */
  /** `byId`: both begin at the same time. */
  shadowed: { id: number; by: number; byId: boolean; models: string[] }[];
}

export async function listCharges({
  clock,
  tables,
}: Pick<OperatorPorts, 'clock' | 'tables'>): Promise<ChargeList> {
  const { charges, problems } = readCharges(await tables.scan('charges'));
  const shadowed = charges.flatMap((rule) => {
    const atMs = Math.max(clock.now(), sinceMs(rule));
    const byRule = Map.groupBy(rule.models, (model) => ruleOf(charges, model, atMs) ?? rule);
    byRule.delete(rule);
    return [...byRule].map(([other, models]) => {
      const byId = sinceMs(other) === sinceMs(rule);
      return { id: rule.id, by: other.id, byId, models };
    });
  });
  return { charges, problems, shadowed };
}

export function readCharges(rows: RawRow[]): ReadCharges {
  const charges: ChargeRow[] = [];
  const problems: string[] = [];
  for (const raw of rows) {
    const reading = readRow(ChargeRow, raw);
    if ('problem' in reading) problems.push(`${String(raw['id'])} is not used: ${reading.problem}`);
    else charges.push(reading.row);
  }
  return { charges: charges.toSorted((a, b) => a.id - b.id), problems };
}
