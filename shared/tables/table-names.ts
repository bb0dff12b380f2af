/** Names of the tables: in code, and in AWS and the emulator. */
import type { tableSchemas } from './table-schemas.ts';

export type TableName = keyof typeof tableSchemas;

/** `<stack>-<table>`: the table's name in AWS and in the emulator. */
export const physicalNameOf = (stack: string, table: TableName): string => `${stack}-${table}`;
