/** Lists the billing rules as the relay reads them. */
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
  /** The models of a rule that another rule with a lower id prices. */
  shadowed: { id: number; models: string[] }[];
}

export async function listCharges({ tables }: Pick<OperatorPorts, 'tables'>): Promise<ChargeList> {
  const { charges, problems } = readCharges(await tables.scan('charges'));
  const priced = new Set<string>();
  const shadowed = charges.map(({ id, models }) => {
    const before = models.filter((model) => priced.has(model));
    models.forEach((model) => priced.add(model));
    return { id, models: before };
  });
  return { charges, problems, shadowed: shadowed.filter(({ models }) => models.length > 0) };
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
