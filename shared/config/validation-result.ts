/** The result of validating a row. The publisher writes it to the row as `_problem` and `_warning`. */
export interface ValidationResult {
  /** Why this version of the row is not used. */
  problem?: string;
  /** What may be wrong in a row that is used. */
  warning?: string;
}

/** The tables that make up the configuration. */
export type ConfigTable = 'channels' | 'charges' | 'plans' | 'settings';

/** The validation result of one row. */
export interface RowResult extends ValidationResult {
  table: ConfigTable;
  /** The row's key as stored in the table. */
  key: string | number;
}
