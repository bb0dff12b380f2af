/**
 * Lists channels in the order in which the relay tries them. Shows no value of a row with a problem, except
 * its id.
 */
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { readChannel, secretsOf } from '../../config/compile/read-channel.ts';
import { markOfVariable } from '../../config/rows/secret-reference.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';

export interface ListedChannel {
  id: string;
  state: 'on' | 'off' | 'bad';
  priority?: number;
  weight?: number;
  models?: string[];
  endpoint?: string;
  secret?: string[];
  problem?: string;
  warning?: string;
}

/** Rows with a problem come last. */
export async function listChannels({
  tables,
  target,
}: Pick<OperatorPorts, 'tables' | 'target'>): Promise<ListedChannel[]> {
  return listedChannels(await tables.scan('channels'), target);
}

export const listedChannels = (rows: readonly unknown[], rules: { local: boolean }): ListedChannel[] =>
  rows
    .map((raw) => listed(raw as RawRow, rules))
    .toSorted(
      (a, b) =>
        // For two rows with a problem the difference is NaN, so they are sorted by id.
        (b.priority ?? -Infinity) - (a.priority ?? -Infinity) || compareCodeUnits(a.id, b.id),
    );

function listed(raw: RawRow, rules: { local: boolean }): ListedChannel {
  const id = String(raw['id']);
  const reading = readChannel(raw, rules);
  // A secret may have been typed into a wrong attribute, so none is shown.
  if ('problem' in reading) return { id, state: 'bad', problem: reading.problem };
  const problem = markOfVariable(raw, rules);
  if (problem !== undefined) return { id, state: 'bad', problem };
  const { row, warning } = reading;
  return {
    id,
    state: row.state ? 'on' : 'off',
    priority: row.priority,
    weight: row.weight,
    models: row.models,
    endpoint: row.endpoint,
    secret: secretsOf(row),
    ...(warning !== undefined && { warning }),
  };
}
