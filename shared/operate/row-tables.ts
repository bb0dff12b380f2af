/** Port: reads and writes the rows that operators edit. Writes are conditional, except `replace`. */
import type { TableName } from '../tables/table-names.ts';
import type { Failure } from './operator-failure.ts';

/** A row of a table before any schema validates it. A row to write may contain an ExactNumber. */
export type RawRow = Record<string, unknown>;

/** A decimal that a JavaScript number would round. It is stored with all its digits. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** One write of a plan, as data. Only `replace` overwrites without a condition. */
export type RowWrite = {
  table: TableName;
  /** Thrown if the row was changed after the plan was made. Absent: such a row is left unchanged. */
  conflict?: Failure;
} & (
  | { kind: 'create' | 'replace'; row: RawRow }
  /**
   * An undefined attribute is removed. `unchanged`: values that the row must still have; undefined: the
   * attribute is absent.
   */
  | { kind: 'update'; key: RawRow; attributes: RawRow; unchanged: RawRow }
  | { kind: 'remove'; key: RawRow; unchanged: RawRow }
);

/** Every method may throw a Failure whose message states what to do next. */
export interface RowTables {
  /** @param key the partition key's value */
  get(table: TableName, key: string): Promise<RawRow | undefined>;
  scan(table: TableName): Promise<RawRow[]>;
  /**
   * @returns false if nothing was written: a row to create exists already, or a row to change was deleted (an
   * update must not recreate it) or differs from `unchanged`
   */
  write(write: RowWrite): Promise<boolean>;
  /** Writes all rows in one transaction, or none. */
  writeTogether(writes: RowWrite[]): Promise<void>;
}
