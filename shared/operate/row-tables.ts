/** Port: the rows of the tables that operators edit, written one by one and never blindly. */
import type { TableName } from '../tables/table-names.ts';

/** A row as the table has it, before any schema has read it; written ones may hold an ExactNumber. */
export type RawRow = Record<string, unknown>;

/** A decimal that a JavaScript number would round: it is written as it stands. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The partition key's value, or all key attributes of a table that has a sort key. */
export type Key = string | RawRow;

/** A change of some attributes. */
export interface RowUpdate {
  /** Those that are undefined are taken away. */
  attributes: RawRow;
  /** What the row must still have; undefined stands for an absent attribute. */
  unchanged?: RawRow;
}

/** All that operators' actions do to rows that operators edit. Every method throws a Failure that says what to do next. */
export interface RowTables {
  get(table: TableName, key: Key): Promise<RawRow | undefined>;
  scan(table: TableName): Promise<RawRow[]>;
  /** Writes a new row. @returns false when there is one with this key already, which stays as it is. */
  create(table: TableName, row: RawRow): Promise<boolean>;
  /** Writes the whole row, over the one that may be there. */
  replace(table: TableName, row: RawRow): Promise<void>;
  /**
   * Changes a row that exists.
   * @returns false when the row is gone (an update must not bring it back), or no longer has the values of `unchanged`
   */
  update(table: TableName, key: Key, update: RowUpdate): Promise<boolean>;
  /** @returns false when the row is gone, or no longer has the values of `unchanged` */
  remove(table: TableName, key: Key, unchanged: RawRow): Promise<boolean>;
  /**
   * One step, or none: writes the new `row`, and changes the row at `key` if it still has the values of `unchanged`.
   */
  succeed(table: TableName, row: RawRow, update: RowUpdate & { key: string }): Promise<void>;
}
