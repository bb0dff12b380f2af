/** Parses a rows file: `{"channels": [{...}], ...}`. Messages never quote it: it may contain secrets. */
import * as z from 'zod/mini';
import type { ConfigRows } from '../../config/config-rows.ts';
import type { TableName } from '../../tables/table-names.ts';
import { tableSchemas, type KeyAttribute } from '../../tables/table-schemas.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import { usageFailure } from '../operator-failure.ts';
import type { RawRow } from '../row-tables.ts';
import { configTables, rowsByKey } from './row-changes.ts';

export interface RowsFile {
  /** The file's name in messages. */
  name: string;
  text: string;
}

/** Rows by table; a table that the file does not name is undefined. */
export type FileRows<Table extends TableName> = { [Name in Table]?: RawRow[] };

const File = z.record(z.string(), z.array(z.record(z.string(), z.unknown())));

/** Returns the rows without notes and marks. Throws a Failure that describes the first mistake. */
export function readRowsFile<Table extends TableName>(
  { name, text }: RowsFile,
  tables: readonly Table[],
): FileRows<Table> {
  const content = z.safeParse(File, parseJson(name, text));
  if (!content.success)
    throw usageFailure(`${name}: wanted a map of lists of rows: {"channels": [{"id": ...}], ...}`);
  const rows: FileRows<Table> = {};
  for (const [tableName, found] of Object.entries(content.data)) {
    const table = tables.find((each) => each === tableName);
    if (table === undefined)
      throw usageFailure(`${name}: found a table ${tableName}, wanted only ${tables.join(', ')}`);
    rows[table] = found.map((raw) => plainRow(raw) as RawRow);
    checkKeys(name, table, rows[table]);
  }
  return rows;
}

/** Adds the file's rows to `rows`; a row of the file replaces the row with the same key. */
export function putOver(rows: ConfigRows, file: FileRows<keyof ConfigRows>): ConfigRows {
  const tables = configTables.map((table) => {
    const all = [...rowsByKey(table, rows[table]), ...rowsByKey(table, file[table] ?? [])];
    return [table, [...new Map(all).values()]];
  });
  return Object.fromEntries(tables) as ConfigRows;
}

function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The parser's message quotes the file, so only the position is reported.
    const at = /at position \d+( \(line \d+ column \d+\))?/.exec(error instanceof Error ? error.message : '');
    throw usageFailure(`${name} is not readable as JSON${at ? `, ${at[0]}` : ''}`);
  }
}

/** Throws a Failure for a row without a key, and for two rows with the same key. */
function checkKeys(file: string, table: TableName, rows: RawRow[]): void {
  const { partitionKey, sortKey }: { partitionKey: KeyAttribute; sortKey?: KeyAttribute } =
    tableSchemas[table];
  const seen = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const where = `${file}: ${table}[${index}]`;
    for (const { name, type } of [partitionKey, ...(sortKey ? [sortKey] : [])]) {
      const isKey =
        type === 'N' ? typeof row[name] === 'number' : typeof row[name] === 'string' && row[name] !== '';
      if (!isKey)
        throw usageFailure(
          `${where}.${name}: found no ${type === 'N' ? 'number' : 'text'}, which is its key`,
        );
    }
    const key = JSON.stringify([row[partitionKey.name], sortKey && row[sortKey.name]]);
    if (seen.has(key)) throw usageFailure(`${where}: the row with this key stands there twice`);
    seen.add(key);
  }
}
