/** Finds rows with a problem or a warning by compiling them. Shows no value of a row with a problem. */
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import { secretsOf } from '../../config/compile/read-channel.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import { isOfStack, markOfVariable } from '../../config/rows/secret-reference.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** `problem`: why the row, or this version of it, is not used. */
export interface Finding {
  table: string;
  /** The key as text. */
  key: string;
  problem?: string | undefined;
  warning?: string | undefined;
}

export interface Compared {
  /** Rows of the newest snapshot, used in place of rows with a problem. */
  earlier?: ConfigRows | undefined;
  /** The rows of charges with which prices are compared. Absent: those of `earlier`. */
  pricesBefore?: readonly unknown[];
}

/** Compiles the rows and returns a finding for each row with a problem or a warning. */
export function findingsIn(
  rows: ConfigRows,
  { clock, target }: Pick<OperatorPorts, 'clock' | 'target'>,
  { earlier, pricesBefore }: Compared = {},
): Finding[] {
  const publishedAt = Math.floor(clock.now() / 1000);
  const options = {
    local: target.local,
    publishedAt,
    ...(earlier && { earlier }),
    ...(pricesBefore && { pricesBefore }),
  };
  const { snapshot } = compileSnapshot(rows, options);
  const why = `stack ${target.stack} may not read it`;
  const foreign = snapshot.channels
    .flatMap(secretsOf)
    .filter((reference) => !isOfStack(reference, target.stack));
  const unreadableSecrets = new Map(foreign.map((reference) => [reference, why]));
  return compileSnapshot(rows, { ...options, unreadableSecrets }).results.flatMap(({ key, ...result }) =>
    result.problem === undefined && result.warning === undefined ? [] : [{ ...result, key: String(key) }],
  );
}

/** As `findingsIn`, for rows as they stand in the tables: also what the running stack alone knows, by its marks. */
export function findingsInTables(
  rows: ConfigRows,
  ports: Pick<OperatorPorts, 'clock' | 'target'>,
  compared?: Compared,
): Finding[] {
  const findings = findingsIn(rows, ports, compared);
  const bad = badRows(findings);
  const marked = variableMarks(rows.channels, ports.target).filter((finding) => !bad.has(nameOf(finding)));
  const names = badRows(marked);
  return [...findings.filter((finding) => !names.has(nameOf(finding))), ...marked];
}

/** Channels that the running stack refused because of their variable. */
export const variableMarks = (channels: readonly unknown[], rules: { local: boolean }): Finding[] =>
  channels.flatMap((raw): Finding[] => {
    const problem = markOfVariable(raw, rules);
    return problem === undefined ? [] : [{ table: 'channels', key: String(attributeOf(raw, 'id')), problem }];
  });

/** For example `channels openai`. */
export const nameOf = ({ table, key }: { table: string; key: string | number }): string => `${table} ${key}`;

export const problemsOf = (findings: Finding[]): Finding[] =>
  findings.filter(({ problem }) => problem !== undefined);

export const warningsOf = (findings: Finding[]): Finding[] =>
  findings.filter(({ warning }) => warning !== undefined);

/** The names of the rows with a problem. */
export const badRows = (findings: Finding[]): Set<string> => new Set(problemsOf(findings).map(nameOf));

/** Of the rows as they stand in the tables now. */
export const configFindings = async (
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
): Promise<Finding[]> => findingsInTables(await ports.config.tables(), ports);
