/** What operators' actions need of the world. Faces (CLI, console, report) open it; actions never print or ask. */
import type { Clock } from '../relay/ports/clock.ts';
import type { UpstreamTransport } from '../relay/ports/upstream-transport.ts';
import type { ConfigVersions } from './config-versions.ts';
import type { LedgerReader } from './ledger-reader.ts';
import type { RowTables } from './row-tables.ts';
import type { SecretWriter } from './secret-writer.ts';

/** Which tables a run works on. */
export interface Target {
  /** The prefix of the table names. */
  stack: string;
  /** Absent: the real DynamoDB of the account and region that the environment names. */
  endpoint?: string;
  /** true on a loopback endpoint: rows may use loopback addresses and `env:` secrets there. */
  local: boolean;
}

/** Values that nobody can guess. */
export interface StrongRandom {
  /** A new key of a client: `sk-` and 48 characters. */
  secretKey(): string;
  /** That many random bytes, in hex. */
  hex(bytes: number): string;
}

export interface OperatorPorts {
  target: Target;
  clock: Clock;
  random: StrongRandom;
  tables: RowTables;
  ledger: LedgerReader;
  config: ConfigVersions;
  secrets: SecretWriter;
  /** As the relay calls upstreams, with its rules for addresses. */
  upstreams: UpstreamTransport;
  /** What clients set as base URL; undefined: it could not be found out. */
  baseUrl(): Promise<string | undefined>;
}
