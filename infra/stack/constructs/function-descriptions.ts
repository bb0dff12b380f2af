/**
 * One description per function, with everything that differs between functions. A new endpoint group needs one entry here, one
 * file in `functions/`, and its paths in the list below.
 */
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { SecretPurpose } from '../../../shared/config/rows/secret-reference.ts';
import { tableNames } from '../../../shared/tables/table-schemas.ts';
import type { TableName } from '../../../shared/tables/table-names.ts';
import type { TableAction } from '../../access/policies.ts';

export interface FunctionDescription {
  purpose: string;
  /**
   * Set if it answers requests, through a Function URL or API Gateway. Streams or a schedule invoke the other
   * functions.
   */
  url?: 'RESPONSE_STREAM' | 'BUFFERED';
  /** The tables whose streams invoke it. */
  streams?: readonly StreamTrigger[];
  /** Interval of its schedule. */
  everyMinutes?: number;
  /** Answering functions send it events. An event that fails or waits longer is kept and not retried. */
  eventSecondsMax?: number;
  timeoutSeconds: number;
  /**
   * The option `moneyConcurrency` covers it. Otherwise, while answers use up the concurrency of the account, ledger rows and budgets
   * would be late, grants and edits would not take effect, and reservations of crashed calls would stay open. Deployments shift its runs
   * step by step, because a bad version could write wrong sums.
   */
  keepsBooks?: boolean;
  /**
   * The allowed DynamoDB actions by table; all others are denied. Functions delete rows only from `responses`, and use BatchWriteItem
   * only for that.
   */
  tables: Partial<Record<TableName, readonly Exclude<TableAction, 'DeleteItem'>[]>>;
  /** The indexes that it may query. */
  queries?: Partial<Record<TableName, string>>;
  /** The purposes of the secrets that it may read: `ssm:/relay/<stack>/<purpose>/...`, `secretsmanager:<stack>/<purpose>/...`. */
  readsSecrets?: readonly SecretPurpose[];
  /**
   * True if it calls models: it gets the keys that encrypt the state of turns, may call the listed Bedrock models, limits Node's heap by
   * its memory, and sends traces if the stack has a receiver.
   */
  callsModels?: boolean;
}

/** True if it answers calls with a model. The option `reservedConcurrency` covers it, and alarms count its lines. */
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
  /** True stores a batch without retries left in the bucket of stream failures. False drops it. */
  keepsFailures: boolean;
  /** True if an alarm reads the mapping's metrics, such as the number of events that it gave up. */
  countsEvents?: boolean;
  /** Only records of items with these ids (partition keys) invoke it. By default all do. */
  onlyIds?: readonly string[];
  /** Only records of new items whose ids have this prefix invoke it. */
  onlyNewWithPrefix?: string;
}

/** The most that AWS allows. */
const retriesMax = 10_000;

/** Each record only triggers a compilation of the whole configuration, like the schedule. */
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
  // The longest stream of Function URLs and API Gateway. The request deadline inside is shorter and ends the answer with a protocol error.
  timeoutSeconds: 900,
  tables: {
    runtime: ['BatchGetItem', 'GetItem', 'PutItem', 'UpdateItem'],
    keys: ['GetItem'],
    accounts: ['GetItem'],
    // Reads all shards of a busy account at once.
    quotas: ['BatchGetItem', 'GetItem', 'PutItem', 'UpdateItem'],
    // For a settle after its reservation expired, and for the question whether the call of an Idempotency-Key was closed.
    ledger: ['GetItem', 'PutItem'],
    daily: ['UpdateItem'],
    // Stores the first result of each Idempotency-Key.
    responses: ['BatchGetItem', 'PutItem'],
  },
  readsSecrets: ['channels', 'search'],
  callsModels: true,
} as const satisfies Omit<FunctionDescription, 'purpose'>;

const { url: _noUrl, ...asking } = answering;
/** A run uses the rows with which its call was accepted. */
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
    purpose: 'Models, prices and plans, an account and its usage, the pages, and every unknown path',
    url: 'BUFFERED',
    timeoutSeconds: 30,
    tables: {
      runtime: ['BatchGetItem', 'GetItem'],
      keys: ['GetItem'],
      accounts: ['GetItem'],
      quotas: ['GetItem'],
      ledger: ['Query'],
      // For an account's refused and failed calls, and its usage by day.
      daily: ['Query'],
    },
  },
  payments: {
    purpose: 'POST /hooks/payments/stripe: payments, refunds and disputes that Stripe reports',
    url: 'BUFFERED',
    timeoutSeconds: 30,
    tables: {
      // Reads the configuration, and stores or forgets the card of automatic top-ups.
      runtime: ['BatchGetItem', 'PutItem'],
      // Sets the plan that the customer bought.
      accounts: ['GetItem', 'UpdateItem'],
      payments: ['GetItem', 'PutItem'],
      grants: ['PutItem'],
    },
    // The secrets that sign Stripe's events.
    readsSecrets: ['payments'],
  },
  selfservice: {
    purpose: 'Self-service of customers: keys, top-ups and redeem codes',
    url: 'BUFFERED',
    timeoutSeconds: 30,
    tables: {
      // Reads the configuration, the keys that customers created, and the number of calls per key. Writes automatic top-ups.
      runtime: ['BatchGetItem', 'GetItem', 'PutItem', 'UpdateItem'],
      keys: ['BatchGetItem', 'ConditionCheckItem', 'GetItem', 'PutItem', 'UpdateItem'],
      accounts: ['GetItem'],
      codes: ['GetItem', 'UpdateItem'],
      grants: ['PutItem'],
    },
    // The keys that sign references, and Stripe's key.
    readsSecrets: ['payments'],
  },
  config: {
    purpose: 'Publishes the configuration of the tables, and marks invalid rows',
    keepsBooks: true,
    timeoutSeconds: 120,
    streams: [
      ...(['channels', 'charges', 'plans', 'settings', 'keys', 'accounts'] as const).map(
        describeConfigurationStream,
      ),
      // The channel's row shows learned rules. All other items of the table change too often.
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
    purpose: 'Writes a ledger row and daily totals for each closed reservation, and registers open ones',
    keepsBooks: true,
    timeoutSeconds: 60,
    streams: [
      {
        table: 'quotas',
        recordsAtOnce: 1_000,
        // The sums of a batch take one write for all its calls, and rows may be a few seconds late.
        gathersSeconds: 5,
        // The age decides, because AWS states no interval of retries. 12 hours outlast outages of DynamoDB and a night with a bad version,
        // and leave 12 until the stream drops what nobody kept.
        retries: retriesMax,
        maxAgeHours: 12,
        keepsFailures: true,
        countsEvents: true,
      },
    ],
    // In `runtime` for the counters of budgets.
    tables: { ledger: ['PutItem'], daily: ['UpdateItem'], runtime: ['UpdateItem'] },
  },
  grants: {
    purpose: 'Applies each grant exactly once, and marks its row as applied',
    keepsBooks: true,
    timeoutSeconds: 120,
    // The schedule applies grants that have no retries left here.
    streams: [{ table: 'grants', recordsAtOnce: 25, retries: 10, maxAgeHours: 1, keepsFailures: true }],
    everyMinutes: 15,
    queries: { grants: 'unapplied' },
    tables: {
      grants: ['BatchGetItem', 'Scan', 'UpdateItem'],
      accounts: ['GetItem'],
      ledger: ['GetItem', 'PutItem'],
      quotas: ['GetItem', 'UpdateItem'],
      daily: ['UpdateItem'],
    },
  },
  sweeper: {
    purpose: 'Closes the reservations of calls whose function died',
    keepsBooks: true,
    timeoutSeconds: 120,
    everyMinutes: 1,
    tables: { quotas: ['BatchGetItem', 'Scan', 'UpdateItem'], daily: ['Query', 'UpdateItem'] },
  },
  alerts: {
    purpose:
      'Reports low balances of accounts and upstreams, and the end of plans and keys, once each; charges stored cards',
    timeoutSeconds: 300,
    // The schedule handles records that are dropped here.
    streams: [
      {
        table: 'quotas',
        // At 1,000 settled calls a second, each of two shards has ten batches a second, which take 10 to
        // 26 ms each at 256 MB.
        recordsAtOnce: 100,
        // Every call changes its account, and an alert can wait a few seconds.
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
      // Looks up if a top-up was credited.
      ledger: ['GetItem'],
      runtime: ['BatchGetItem', 'PutItem', 'UpdateItem'],
      // Stores the balances that upstreams report.
      channels: ['Scan', 'UpdateItem'],
    },
    // The secrets of channels, to ask upstreams for balances. The secret that signs references, and Stripe's key.
    readsSecrets: ['channels', 'payments'],
  },
  notify: {
    purpose:
      'Marks channels that fail, are slower or cost more than usual; delivers notices to the topic, to webhooks and by mail',
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
    tables: {
      accounts: ['GetItem'],
      channels: ['Scan'],
      daily: ['Query'],
      runtime: ['BatchGetItem', 'PutItem', 'UpdateItem'],
    },
    // The secret that signs webhooks.
    readsSecrets: ['alerts'],
  },
  background: {
    purpose: 'Answers background responses, for which no client waits',
    ...asking,
    // A response that has not started by then fails.
    eventSecondsMax: 60,
    // Polls vendors for answers in background windows.
    everyMinutes: 1,
    tables: { ...askingTables, responses: storing },
  },
} as const satisfies Record<string, FunctionDescription>;

export type FunctionName = keyof typeof descriptions;

/** The functions behind the front door. */
export type PublicFunctionName = {
  [Name in FunctionName]: (typeof descriptions)[Name] extends { url: string } ? Name : never;
}[FunctionName];

/** The functions that a server can replace. */
export type ServedFunctionName = Exclude<PublicFunctionName, 'payments' | 'selfservice'>;

export const functionDescriptions: Record<FunctionName, FunctionDescription> = descriptions;

export const functionNames = Object.keys(descriptions) as FunctionName[];

/** The functions that call models, with or without a waiting client. */
export const answeringFunctions = functionNames.filter(answersCalls);
export const callingFunctions = functionNames.filter(
  (name) => functionDescriptions[name].callsModels === true,
);

/**
 * `payments` and `selfservice` stay functions. Otherwise a process that reads calls and upstream answers could write payments and
 * grants, which are money, and keys, which spend it.
 */
export const isServed = (name: FunctionName): name is ServedFunctionName =>
  functionDescriptions[name].url !== undefined && name !== 'payments' && name !== 'selfservice';
export const servedFunctions = functionNames.filter(isServed);

/** Merges the rights of these functions for one process that replaces them. */
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

/** Lists the log groups of these functions, each once. */
export type LogsOf = (names: readonly FunctionName[]) => ILogGroup[];

// Maps each path to the function that answers it. The first match wins; other paths go to the default function. The edge
// may cache answers that are the same for everybody for a few seconds, and caches no others.

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
  { path: '/v1/account/codes', function: 'selfservice', cached: false },
  { path: '/v1/account*', function: 'catalog', cached: false },
  { path: '/hooks/payments/stripe', function: 'payments', cached: false },
  { path: '/health', function: 'catalog', cached: true },
];

/** Answers all other paths: `/` with the page, unknown ones with a helpful 404. */
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
