/**
 * The permissions of operators, from which the stack builds its managed policies. Everything else is denied. A permission that no
 * command uses names its user, or the test of the commands fails. The construct's package includes this file with its imports, so
 * it imports only table names.
 */
import type { TableName } from '../../shared/tables/table-names.ts';

export const policyNames = ['support', 'operator', 'repair', 'restore'] as const;

export type PolicyName = (typeof policyNames)[number];

export type TableAction =
  | 'GetItem'
  | 'BatchGetItem'
  | 'Query'
  | 'Scan'
  | 'PutItem'
  | 'UpdateItem'
  | 'DeleteItem'
  | 'BatchWriteItem'
  | 'ConditionCheckItem'
  | 'DescribeContinuousBackups'
  | 'RestoreTableToPointInTime';

export interface TableAccess {
  tables: readonly TableName[];
  /** An index of the tables instead of the tables themselves. */
  index?: string;
  actions: readonly TableAction[];
  /** Limits the statement to items whose partition keys match one of these patterns. */
  ids?: readonly string[];
  /** Why people with AWS tools need a permission that no command uses. */
  byHand?: string;
}

/** Actions on the AWS account besides its tables. */
export interface AccountAction {
  action: string;
  /** ARNs without partition, region and account: `ssm:parameter/...`. `*` if the action has no resource. */
  resource: string;
}

export interface PolicyAccess {
  /** The policy's name in pages and outputs. */
  purpose: string;
  tables: readonly TableAccess[];
  /** Secrets of this relay in both stores. */
  secrets?: readonly string[];
  account: readonly AccountAction[];
  /** True if it can search the log groups of answering functions. Their lines hold no text of clients or upstreams. */
  searchesCallLogs?: boolean;
  /** Tables that nobody with this policy can write, even with other policies. */
  neverWrites?: readonly TableName[];
}

const configuration = ['channels', 'charges', 'plans', 'settings'] as const;

/**
 * Published versions, and records of writes by a deployed console. The rest of `runtime` belongs to functions: turns, idempotency
 * keys, notices.
 */
const readableIds = [
  'config',
  'snapshot#*',
  'rows#*',
  'console-count#*',
  'console-history#*',
  'cooldowns',
  'channel-marks',
];

const auditReads: readonly TableAccess[] = [
  { tables: ['quotas'], actions: ['GetItem', 'Scan'] },
  { tables: ['grants', 'ledger'], actions: ['Query', 'Scan'] },
  { tables: ['ledger'], index: 'by_id', actions: ['Query', 'Scan'] },
  { tables: ['ledger'], actions: ['GetItem'] },
  { tables: ['daily'], actions: ['BatchGetItem', 'Query'] },
];

const reads: readonly TableAccess[] = [
  ...auditReads,
  // Each table is in few statements, because an IAM policy has at most 6,144 characters.
  { tables: [...configuration, 'payments', 'codes'], actions: ['Scan'] },
  { tables: ['keys', 'accounts'], actions: ['Scan', 'GetItem', 'BatchGetItem'] },
  { tables: ['runtime'], actions: ['BatchGetItem'], ids: readableIds },
  // Lists of the command line and the console read balances by key.
  { tables: ['quotas'], actions: ['BatchGetItem'] },
  // Shows the automatic top-up of a customer.
  { tables: ['runtime'], actions: ['GetItem'], ids: ['auto-top-up#*'] },
];

/** For `doctor`, for `init` and `payment link`, which look up the base URL, and for `request`, which searches the log. */
const accountReads: readonly AccountAction[] = [
  // Results of a search have no resource in IAM, and log groups can be listed only for the whole account.
  { action: 'logs:GetQueryResults', resource: '*' },
  { action: 'logs:DescribeLogGroups', resource: '*' },
  { action: 'cloudformation:DescribeStacks', resource: 'cloudformation:stack/<stack>/*' },
  { action: 'lambda:GetAccountSettings', resource: '*' },
  { action: 'dynamodb:DescribeLimits', resource: '*' },
  {
    action: 'ssm:GetServiceSetting',
    resource: 'ssm:servicesetting/ssm/parameter-store/high-throughput-enabled',
  },
  { action: 'bedrock:ListFoundationModels', resource: '*' },
  { action: 'bedrock:GetFoundationModelAvailability', resource: '*' },
];

export const policyAccess: Record<PolicyName, PolicyAccess> = {
  support: {
    purpose: 'reads rows, balances, ledger, published versions and the log of calls; no secret',
    tables: reads,
    account: accountReads,
    searchesCallLogs: true,
  },
  operator: {
    purpose:
      'reads what support reads, edits rows and grants, stores, uses and moves secrets, reads and deletes stored responses',
    tables: [
      ...reads,
      { tables: configuration, actions: ['GetItem', 'PutItem', 'UpdateItem', 'DeleteItem'] },
      { tables: ['keys', 'accounts', 'codes'], actions: ['PutItem', 'UpdateItem'] },
      { tables: ['payments'], actions: ['GetItem', 'PutItem'] },
      { tables: ['grants'], actions: ['PutItem'] },
      // Holds the content of conversations, which `support` can't read.
      { tables: ['responses'], actions: ['BatchGetItem', 'Query', 'DeleteItem', 'BatchWriteItem'] },
      { tables: ['runtime'], actions: ['PutItem'], ids: ['content-read#*', 'console-revoked#*'] },
      {
        tables: ['grants'],
        actions: ['GetItem'],
        byHand: 'rows are edited with any tool of DynamoDB, which reads the item first',
      },
      {
        tables: ['grants'],
        actions: ['UpdateItem'],
        byHand: 'a grant with a problem is corrected on its row',
      },
      {
        tables: ['keys', 'accounts'],
        actions: ['DeleteItem'],
        byHand: 'rows of customers that are gone',
      },
    ],
    secrets: [
      'ssm:GetParameter',
      'ssm:PutParameter',
      'ssm:DeleteParameter',
      'secretsmanager:CreateSecret',
      'secretsmanager:GetSecretValue',
      'secretsmanager:PutSecretValue',
      'secretsmanager:DeleteSecret',
    ],
    account: accountReads,
    searchesCallLogs: true,
    neverWrites: ['quotas', 'ledger', 'daily'],
  },
  repair: {
    purpose: 'audits, writes lost closes and corrects daily sums',
    tables: [
      ...auditReads,
      { tables: ['quotas', 'daily'], actions: ['UpdateItem'] },
      // Corrects one bucket of a sum, on condition that the others are unchanged.
      { tables: ['daily'], actions: ['ConditionCheckItem'] },
      { tables: ['ledger'], actions: ['PutItem'] },
      { tables: ['runtime'], actions: ['UpdateItem'], ids: ['budget#*'] },
    ],
    account: [],
  },
  restore: {
    purpose:
      'restores tables beside to a second, puts lost rows and balances back, closes and opens the relay',
    tables: [
      { tables: ['quotas'], actions: ['GetItem', 'BatchGetItem', 'Scan'] },
      { tables: ['grants', 'ledger'], actions: ['BatchGetItem', 'Query', 'Scan'] },
      { tables: ['ledger'], index: 'by_id', actions: ['Scan'] },
      { tables: ['ledger'], actions: ['GetItem'] },
      { tables: ['daily'], actions: ['BatchGetItem', 'Query'] },
      { tables: ['keys', 'accounts', 'codes', 'payments'], actions: ['BatchGetItem'] },
      { tables: ['accounts'], actions: ['Scan'] },
      // Checks that the closed relay is published.
      { tables: ['runtime'], actions: ['BatchGetItem'], ids: ['config', 'snapshot#*'] },
      { tables: ['settings'], actions: ['GetItem', 'PutItem', 'UpdateItem'] },
      {
        tables: ['quotas', 'ledger', 'grants', 'payments', 'keys', 'accounts', 'codes'],
        actions: ['PutItem'],
      },
      { tables: ['daily'], actions: ['ConditionCheckItem', 'UpdateItem'] },
      {
        tables: ['quotas', 'ledger', 'grants', 'payments', 'keys', 'accounts', 'codes'],
        actions: ['DescribeContinuousBackups', 'RestoreTableToPointInTime'],
      },
    ],
    // AWS writes the rows of a restored copy with the rights of the person who asks for it.
    account: [
      'DescribeTable',
      'DeleteTable',
      'Scan',
      'Query',
      'GetItem',
      'PutItem',
      'UpdateItem',
      'DeleteItem',
      'BatchWriteItem',
    ].map((action) => ({ action: `dynamodb:${action}`, resource: 'dynamodb:table/<stack>-restore-20*' })),
  },
};

const { operator } = policyAccess;

/** Excludes conversations, which no page of the console shows. */
const isOfPages = ({ tables, ids = [], byHand }: TableAccess): boolean =>
  byHand === undefined && !tables.includes('responses') && !ids.some((id) => id.startsWith('content-read'));

/** The permissions of the function `console`: for its pages and its own items. It can't delete those, so the history stays. */
export const consoleAccess: PolicyAccess = {
  ...operator,
  purpose: 'the pages of the console, for people whose roles it checks itself',
  tables: [
    ...operator.tables.filter(isOfPages),
    { tables: ['runtime'], actions: ['BatchGetItem', 'PutItem'], ids: ['console-*'] },
    {
      tables: ['runtime'],
      actions: ['UpdateItem'],
      ids: ['console-session#*', 'console-kept#*', 'console-refunds#*', 'console-count#*'],
    },
  ],
  // The console creates no secrets.
  secrets: [],
};

/** Returns the name of a managed policy. IAM has one namespace for all regions. */
export const policyNameIn = (stack: string, policy: PolicyName, region: string): string =>
  `${stack}-${policy}-${region}`;
