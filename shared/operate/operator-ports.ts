/** Ports of operators' actions. Faces (CLI, console, report) open them; actions never print or ask. */
import type { Clock } from '../relay/ports/clock.ts';
import type { Hmac } from '../relay/ports/hmac.ts';
import type { PaymentStore } from '../relay/ports/stores/payment-store.ts';
import type { UpstreamTransport } from '../relay/ports/upstream-transport.ts';
import type { AwsAccount } from './aws-account.ts';
import type { CallLog } from './call-log.ts';
import type { ConfigVersions } from './config-versions.ts';
import type { LedgerReader } from './ledger-reader.ts';
import type { ResponseRows } from './response-rows.ts';
import type { RowPages } from './row-pages.ts';
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

/** Requests to the tables, and how many bytes the items had that came back, as DynamoDB counts them. */
export interface TableTraffic {
  requests: number;
  bytes: number;
}

export interface OperatorPorts {
  target: Target;
  clock: Clock;
  random: StrongRandom;
  hmac: Hmac;
  tables: RowTables;
  pages: RowPages;
  ledger: LedgerReader;
  /** Of these ports since they were opened: a page shows the difference from its beginning to its end. */
  traffic(): TableTraffic;
  payments: PaymentStore;
  responses: ResponseRows;
  config: ConfigVersions;
  secrets: SecretWriter;
  /** The relay's transport to upstreams, with its address rules. */
  upstreams: UpstreamTransport;
  /** The base URL for clients; undefined: it cannot be determined. */
  baseUrl(): Promise<string | undefined>;
  account: AwsAccount;
  log: CallLog;
  /**
   * Who acts: the caller's ARN, or the access key where AWS does not say it; `local` beside local tables. Throws a Failure
   * when there are no credentials.
   */
  operator(): Promise<string>;
}
