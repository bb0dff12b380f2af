/** The attributes `_problem` and `_warning`, by which rows tell operators what is wrong with them. */
import type { ValidationResult } from '../../config/validation-result.ts';
import type { TableName } from '../../tables/table-names.ts';

/** Tables whose rows are validated one by one, when they are written; they are no part of the configuration. */
export const markedTables = ['keys', 'accounts'] as const;

/** A row of such a table, as its last write left it. */
export interface WrittenRow {
  table: (typeof markedTables)[number];
  key: string | number;
  raw: unknown;
}

/** A row as it was read, with the result of its validation. */
export interface ValidatedRow {
  table: TableName;
  key: string | number;
  raw: unknown;
  result: ValidationResult;
}

export interface RowMarks {
  /**
   * Writes the marks of these rows where they differ from those that the row has: unchanged marks are not rewritten, so
   * our own stream events do not loop; deleted rows are not recreated. A row that cannot be marked is logged and holds
   * up no other. Throws MarksLost, after all rows were tried.
   */
  write(rows: ValidatedRow[]): Promise<void>;
}

/**
 * The store did not answer for all marks; whatever was to be published is published. The name is a signal: Lambda hands
 * it over as the error's type, and the local start goes on without marks when it finds it.
 */
export class MarksLost extends Error {
  override readonly name = 'MarksLost';
}
