import { readFile } from 'node:fs/promises';
import * as z from 'zod/mini';
import { tableSchemas, type KeyAttribute } from '../../tables/table-schemas.ts';
import type { TableName } from '../../tables/table-names.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import { usageFailure } from '../operator-failure.ts';
import type { RawRow } from '../row-tables.ts';

/** Rows by table; a table that the file does not name is undefined. */
export type FileRows<Table extends TableName> = { [Name in Table]?: RawRow[] };

const File = z.record(z.string(), z.array(z.record(z.string(), z.unknown())));

/** Reads `{"channels": [{...}], ...}`, without notes and marks. Throws a Failure that says what does not fit. */
export async function readRowsFile<Table extends TableName>(
  path: string,
  tables: readonly Table[],
): Promise<FileRows<Table>> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw usageFailure(`the file ${path} cannot be read`);
  });
  const content = z.safeParse(File, parseJson(path, text));
  if (!content.success)
    throw usageFailure(`${path}: wanted a map of lists of rows: {"channels": [{"id": ...}], ...}`);
  const rows: FileRows<Table> = {};
  for (const [name, found] of Object.entries(content.data)) {
    const table = tables.find((each) => each === name);
    if (table === undefined)
      throw usageFailure(`${path}: found a table ${name}, wanted only ${tables.join(', ')}`);
    rows[table] = found.map((raw) => plainRow(raw) as RawRow);
    checkKeys(path, table, rows[table]);
  }
  return rows;
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The parser's message quotes the file, which may hold anything.
    const at = /at position \d+( \(line \d+ column \d+\))?/.exec(error instanceof Error ? error.message : '');
    throw usageFailure(`${path} is not readable as JSON${at ? `, ${at[0]}` : ''}`);
  }
}

/** A row without its key, or two with the same, cannot be written as meant. */
function checkKeys(path: string, table: TableName, rows: RawRow[]): void {
  const { partitionKey, sortKey }: { partitionKey: KeyAttribute; sortKey?: KeyAttribute } =
    tableSchemas[table];
  const seen = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const where = `${path}: ${table}[${index}]`;
    for (const { name, type } of [partitionKey, ...(sortKey ? [sortKey] : [])]) {
      const wanted = type === 'N' ? 'number' : 'string';
      if (typeof row[name] === wanted && row[name] !== '') continue;
      throw usageFailure(
        `${where}.${name}: found no ${wanted === 'number' ? 'number' : 'text'}, which is its key`,
      );
    }
    const key = JSON.stringify([row[partitionKey.name], sortKey && row[sortKey.name]]);
    if (seen.has(key)) throw usageFailure(`${where}: the row with this key stands there twice`);
    seen.add(key);
  }
}
