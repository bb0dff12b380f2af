/** The channels as the relay tries them. Of a row with a problem it returns the problem and nothing else. */
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { readChannel, secretsOf } from '../../config/compile/read-channel.ts';
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

/** In the order in which they are tried; rows with a problem come last. */
export async function listChannels({
  tables,
  target,
}: Pick<OperatorPorts, 'tables' | 'target'>): Promise<ListedChannel[]> {
  const rows = await tables.scan('channels');
  return rows
    .map((raw) => listed(raw, target))
    .toSorted(
      (a, b) =>
        // Between two rows with a problem the difference is NaN: their ids decide.
        (b.priority ?? -Infinity) - (a.priority ?? -Infinity) || compareCodeUnits(a.id, b.id),
    );
}

function listed(raw: RawRow, rules: { local: boolean }): ListedChannel {
  const id = String(raw['id']);
  const reading = readChannel(raw, rules);
  // A secret may have been typed into the wrong attribute.
  if ('problem' in reading) return { id, state: 'bad', problem: reading.problem };
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
