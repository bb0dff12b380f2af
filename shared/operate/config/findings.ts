/** Finds rows with a problem or a warning by compiling them. Shows no value of a row with a problem. */
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import { secretsOf } from '../../config/compile/read-channel.ts';
import { isOfStack } from '../../config/rows/secret-reference.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** `problem`: why the row, or this version of it, is not used. */
export interface Finding {
  table: string;
  /** The key as text. */
  key: string;
  problem?: string | undefined;
  warning?: string | undefined;
}

/**
 * Compiles the rows and returns a finding for each row with a problem or a warning.
 * @param earlier rows of the newest snapshot, used in place of rows with a problem
 */
export function findingsIn(
  rows: ConfigRows,
  { clock, target }: Pick<OperatorPorts, 'clock' | 'target'>,
  earlier?: ConfigRows,
): Finding[] {
  const publishedAt = Math.floor(clock.now() / 1000);
  const options = { local: target.local, publishedAt, ...(earlier && { earlier }) };
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

/** For example `channels openai`. */
export const nameOf = ({ table, key }: { table: string; key: string | number }): string => `${table} ${key}`;

export const problemsOf = (findings: Finding[]): Finding[] =>
  findings.filter(({ problem }) => problem !== undefined);

export const warningsOf = (findings: Finding[]): Finding[] =>
  findings.filter(({ warning }) => warning !== undefined);

/** The names of the rows with a problem. */
export const badRows = (findings: Finding[]): Set<string> => new Set(problemsOf(findings).map(nameOf));
