/** What validation found in a row; the publisher writes it on the row as `_problem` and `_warning`. */
export interface ValidationResult {
  /** Why this row, or this version of it, is not used. */
  problem?: string;
  /** What to look at in a row that is used. */
  warning?: string;
}

/** The tables that make up the configuration. */
export type ConfigTable = 'channels' | 'charges' | 'plans' | 'settings';

/** The validation result of one row. */
export interface RowResult extends ValidationResult {
  table: ConfigTable;
  /** The row's key, as the table has it. */
  key: string | number;
}
