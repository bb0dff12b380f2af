/** View: what the relay will warn of at a channel's row beside all others, before it is written: models without a price, say. */
import { findingsIn } from './findings.ts';
import { putOver } from './rows-file.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';

export async function channelWarnings(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
  row: RawRow,
): Promise<string[]> {
  const rows = putOver(await ports.config.tables(), { channels: [row] });
  return findingsIn(rows, ports).flatMap(({ table, key, warning }) =>
    table === 'channels' && key === row['id'] && warning !== undefined ? [warning] : [],
  );
}
