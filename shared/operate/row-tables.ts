/** Port: the rows of the tables that operators edit, written one by one and never blindly. */
import type { TableName } from '../tables/table-names.ts';
import type { Failure } from './operator-failure.ts';

/** A row as the table has it, before any schema has read it; written ones may hold an ExactNumber. */
export type RawRow = Record<string, unknown>;

/** A decimal that a JavaScript number would round: it is written as it stands. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** One write, as data: what plans consist of. Only `replace` overwrites blindly. */
export type RowWrite = {
  table: TableName;
  /** Thrown when somebody else wrote the row since the plan was made. Absent: then the row may stay as it is. */
  conflict?: Failure;
} & (
  | { kind: 'create' | 'replace'; row: RawRow }
  /** An attribute that is undefined is taken away. `unchanged`: what the row must still have; undefined: no such attribute. */
  | { kind: 'update'; key: RawRow; attributes: RawRow; unchanged: RawRow }
  | { kind: 'remove'; key: RawRow; unchanged: RawRow }
);

/** All that operators' actions do to rows that operators edit. Every method throws a Failure that says what to do next. */
export interface RowTables {
  /** @param key the partition key's value */
  get(table: TableName, key: string): Promise<RawRow | undefined>;
  scan(table: TableName): Promise<RawRow[]>;
  /**
   * @returns false when there is a row that was to be new, or when one that was to be changed is gone (an update must not
   * bring it back) or not `unchanged`; it then stays as it is
   */
  write(write: RowWrite): Promise<boolean>;
  /** All of them in one step, or none. */
  writeTogether(writes: RowWrite[]): Promise<void>;
}
