/** Compares two versions of the configuration, or the newest version with the tables. */
import { emptyRows } from '../../config/config-rows.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { badRows, findingsIn } from './findings.ts';
import { changesBetween, differencesOf, type RowDifference } from './row-changes.ts';

export interface ConfigDiff {
  /** Such as `version 11`. */
  from: string;
  /** Such as `version 12` or `the tables`. */
  to: string;
  differences: RowDifference[];
}

/**
 * Compares version `from` with version `to`, by default the newest. Without `from`, compares the newest
 * version with the tables.
 */
export async function diffConfig(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
  { from, to }: { from: number | undefined; to: number | undefined },
): Promise<ConfigDiff> {
  const { config } = ports;
  const newest = await config.newest();
  const rowsOf = async (version: number | undefined) => {
    const pointer = version === undefined ? newest : await config.version(version);
    return pointer ? config.rows(pointer) : emptyRows;
  };
  const nameOf = (version: number | undefined) => `version ${version ?? newest?.version ?? 'none'}`;
  const before = await rowsOf(from);
  const after = from === undefined ? await config.tables() : await rowsOf(to);
  return {
    from: nameOf(from),
    to: from === undefined ? 'the tables' : nameOf(to),
    differences: differencesOf(
      changesBetween(before, after),
      badRows([...findingsIn(before, ports), ...findingsIn(after, ports)]),
    ),
  };
}
