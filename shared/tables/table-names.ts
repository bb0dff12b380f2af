/** What the tables are called: in code, and by AWS and the emulator. */
import type { tableSchemas } from './table-schemas.ts';

export type TableName = keyof typeof tableSchemas;

/** `<stack>-<table>`: the name that AWS and the emulator know the table by. */
export const physicalTableName = (stack: string, table: TableName): string => `${stack}-${table}`;
