/** Ports of operators' actions. Faces (CLI, console, report) open them; actions never print or ask. */
import type { Clock } from '../relay/ports/clock.ts';
import type { Hmac } from '../relay/ports/hmac.ts';
import type { PaymentStore } from '../relay/ports/stores/payment-store.ts';
import type { UpstreamTransport } from '../relay/ports/upstream-transport.ts';
import type { AwsAccount } from './aws-account.ts';
import type { ConfigVersions } from './config-versions.ts';
import type { LedgerReader } from './ledger-reader.ts';
import type { ResponseRows } from './response-rows.ts';
import type { RowTables } from './row-tables.ts';
import type { SecretWriter } from './secret-writer.ts';

/** The tables that a run works on. */
export interface Target {
  /** The prefix of the table names. */
  stack: string;
  /** Absent: DynamoDB in the AWS account and region that the environment selects. */
  endpoint?: string;
  /** True on a loopback endpoint: rows may use loopback addresses and `env:` secrets there. */
  local: boolean;
}

/** Cryptographically strong random values. */
export interface StrongRandom {
  /** A new client key: `sk-` and 48 characters. */
  secretKey(): string;
  /** `bytes` random bytes, in hex. */
  hex(bytes: number): string;
}

export interface OperatorPorts {
  target: Target;
  clock: Clock;
  random: StrongRandom;
  hmac: Hmac;
  tables: RowTables;
  ledger: LedgerReader;
  payments: PaymentStore;
  responses: ResponseRows;
  config: ConfigVersions;
  secrets: SecretWriter;
  /** The relay's transport to upstreams, with its address rules. */
  upstreams: UpstreamTransport;
  /** The base URL for clients; undefined: it cannot be determined. */
  baseUrl(): Promise<string | undefined>;
  account: AwsAccount;
  /** The access key that the commands are signed with. Throws a Failure when there is none. */
  operator(): Promise<string>;
}
