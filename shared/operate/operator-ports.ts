/**
 * Ports of operators' actions. Faces (CLI, console, report) open them; actions never print or ask. Every method may throw a
 * Failure, whose message states what to do next. Reads are consistent, amounts exact, unless said; what may be long comes in pages.
 */
import type { Clock, Hmac, UpstreamTransport } from '../relay/ports/host.ts';
import type { PaymentStore, QuotaStore } from '../relay/ports/money-stores.ts';
import type { TableName } from '../tables/table-names.ts';
import type { ConsoleStore } from './hosted-console.ts';
import type { Failure } from './plan.ts';
import type { DailySum, DailyFigures } from '../billing/daily-figures.ts';
import type { WrittenGrant, LedgerRow } from '../billing/ledger-row.ts';
import type { ChannelMark, HourSum } from '../relay/ports/alerts.ts';
import type { HealthEntry } from '../relay/ports/runtime-stores.ts';
import type { DailyDifference } from '../billing/audit/daily-audit.ts';
import type { NanoYuan } from '../billing/money.ts';
import type { QuotaItem } from '../billing/quota-item.ts';
import type { WholeAccount } from '../billing/shards.ts';
import type { ConfigRows } from '../config/rows/read-table.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { HistoryWanted, KeptVersion } from '../relay/ports/config-store.ts';
import type { ReferenceRules, SecretUse } from '../config/rows/secret-reference.ts';
import type { ResponseHead, StoredResponse } from '../relay/ports/stored.ts';

/** The tables that a run works on. */
export interface Target {
  /** The prefix of the table names. */
  stack: string;
  /** By default DynamoDB in the AWS account and region of the environment. */
  endpoint?: string;
  /** True on a loopback endpoint: rows may use loopback addresses and `env:` secrets there. */
  local: boolean;
  /** Known to the hosted console only, as in ReferenceRules. */
  envSecrets?: ReferenceRules['envSecrets'];
  owners?: ReferenceRules['owners'];
}

/** Requests to the tables, and how many bytes the items had that came back, as DynamoDB counts them. */
export type TableTraffic = Record<'requests' | 'bytes', number>;

export interface OperatorPorts {
  target: Target;
  clock: Clock;
  /** Cryptographically strong. A new client key is `sk-` and 48 characters; `hex` has twice as many as bytes. */
  random: { secretKey(): string; hex(bytes: number): string };
  hmac: Hmac;
  tables: RowTables;
  pages: RowPages;
  ledger: LedgerReader;
  copies: TableCopies;
  /** Counted since the ports were opened. A page shows the difference over its own time. */
  traffic(): TableTraffic;
  payments: PaymentStore;
  responses: ResponseRows;
  consoles: ConsoleStore;
  config: ConfigVersions;
  secrets: SecretWriter;
  /** The relay's transport to upstreams, with its address rules. */
  upstreams: UpstreamTransport;
  /** The base URL for clients; undefined: it cannot be determined. */
  baseUrl(): Promise<string | undefined>;
  account(): Promise<AwsAccount>;
  log: CallLog;
  /**
   * The caller's ARN, or the access key if AWS does not say it; `local` for local tables. Throws a Failure without
   * credentials.
   */
  operator(): Promise<string>;
}

/** A row of a table before any schema validates it. A row to write may contain an ExactNumber. */
export type RawRow = Record<string, unknown>;

/** A decimal that a JavaScript number would round. It is stored with all its digits. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** One write of a plan, as data. Only `replace` overwrites without a condition. */
export type RowWrite = {
  table: TableName;
  /** Thrown if the row was changed after the plan was made. Without it, a changed row is left alone. */
  conflict?: Failure;
} & (
  | { kind: 'create' | 'replace'; row: RawRow }
  /**
   * An undefined attribute is removed. `unchanged`: values that the row must still have; undefined: the
   * attribute is absent.
   */
  | { kind: 'update'; key: RawRow; attributes: RawRow; unchanged: RawRow }
  | { kind: 'remove'; key: RawRow; unchanged: RawRow }
);

export interface RowTables {
  /** @param key the partition key's value */
  get(table: TableName, key: string): Promise<RawRow | undefined>;
  scan(table: TableName): Promise<RawRow[]>;
  /**
   * @returns false if nothing was written: a row to create exists already, or a row to change was deleted (an
   * update must not recreate it) or differs from `unchanged`
   */
  write(write: RowWrite): Promise<boolean>;
  /** Writes all rows in one transaction, or none. */
  writeTogether(writes: RowWrite[]): Promise<void>;
}

type PagedTable = 'accounts' | 'keys';

export interface RowsWanted {
  table: PagedTable;
  /** The key of the row before the first one to read. */
  after?: string | undefined;
  /** Only rows whose attribute contains the text, or is it. */
  where?: { attribute: string; contains: string } | { attribute: string; is: string } | undefined;
  limit: number;
}

export interface RowsFound {
  rows: RawRow[];
  /** Where to continue; missing at the end of the table. */
  next: string | undefined;
}

/** Reads parts of tables that are too large to read whole. Each call is a few requests at most, however large the table is. */
export interface RowPages {
  /** Goes through some 2 MB of the table at most. Consistent only where it looks for an attribute that is a text. */
  rows(wanted: RowsWanted): Promise<RowsFound>;
  /** Rows by key; an absent one is left out. */
  rowsOf(table: PagedTable, keys: readonly string[]): Promise<RawRow[]>;
  /** The last ids first. */
  grants(account: string, limit: number): Promise<{ grants: WrittenGrant[]; isAll: boolean }>;
  /** Sums of an account's days by model, from this UTC day on, the newest first. */
  days(account: string, from: string, limit: number): Promise<{ days: Reading<DailySum>[]; isAll: boolean }>;
  /** Requests of an account, newest first. `before`: the id of the last one on the page before. */
  requests(
    account: string,
    before: string | undefined,
    limit: number,
  ): Promise<{ rows: Reading<LedgerRow>[]; next: string | undefined }>;
  /** Health entries of channels by the relay's own key, and the marks of the last minutes. One request. */
  health(): Promise<{ entries: ReadonlyMap<number, HealthEntry>; marks: ChannelMark[] }>;
  /** The open reservations of the accounts that called last, a hundred at most. Two requests. */
  underWay(nowMs: number): Promise<UnderWay>;
}

/** `accounts`: those that called within minutes, or so many of them that others count little; `looked`: of which calls are counted. */
export interface UnderWay {
  calls: number;
  /** The sum reserved for them. */
  held: NanoYuan;
  accounts: number;
  looked: number;
}

/**
 * A row that functions wrote, or why it cannot be read. An unreadable row does not prevent reading the
 * others.
 */
export type Reading<Row> = { row: Row } | { key: string; problem: string };

/** An account's calls, failures, plan calls, tokens, charges and grants in a UTC month. */
export interface AccountMonth {
  account: string;
  month: string;
  figures: DailyFigures;
  /** The UTC day of its first call in the month. Sums from before 0.1.0 lack it. */
  firstDay?: string | undefined;
}

/** A public model's traffic on a channel on a UTC day. `unpaid_...` counts calls without an applied price. */
export interface ServedDay {
  /** `2026-11-22` */
  day: string;
  model: string;
  /** Missing if no channel was tried. */
  channel: string | undefined;
  figures: DailyFigures;
}

/** `secret`: a hash of its reference; empty if it is unknown, or if the channel has none. */
export type HealthHour = HourSum & { secret: string };

/** Calls that ended in a minute, kept for two days. Good for plots only: a row may be missing or count twice. */
export interface Minute {
  /** Its start, in epoch milliseconds. */
  startMs: number;
  figures: DailyFigures;
}

/** Both inclusive, `2026-11-22`, in UTC. */
export type DayRange = Record<'from' | 'to', string>;

/** Reads the sums of `daily` from which lists, plots, reports and what-ifs are made. Never reads the ledger. */
export interface SumReader {
  /** All accounts that had a call or a grant in the month, sorted by name: some 150 bytes each. */
  monthAccounts(month: string): AsyncIterable<Reading<AccountMonth>[]>;
  /** Some accounts and months. Those without calls and grants are left out. Sent in batches of 100. */
  accountMonths(wanted: readonly Pick<AccountMonth, 'account' | 'month'>[]): Promise<Reading<AccountMonth>[]>;
  /** Sorted by day and model. Reads only the figures in `names`, if given. */
  served(days: DayRange, names?: readonly string[]): AsyncIterable<Reading<ServedDay>[]>;
  /** Attempts of a channel between two hours, both included: `2026-11-22T09`. Kept for nine days. */
  hours(channel: string, from: string, to: string): Promise<Reading<HealthHour>[]>;
  /** Minutes from and to, in epoch milliseconds, the last exclusive. Minutes without calls are left out. */
  minutes(fromMs: number, toMs: number): AsyncIterable<Reading<Minute>[]>;
}

export interface LedgerSelection {
  account?: string | undefined;
  /** Start of the call in epoch milliseconds, inclusive. */
  fromMs?: number | undefined;
  /** Epoch milliseconds, exclusive. */
  toMs?: number | undefined;
}

/** Reads account items, ledger rows, their daily sums and grants. Writes repairs alone. */
export interface LedgerReader extends SumReader {
  /** The sums over the account's parts; a part that cannot be read is a problem of the account. */
  quota(account: string): Promise<Reading<WholeAccount> | undefined>;
  /**
   * Many accounts, 100 per request, in any order, without those that have no item. Shards of a busy account are
   * not read at one moment: read a sum with `moved` again alone if it must be exact.
   */
  quotas(accounts: readonly string[]): Promise<Reading<WholeAccount>[]>;
  accounts(): AsyncIterable<string[]>;
  /** Within an account, requests come first, sorted by time, then grants. */
  ledger(selection: LedgerSelection): AsyncIterable<Reading<LedgerRow>[]>;
  request(id: string): Promise<Reading<LedgerRow> | undefined>;
  grants(account?: string): AsyncIterable<WrittenGrant[]>;
  /** The accounts of ledger rows, page by page, one for each row. Rows of the last second may be missing. */
  ledgerAccounts(): AsyncIterable<string[]>;
  /** The items of `daily` of days with this id and its buckets (all days, or these), each bucket sorted by day. */
  daily(id: string, days?: DayRange): AsyncIterable<Reading<DailySum>[]>;
  /** Adds to a sum of `daily` that is still as it was found. Returns whether it was. */
  addToDaily(difference: DailyDifference): Promise<boolean>;
  /** Closes a reservation with the same conditional write as the relay. */
  close: QuotaStore['close'];
  /** How a call was closed, by its ledger row; undefined: there is none. */
  closedAs: QuotaStore['closedAs'];
  /** Charges what an expired reservation did not, once, with the same transaction as the relay. */
  chargeLate: QuotaStore['chargeLate'];
}

/** A row of a copy that its table has not, or not so. */
export interface LostRow {
  table: TableName;
  /** As the store has it, exact. */
  item: object;
  amount: NanoYuan | undefined;
  isChanged: boolean;
}

/**
 * Tables as they were at one second, under the names of a stack of their own, which the other ports read like
 * those of a stack; and the two writes of a restore that nothing else may make. Both are conditional.
 */
export interface TableCopies {
  /** The seconds to which each of the tables can be restored. Throws a Failure if one has no recovery. */
  window(tables: readonly TableName[]): Promise<Record<'fromMs' | 'toMs', number>>;
  /** `ACTIVE` means readable. */
  status(copy: string, table: TableName): Promise<string | undefined>;
  make(copy: string, table: TableName, atMs: number): Promise<void>;
  remove(copy: string, table: TableName): Promise<void>;
  quota(copy: string, account: string): Promise<Reading<WholeAccount> | undefined>;
  accounts(copy: string): AsyncIterable<string[]>;
  /**
   * Page by page, in the order of the copy. Only rows of `ledger` are never changed after they were written, but those of guards
   * of lost replies, so of other tables rows that are gone are meant alone.
   */
  lost(copy: string, table: TableName): AsyncIterable<LostRow[]>;
  /** False: somebody else wrote the row meanwhile. */
  putBack(row: LostRow): Promise<boolean>;
  /**
   * Puts an account's item in place of all its parts. False: it is not as it was when it was read.
   * @param seen undefined: it could not be read, or there was none
   */
  replaceQuota(item: QuotaItem, seen: WholeAccount | undefined): Promise<boolean>;
}

export type PublishedVersion = KeptVersion;

export interface ConfigVersions {
  tables(): Promise<ConfigRows>;
  newest(): Promise<PublishedVersion | undefined>;
  /** The retained versions, newest first. May go on where it may end. */
  versions(wanted?: HistoryWanted): Promise<PublishedVersion[]>;
  version(number: number): Promise<PublishedVersion>;
  rows(version: PublishedVersion): Promise<ConfigRows>;
  snapshot(version: PublishedVersion): Promise<Snapshot>;
}

export interface StoredRow {
  id: string;
  /** Size of the stored, compressed content; 0 for a further part of another item. */
  bytes: number;
  /** Unix seconds. */
  expires: number;
}

/** The stored responses of an account. Heads and sizes have no content; `read` has. */
export interface ResponseRows {
  /** Returns nothing for a response that never existed or has expired. */
  head(account: string, id: string): Promise<ResponseHead | undefined>;
  read(account: string, id: string): Promise<StoredResponse | undefined>;
  /** Removes a response and its events. False: there was none. */
  remove(account: string, id: string): Promise<boolean>;
  /** All items of an account, page by page, expired ones included. */
  rows(account: string): AsyncIterable<StoredRow[]>;
}

export type LogCondition =
  | { field: string; isOneOf: readonly string[] }
  /** `startsWith` has letters and digits alone. */
  | { field: string; startsWith: string }
  | { field: string; above: number }
  | { field: string; is: number };

export interface LogSearch {
  fromMs: number;
  toMs: number;
  conditions: readonly LogCondition[];
  limit: number;
}

export interface LoggedLine {
  atMs: number;
  fields: Readonly<Record<string, unknown>>;
}

export interface FoundLines {
  lines: LoggedLine[];
  scannedBytes: number;
}

/** How many lines of a step of time have this value of a field. */
export interface LineCount {
  startMs: number;
  value: string;
  count: number;
}

export interface LogSource {
  groups: readonly string[];
  /** Size and age of the log groups, unless that is unknown or denied. */
  kept?: { bytes: number; sinceMs: number }[] | undefined;
}

/** Searches the log of the functions that answer calls. Of texts of clients, lines have the names of end users and tags alone. */
export interface CallLog {
  source(): Promise<LogSource | undefined>;
  search(search: LogSearch): Promise<FoundLines>;
  /** Counts all lines of a search, whatever its limit, by time (steps from 1970 on) and the values of a field. Reads as much. */
  counts(
    search: LogSearch,
    by: { stepMs: number; field: string },
  ): Promise<Pick<FoundLines, 'scannedBytes'> & { counts: LineCount[] }>;
}

/** A value to store under a reference of this stack. Rows use the same reference. */
export interface SecretWrite {
  reference: string;
  replace: boolean;
  /** Thrown if a value exists and `replace` is false. */
  conflict: Failure;
}

/** Stores and reads the secrets that rows name. No message contains a value. */
export interface SecretWriter {
  put(write: SecretWrite, value: string): Promise<void>;
  /** Throws a Failure if the secret was stored for another use. */
  read(reference: string, use: SecretUse): Promise<string>;
  /** Accepts that the secret is already gone. */
  remove(reference: string): Promise<void>;
  /** The value of an environment variable that the operator named. */
  variable(name: string): Promise<string>;
}

/** Facts about the AWS account and region of a deployed relay. Each read may fail alone. */
export interface AwsAccount {
  stack(): Promise<DeployedStack | undefined>;
  concurrency(): Promise<Concurrency>;
  tableLimits(): Promise<TableLimits>;
  /** Parameter Store's paid rate of 10,000 reads a second instead of 40. */
  hasFastParameters(): Promise<boolean>;
  /** Models that the region lists; a region that has none of them is an empty list. */
  models(region: string): Promise<ListedModel[]>;
  /** `hasAgreement`: that with its vendor is made, where it needs one. */
  modelAccess(
    region: string,
    model: string,
  ): Promise<Record<'isAuthorized' | 'hasAgreement' | 'isEntitled' | 'isInRegion', boolean>>;
  region(): Promise<string>;
}

export interface DeployedStack {
  /** As CloudFormation calls it: `CREATE_COMPLETE`. */
  status: string;
  /** It cannot be deleted. */
  isProtected: boolean;
  outputs: ReadonlyMap<string, string>;
}

/** Calls at once of all functions in the account and region; and of these, what no function has reserved. */
export type Concurrency = Record<'most' | 'unreserved', number>;

/** Capacity units a second of one table. */
export type TableLimits = Record<'tableReads' | 'tableWrites', number>;

export interface ListedModel {
  id: string;
  streams: boolean;
  /** False: AWS will remove it. */
  isActive: boolean;
}
