import * as z from 'zod/mini';
import { explainIssues } from '../../wire/issue-sentence.ts';

/** A row that is used, with a warning if there is one; or the reason why it is not used. */
export type RowReading<Row> = { row: Row; warning?: string } | RowProblem;

export interface RowProblem {
  /** The text for operators: what was found and what is wanted. */
  problem: string;
  /** true: the row's switch is off or unreadable, so no earlier version of the row may be used either. */
  off?: boolean;
}

/**
 * Reads one row of a table as the SDK's document client returns it (numbers, JavaScript sets). Attributes
 * that start with `_` are notes and marks; they are ignored.
 */
export function readRow<Row>(
  schema: z.ZodMiniType<Row>,
  raw: unknown,
  warningsOf: (row: Row) => string[] = () => [],
): RowReading<Row> {
  const row = plainRow(raw);
  const parsed = z.safeParse(schema, row);
  if (!parsed.success) return { problem: explainIssues(parsed.error.issues, row) };
  return usedRow(parsed.data, warningsOf(parsed.data));
}

export const usedRow = <Row>(row: Row, warnings: string[]): RowReading<Row> =>
  warnings.length > 0 ? { row, warning: warnings.join('; ') } : { row };

/**
 * NULL is what tools write for nothing, so an attribute that is NULL is absent; but whoever wrote it into a switch may
 * have meant off, and absence is on. There it is a mistake, and mistakes there are off.
 */
const isAbsent = (name: string, value: unknown): boolean => value === null && !switches.has(name);
const switches: ReadonlySet<string> = new Set(['state', 'enabled']);

/** One attribute of a row of unknown shape; undefined if it is absent. */
export function attributeOf(raw: unknown, name: string): unknown {
  if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, name)) return undefined;
  const value = (raw as Record<string, unknown>)[name];
  return isAbsent(name, value) ? undefined : value;
}

/** One attribute of a row of unknown shape, for a sentence; empty if it is no text. */
export function textOf(raw: unknown, name: string): string {
  const value = attributeOf(raw, name);
  return typeof value === 'string' ? value : '';
}

/** A row as JSON, without notes and marks. A string set has no order, so it becomes a sorted list. */
export function plainRow(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return plainValue(raw);
  const present = Object.entries(raw).filter(
    ([name, value]) => !name.startsWith('_') && !isAbsent(name, value),
  );
  return Object.fromEntries(present.map(([name, value]) => [name, plainValue(value)]));
}

/**
 * Values that JSON cannot hold are not converted, and no schema accepts them. A member of a map that is NULL is absent.
 * @param keepsNull in what a row sets in requests, null is a value
 */
export function plainValue(value: unknown, keepsNull = false): unknown {
  if (value instanceof Set && [...value].every((item) => typeof item === 'string'))
    return [...(value as Set<string>)].toSorted();
  if (Array.isArray(value)) return value.map((item) => plainValue(item, keepsNull));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  const members = Object.entries(value).filter(([, inner]) => keepsNull || inner !== null);
  return Object.fromEntries(
    members.map(([name, inner]) => [name, plainValue(inner, keepsNull || name === 'set')]),
  );
}
