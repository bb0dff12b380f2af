import * as z from 'zod/mini';
import { explainIssues } from './explain.ts';

/** A row that is used, perhaps with a remark; or why it is not. */
export type RowReading<Row> = { row: Row; warning?: string } | RowProblem;

export interface RowProblem {
  /** Says in words what was found and what is wanted. */
  problem: string;
  /** true: a switch of the row is unreadable, so not even an earlier version of the row may be served. */
  off?: boolean;
}

/**
 * Reads one row of a table as the SDK's document client returns it (numbers, JavaScript sets). Attributes that
 * start with `_` are notes and marks and never break a row.
 */
export function readRow<Row>(schema: z.ZodMiniType<Row>, raw: unknown): RowReading<Row> {
  const row = withoutNotes(raw);
  const parsed = z.safeParse(schema, row);
  return parsed.success ? { row: parsed.data } : { problem: explainIssues(parsed.error.issues, row) };
}

/** One attribute of a row of unknown shape; undefined when there is none. */
export function attributeOf(raw: unknown, name: string): unknown {
  if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, name)) return undefined;
  return (raw as Record<string, unknown>)[name];
}

function withoutNotes(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw;
  return Object.fromEntries(Object.entries(raw).filter(([name]) => !name.startsWith('_')));
}
