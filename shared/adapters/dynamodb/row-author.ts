/** The marks `_by` and `_at` of rows that operators wrote. Configuration and keys ignore attributes with `_`. */
import type { TableName } from '../../tables/table-names.ts';

export interface AuthorMarks {
  /** The ARN of the caller; `local` beside local tables. */
  _by: string;
  /** ISO 8601, by the clock of the operator's machine. */
  _at: string;
}

/** Who writes, and when. Asked before each write, never before a read. */
export type RowAuthor = () => Promise<AuthorMarks>;

/** The tables that people edit. Items of other tables say by themselves who wrote them, or are written by functions. */
const signedTables: ReadonlySet<TableName> = new Set([
  'channels',
  'charges',
  'plans',
  'settings',
  'keys',
  'accounts',
  'grants',
]);

export const isSigned = (table: TableName): boolean => signedTables.has(table);

export const rowAuthor =
  (operator: () => Promise<string>): RowAuthor =>
  async () => ({ _by: await operator(), _at: new Date().toISOString() });
