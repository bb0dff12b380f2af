/** One write to a row that operators edit, as data: what plans consist of. Only `replace` overwrites blindly. */
import type { TableName } from '../tables/table-names.ts';
import { tableSchemas } from '../tables/table-schemas.ts';
import type { RawRow, RowTables } from './row-tables.ts';

/** A row that must not exist yet. */
export interface NewRow {
  kind: 'create';
  table: TableName;
  row: RawRow;
}

export type RowWrite =
  | NewRow
  | { kind: 'replace'; table: TableName; row: RawRow }
  /** `unchanged`: the values that the row must still have; undefined stands for an absent attribute. */
  | { kind: 'update'; table: TableName; key: RawRow; attributes: RawRow; unchanged: RawRow }
  | { kind: 'remove'; table: TableName; key: RawRow; unchanged: RawRow };

/** @returns false when somebody else wrote the row since the plan was made; the row then stays as it is */
export async function writeRow(tables: RowTables, write: RowWrite): Promise<boolean> {
  const { kind, table } = write;
  if (kind === 'create') return tables.create(table, write.row);
  if (kind === 'update') return tables.update(table, write.key, write);
  if (kind === 'remove') return tables.remove(table, write.key, write.unchanged);
  await tables.replace(table, write.row);
  return true;
}

/** `channels openai`. */
export function nameOfWrite(write: RowWrite): string {
  const { partitionKey } = tableSchemas[write.table];
  const attributes = 'key' in write ? write.key : write.row;
  return `${write.table} ${String(attributes[partitionKey.name])}`;
}
