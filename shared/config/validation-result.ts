/** What a row is told. `problem`: it, or this version of it, is not used. `warning`: it is used, but look at it. */
export interface Judgement {
  problem?: string;
  warning?: string;
}

/** The tables that make up the configuration. */
export type ConfigTable = 'channels' | 'charges' | 'plans' | 'settings';

export interface Verdict extends Judgement {
  table: ConfigTable;
  /** The row's key, as the table has it. */
  key: string | number;
}
