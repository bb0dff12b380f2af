/**
 * What the policies of operators allow: the one table from which the stack makes its managed policies. All that is not
 * here is denied. A permission that no command uses says who does, or the test of the commands fails. The package of the
 * construct has this file with all that it imports, so it imports names of tables alone.
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
  /** Only items whose partition keys are like one of these. Absent: all items. */
  ids?: readonly string[];
  /** Used by people with tools of AWS, not by a command: what for. */
  byHand?: string;
}

/** Actions on the AWS account besides its tables. */
export interface AccountAction {
  action: string;
  /** Without partition, region and account: `ssm:parameter/...`. `*`: AWS knows no resource of this action. */
  resource: string;
}

export interface PolicyAccess {
  /** The word for it in pages and outputs. */
  purpose: string;
  tables: readonly TableAccess[];
  /** Secrets under the names of this relay, in both stores. */
  secrets?: readonly string[];
  account: readonly AccountAction[];
  /** Searches the log groups of the functions that answer calls. Their lines have no text of clients or upstreams. */
  searchesCallLogs?: boolean;
  /** Tables whose items nobody with this policy writes, whatever else is attached. */
  neverWrites?: readonly TableName[];
}

const configuration = ['channels', 'charges', 'plans', 'settings'] as const;

/**
 * Published versions, and what was written through a deployed console. Everything else in `runtime` belongs to functions: turns,
 * idempotency keys, notices.
 */
const readableIds = ['config', 'snapshot#*', 'rows#*', 'console-count#*', 'console-history#*'];

const auditReads: readonly TableAccess[] = [
  { tables: ['quotas'], actions: ['GetItem', 'Scan'] },
  { tables: ['grants', 'ledger'], actions: ['Query', 'Scan'] },
  { tables: ['ledger'], index: 'by_id', actions: ['Query', 'Scan'] },
  { tables: ['ledger'], actions: ['GetItem'] },
  { tables: ['daily'], actions: ['BatchGetItem', 'Query'] },
];

const reads: readonly TableAccess[] = [
  ...auditReads,
  // A table stands in few statements: a policy of IAM has 6,144 characters.
  { tables: [...configuration, 'payments'], actions: ['Scan'] },
  { tables: ['keys', 'accounts'], actions: ['Scan', 'GetItem', 'BatchGetItem'] },
  { tables: ['runtime'], actions: ['BatchGetItem'], ids: readableIds },
  // Lists of the tool and the console: balances by their keys, and what is known against channels.
  { tables: ['quotas'], actions: ['BatchGetItem'] },
  { tables: ['runtime'], actions: ['GetItem'], ids: ['cooldowns'] },
];

/** What `doctor` reads, where `init` and `payment link` find the base URL and `request` the log, and what it found there. */
const accountReads: readonly AccountAction[] = [
  // Results of a search belong to no resource that AWS knows; groups are described by all of the account.
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
      { tables: ['keys', 'accounts'], actions: ['PutItem', 'UpdateItem'] },
      { tables: ['payments'], actions: ['GetItem', 'PutItem'] },
      { tables: ['grants'], actions: ['PutItem'] },
      // Content of conversations. `support` has none of it.
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
      // A sum in buckets is corrected in one of them if the others are as they were found.
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
      { tables: ['keys', 'accounts', 'payments'], actions: ['BatchGetItem'] },
      { tables: ['accounts'], actions: ['Scan'] },
      // To see that the closed relay is published.
      { tables: ['runtime'], actions: ['BatchGetItem'], ids: ['config', 'snapshot#*'] },
      { tables: ['settings'], actions: ['GetItem', 'PutItem', 'UpdateItem'] },
      { tables: ['quotas', 'ledger', 'grants', 'payments', 'keys', 'accounts'], actions: ['PutItem'] },
      { tables: ['daily'], actions: ['ConditionCheckItem', 'UpdateItem'] },
      {
        tables: ['quotas', 'ledger', 'grants', 'payments', 'keys', 'accounts'],
        actions: ['DescribeContinuousBackups', 'RestoreTableToPointInTime'],
      },
    ],
    // AWS writes the rows of a copy with the rights of whoever asks for it.
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

/** No page of the console shows what clients said to models. */
const isOfPages = ({ tables, ids = [], byHand }: TableAccess): boolean =>
  byHand === undefined && !tables.includes('responses') && !ids.some((id) => id.startsWith('content-read'));

/** Of the function `console`: what its pages do, and its own items. It deletes none of these, so that no line of history goes. */
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
  // It makes none.
  secrets: [],
};

/** The name of a managed policy. IAM has one set of names for all regions. */
export const policyNameIn = (stack: string, policy: PolicyName, region: string): string =>
  `${stack}-${policy}-${region}`;
