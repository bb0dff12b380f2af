/** What operators' actions need of the world. Faces (CLI, console, report) open it; actions never print or ask. */
import type { ConfigStore } from './config-versions.ts';
import type { LedgerReader } from './ledger-reader.ts';
import type { Tables } from './row-tables.ts';
import type { Secrets } from './secret-writer.ts';

/** Which tables a run works on. */
export interface Target {
  /** The prefix of the table names. */
  stack: string;
  /** Absent: the real DynamoDB of the account and region that the environment names. */
  endpoint?: string;
  /** true on a loopback endpoint: rows may use loopback addresses and `env:` secrets there. */
  local: boolean;
}

export interface OperatorPorts {
  target: Target;
  tables: Tables;
  ledger: LedgerReader;
  config: ConfigStore;
  secrets: Secrets;
  /** What clients set as base URL; undefined: it could not be found out. */
  baseUrl(): Promise<string | undefined>;
}
