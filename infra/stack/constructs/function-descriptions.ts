/**
 * One description per function, with everything in which functions differ. A new endpoint group needs one
 * entry here, one file in `functions/`, and its paths in the list below.
 */
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { SecretPurpose } from '../../../shared/config/rows/secret-reference.ts';
import { tableNames } from '../../../shared/tables/table-schemas.ts';
import type { TableName } from '../../../shared/tables/table-names.ts';
import type { TableAction } from '../../access/policies.ts';

export interface FunctionDescription {
  purpose: string;
  /**
   * How it answers requests, through a Function URL or API Gateway. Functions without it are invoked by streams or
   * a schedule.
   */
  url?: 'RESPONSE_STREAM' | 'BUFFERED';
  /** The tables whose streams invoke it. */
  streams?: readonly StreamTrigger[];
  /** Interval of its schedule. */
  everyMinutes?: number;
  /** Functions that answer calls send it events. One that waits longer, or that fails, is kept and not tried again. */
  eventSecondsMax?: number;
  timeoutSeconds: number;
  /**
   * The option `moneyConcurrency` is for it: while answers take all that an account has, rows of the ledger and budgets would be late,
   * grants and edits of rows not live, and what crashed calls reserved not free again.
   */
  keepsBooks?: boolean;
  /**
   * The allowed DynamoDB actions for each table. All others are denied. Rows are deleted from `responses` alone: a
   * BatchWriteItem of functions only deletes.
   */
  tables: Partial<Record<TableName, readonly Exclude<TableAction, 'DeleteItem'>[]>>;
  /** The indexes that it may query, beside the tables. */
  queries?: Partial<Record<TableName, string>>;
  /** The purposes of the secrets that it may read: `ssm:/relay/<stack>/<purpose>/...`, `secretsmanager:<stack>/<purpose>/...`. */
  readsSecrets?: readonly SecretPurpose[];
  /**
   * Calls models: gets the keys that seal the state of turns, may call the models of Bedrock that are listed, bounds the heap
   * of Node by its memory, and reports traces where the stack has a receiver of them.
   */
  callsModels?: boolean;
}

/** Answers calls with a model, so the option `reservedConcurrency` is for it, and its lines count for alarms. */
export const answersCalls = (name: FunctionName): boolean =>
  functionDescriptions[name].url === 'RESPONSE_STREAM';

/** The stream of one table. A failed batch is halved and retried. */
export interface StreamTrigger {
  table: TableName;
  recordsAtOnce: number;
  /** How long Lambda collects records before it invokes the function with fewer. */
  gathersSeconds?: number;
  retries: number;
  /** Older records are not retried. At most 24, because streams keep records for 24 hours. */
  maxAgeHours: number;
  /** True: a batch without retries left goes to the bucket of stream failures. False: it is dropped. */
  keepsFailures: boolean;
  /** Only records of items with these ids (partition keys) invoke it. By default all do. */
  onlyIds?: readonly string[];
  /** Only records of new items whose ids start so invoke it. */
  onlyNewWithPrefix?: string;
}

/** Each record only triggers a compilation of the whole configuration, as the schedule does. */
const describeConfigurationStream = (table: TableName): StreamTrigger => ({
  table,
  recordsAtOnce: 100,
  retries: 5,
  maxAgeHours: 1,
  keepsFailures: false,
});

/** Actions of functions that store, read and replace responses. */
const storing = ['BatchGetItem', 'BatchWriteItem', 'PutItem', 'Query', 'UpdateItem'] as const;

/** The settings that all functions of endpoints share. */
const answering = {
  url: 'RESPONSE_STREAM',
  // Lambda's maximum. The request deadline inside is shorter and ends the answer with a protocol error.
  timeoutSeconds: 900,
  tables: {
    runtime: ['BatchGetItem', 'GetItem', 'PutItem', 'UpdateItem'],
    keys: ['GetItem'],
    accounts: ['GetItem'],
    // All parts of a busy account are read at once.
    quotas: ['BatchGetItem', 'GetItem', 'PutItem', 'UpdateItem'],
    // A settle that came after its reservation expired, and whether the call of an Idempotency-Key was closed.
    ledger: ['GetItem', 'PutItem'],
    daily: ['UpdateItem'],
    // First results of Idempotency-Keys.
    responses: ['BatchGetItem', 'PutItem'],
  },
  readsSecrets: ['channels', 'search'],
  callsModels: true,
} as const satisfies Omit<FunctionDescription, 'purpose'>;

const { url: _noUrl, ...asking } = answering;
/** A run goes by the rows that its call was accepted with. */
const { keys: _noKeys, accounts: _noAccounts, ...askingTables } = answering.tables;

const descriptions = {
  chat: { purpose: 'POST /v1/chat/completions, streamed, and POST /v1/embeddings', ...answering },
  responses: {
    purpose: 'POST /v1/responses, streamed, and what is stored of it',
    ...answering,
    tables: { ...answering.tables, responses: storing },
  },
  messages: { purpose: 'POST /v1/messages, streamed', ...answering },
  catalog: {
    purpose: 'What the relay offers, an account and its usage, the page, and every unknown path',
    url: 'BUFFERED',
    timeoutSeconds: 30,
    tables: {
      runtime: ['BatchGetItem', 'GetItem'],
      keys: ['GetItem'],
      accounts: ['GetItem'],
      quotas: ['GetItem'],
      ledger: ['Query'],
      // For refused and failed calls of an account, and its use by day.
      daily: ['Query'],
    },
  },
  payments: {
    purpose: 'POST /hooks/payments/stripe: payments, refunds and disputes that Stripe reports',
    url: 'BUFFERED',
    timeoutSeconds: 30,
    tables: {
      runtime: ['BatchGetItem'],
      accounts: ['GetItem'],
      payments: ['GetItem', 'PutItem'],
      grants: ['PutItem'],
    },
    // The secrets that sign its events.
    readsSecrets: ['payments'],
  },
  selfservice: {
    purpose: 'What customers do for their own account: keys that they make, and top-ups',
    url: 'BUFFERED',
    timeoutSeconds: 30,
    tables: {
      // Beside the configuration which keys customers made, and how often a key asks.
      runtime: ['BatchGetItem', 'GetItem', 'UpdateItem'],
      keys: ['BatchGetItem', 'ConditionCheckItem', 'GetItem', 'PutItem', 'UpdateItem'],
      accounts: ['GetItem'],
    },
    // The keys that sign references, and that of Stripe.
    readsSecrets: ['payments'],
  },
  config: {
    purpose: 'Publishes the configuration that the tables hold, and marks rows with mistakes',
    keepsBooks: true,
    timeoutSeconds: 120,
    streams: [
      ...(['channels', 'charges', 'plans', 'settings', 'keys', 'accounts'] as const).map(
        describeConfigurationStream,
      ),
      // Learned rules are shown on the channel's row. All other items of the table change far too often.
      { ...describeConfigurationStream('runtime'), onlyIds: ['learned'] },
    ],
    everyMinutes: 5,
    tables: {
      channels: ['Scan', 'UpdateItem'],
      charges: ['Scan', 'UpdateItem'],
      plans: ['Scan', 'UpdateItem'],
      settings: ['Scan', 'UpdateItem'],
      keys: ['UpdateItem'],
      // Checks the accounts that new keys belong to.
      accounts: ['BatchGetItem', 'UpdateItem'],
      runtime: ['BatchGetItem', 'PutItem', 'UpdateItem'],
    },
    // Used only to mark channels whose secret cannot be read.
    readsSecrets: ['channels'],
  },
  ledger: {
    purpose: 'Puts and counts a ledger row for every reservation that was closed, and registers open ones',
    keepsBooks: true,
    timeoutSeconds: 60,
    // Retries for 12 hours, so that rows are late but not lost while DynamoDB is unavailable.
    streams: [
      {
        table: 'quotas',
        recordsAtOnce: 1_000,
        // The sums of a batch are written once for all its calls, and a row may be some seconds late.
        gathersSeconds: 5,
        retries: 100,
        maxAgeHours: 12,
        keepsFailures: true,
      },
    ],
    // In `runtime`: the counters of budgets.
    tables: { ledger: ['PutItem'], daily: ['UpdateItem'], runtime: ['UpdateItem'] },
  },
  grants: {
    purpose: 'Applies every grant exactly once, and says so on its row',
    keepsBooks: true,
    timeoutSeconds: 120,
    // The schedule applies grants whose retries ran out here.
    streams: [{ table: 'grants', recordsAtOnce: 25, retries: 10, maxAgeHours: 1, keepsFailures: true }],
    everyMinutes: 15,
    queries: { grants: 'unapplied' },
    tables: {
      grants: ['BatchGetItem', 'Scan', 'UpdateItem'],
      ledger: ['GetItem', 'PutItem'],
      quotas: ['GetItem', 'UpdateItem'],
      daily: ['UpdateItem'],
    },
  },
  sweeper: {
    purpose: 'Closes the reservations of invocations that can no longer live',
    keepsBooks: true,
    timeoutSeconds: 120,
    everyMinutes: 1,
    tables: { quotas: ['BatchGetItem', 'Scan', 'UpdateItem'], daily: ['Query', 'UpdateItem'] },
  },
  alerts: {
    purpose: 'Decides what is reported about balances, plans and keys, once for each cause',
    timeoutSeconds: 300,
    // The schedule looks at what was given up here.
    streams: [
      {
        table: 'quotas',
        // At 1,000 settled calls a second, each of two shards has ten batches a second, which take 10 to
        // 26 ms each at 256 MB.
        recordsAtOnce: 100,
        // Every call changes its account, and an alert can wait for some seconds.
        gathersSeconds: 5,
        retries: 10,
        maxAgeHours: 1,
        keepsFailures: false,
      },
    ],
    everyMinutes: 60,
    tables: {
      accounts: ['GetItem', 'Scan'],
      keys: ['Scan'],
      quotas: ['GetItem', 'BatchGetItem'],
      runtime: ['BatchGetItem', 'PutItem', 'UpdateItem'],
    },
  },
  notify: {
    purpose:
      'Delivers notices to the topic, to webhooks and by mail, again while a receiver does not take them',
    timeoutSeconds: 120,
    streams: [
      {
        table: 'runtime',
        recordsAtOnce: 10,
        retries: 100,
        maxAgeHours: 12,
        keepsFailures: true,
        onlyNewWithPrefix: 'notice#',
      },
    ],
    everyMinutes: 1,
    tables: { accounts: ['GetItem'], runtime: ['BatchGetItem', 'UpdateItem'] },
    // The secret that signs what is posted.
    readsSecrets: ['alerts'],
  },
  background: {
    purpose: 'Answers background responses, for which no client waits',
    ...asking,
    // A response that has not begun by then has failed.
    eventSecondsMax: 60,
    tables: { ...askingTables, responses: storing },
  },
} as const satisfies Record<string, FunctionDescription>;

export type FunctionName = keyof typeof descriptions;

/** Those that the front door leads to. */
export type PublicFunctionName = {
  [Name in FunctionName]: (typeof descriptions)[Name] extends { url: string } ? Name : never;
}[FunctionName];

/** Those in whose place a server may answer. */
export type ServedFunctionName = Exclude<PublicFunctionName, 'payments' | 'selfservice'>;

export const functionDescriptions: Record<FunctionName, FunctionDescription> = descriptions;

export const functionNames = Object.keys(descriptions) as FunctionName[];

/** Those of endpoints, and those that answer calls for which no client waits, too. */
export const answeringFunctions = functionNames.filter(answersCalls);
export const callingFunctions = functionNames.filter(
  (name) => functionDescriptions[name].callsModels === true,
);

/**
 * `payments` and `selfservice` stay functions: a process that reads calls, and what upstreams answer, would else have the right to write
 * payments and grants, which are money, and keys, which spend it.
 */
export const isServed = (name: FunctionName): name is ServedFunctionName =>
  functionDescriptions[name].url !== undefined && name !== 'payments' && name !== 'selfservice';
export const servedFunctions = functionNames.filter(isServed);

/** Rights of one process that replaces all of these functions. */
export const serverDescription: Pick<FunctionDescription, 'tables' | 'readsSecrets'> = {
  tables: Object.fromEntries(
    tableNames.map((table) => {
      const actions = servedFunctions.flatMap((name) => functionDescriptions[name].tables[table] ?? []);
      return [table, [...new Set(actions)].toSorted()];
    }),
  ),
  readsSecrets: [
    ...new Set(servedFunctions.flatMap((name) => functionDescriptions[name].readsSecrets ?? [])),
  ],
};

/** The log groups with the lines of these functions, each once. */
export type LogsOf = (names: readonly FunctionName[]) => ILogGroup[];

// Maps each path to the function that answers it. The first matching pattern wins; a path without a match
// goes to the default function. Paths whose answer is the same for everybody may be cached at the edge for a
// few seconds; others are never cached.

interface Route {
  /** A CloudFront path pattern; `*` matches any text. */
  path: string;
  function: FunctionName;
  cached: boolean;
}

export const routes: readonly Route[] = [
  { path: '/v1/chat/*', function: 'chat', cached: false },
  { path: '/v1/embeddings*', function: 'chat', cached: false },
  { path: '/v1/responses*', function: 'responses', cached: false },
  { path: '/v1/messages*', function: 'messages', cached: false },
  { path: '/v1/models*', function: 'catalog', cached: true },
  { path: '/v1/charge', function: 'catalog', cached: true },
  { path: '/v1/plans', function: 'catalog', cached: true },
  { path: '/v1/account/keys*', function: 'selfservice', cached: false },
  { path: '/v1/account/top-ups', function: 'selfservice', cached: false },
  { path: '/v1/account*', function: 'catalog', cached: false },
  { path: '/hooks/payments/stripe', function: 'payments', cached: false },
  { path: '/health', function: 'catalog', cached: true },
];

/** Answers all other paths: `/` with the page, unknown paths with a helpful 404. */
export const defaultFunction: ServedFunctionName = 'catalog';

/** A CloudFront path pattern: `*` matches any text, `?` any character; the leading slash is optional. */
export function compilePattern(pattern: string): RegExp {
  const body = pattern
    .replace(/^\//, '')
    .replace(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^/${body}$`, 's');
}
