/** What a signed request asks IAM for: actions, resources, condition keys. */
import type { IncomingMessage } from 'node:http';
import { tableNames, tableSchemas } from '../../shared/tables/table-schemas.ts';
import { arnOf } from './template-policies.ts';
import type { Access } from './policy-document.ts';

type Body = Record<string, unknown>;
type Key = Record<string, { S?: string; N?: string }>;

export interface Requested {
  /** The access key that signed it. */
  accessKey: string;
  service: string;
  accesses: Access[];
}

/** Throws at a request that is not signed for its service, or that this double does not know. */
export function requestedAccess(request: IncomingMessage, body: Buffer): Requested {
  const authorization = request.headers.authorization ?? '';
  const [, accessKey = '', service = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/[a-z0-9-]+\/([a-z]+)\/aws4_request, SignedHeaders=[^,]+, Signature=[0-9a-f]{64}$/.exec(
      authorization,
    ) ?? [];
  const readers: Record<string, () => Access[]> = {
    // GetCallerIdentity needs no permission.
    sts: () => [],
    dynamodb: () => tableAccesses(targetOf(request, 'DynamoDB_20120810'), jsonOf(body)),
    ssm: () => [parameterAccess(targetOf(request, 'AmazonSSM'), jsonOf(body))],
    secretsmanager: () => [secretAccess(targetOf(request, 'secretsmanager'), jsonOf(body))],
    logs: () => logAccesses(targetOf(request, 'Logs_20140328'), jsonOf(body)),
    cloudformation: () => [stackAccess(new URLSearchParams(body.toString()))],
    lambda: () => [restAccess(request, { 'GET /2016-08-19/account-settings': 'lambda:GetAccountSettings' })],
    bedrock: () => [
      restAccess(request, {
        'GET /foundation-models': 'bedrock:ListFoundationModels',
        'GET /foundation-model-availability': 'bedrock:GetFoundationModelAvailability',
      }),
    ],
  };
  const read = readers[service];
  if (!read) throw new Error(`a request is signed for no service of this double: ${authorization}`);
  return { accessKey, service, accesses: read() };
}

const jsonOf = (body: Buffer): Body => JSON.parse(body.toString()) as Body;

function targetOf({ headers }: IncomingMessage, prefix: string): string {
  const [found, operation = ''] = String(headers['x-amz-target']).split('.');
  if (found !== prefix)
    throw new Error(`a request signed for ${prefix} is for ${String(headers['x-amz-target'])}`);
  return operation;
}

interface BatchWrite {
  DeleteRequest?: { Key: Key };
  PutRequest?: { Item: Key };
}

/** https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html */
function tableAccesses(operation: string, body: Body): Access[] {
  const one = (action: string, table: unknown, keys: Key[], index?: string): Access => ({
    action: `dynamodb:${action}`,
    resource: arnOf('dynamodb', `table/${String(table)}${index === undefined ? '' : `/index/${index}`}`),
    keys:
      keys.length === 0 ? {} : { 'dynamodb:LeadingKeys': keys.map((key) => leadingKey(String(table), key)) },
  });
  switch (operation) {
    case 'GetItem':
    case 'UpdateItem':
    case 'DeleteItem':
      return [one(operation, body['TableName'], [body['Key'] as Key])];
    case 'PutItem':
      return [one(operation, body['TableName'], [body['Item'] as Key])];
    case 'Query':
    case 'Scan':
      return [one(operation, body['TableName'], [], body['IndexName'] as string | undefined)];
    case 'BatchGetItem':
      return Object.entries(body['RequestItems'] as Record<string, { Keys: Key[] }>).map(
        ([table, { Keys }]) => one(operation, table, Keys),
      );
    case 'BatchWriteItem':
      return Object.entries(body['RequestItems'] as Record<string, BatchWrite[]>).map(([table, writes]) =>
        one(
          operation,
          table,
          writes.map(({ DeleteRequest, PutRequest }) => DeleteRequest?.Key ?? PutRequest?.Item ?? {}),
        ),
      );
    // Transactions need the actions of their items.
    case 'TransactGetItems':
    case 'TransactWriteItems':
      return (body['TransactItems'] as Record<string, Body>[]).flatMap((item) =>
        Object.entries(item).map(([kind, write]) =>
          one(transactionActions[kind] ?? kind, write['TableName'], [(write['Key'] ?? write['Item']) as Key]),
        ),
      );
    case 'DescribeLimits':
      return [{ action: 'dynamodb:DescribeLimits', resource: '*', keys: {} }];
    default:
      throw new Error(`the operation ${operation} of DynamoDB is not known to this double`);
  }
}

const transactionActions: Readonly<Record<string, string>> = {
  Get: 'GetItem',
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
};

function leadingKey(table: string, key: Key): string {
  const name = tableNames.find((each) => table.endsWith(`-${each}`));
  const value = key[name ? tableSchemas[name].partitionKey.name : ''];
  return value?.S ?? value?.N ?? '';
}

function parameterAccess(
  operation: string,
  { Name, SettingId }: { Name?: string; SettingId?: string },
): Access {
  const resource = SettingId === undefined ? `parameter${Name ?? ''}` : `servicesetting${SettingId}`;
  return { action: `ssm:${operation}`, resource: arnOf('ssm', resource), keys: {} };
}

/** Secrets Manager adds six characters to a name. */
const secretAccess = (
  operation: string,
  { Name, SecretId }: { Name?: string; SecretId?: string },
): Access => ({
  action: `secretsmanager:${operation}`,
  resource: arnOf('secretsmanager', `secret:${Name ?? SecretId ?? ''}-AbCdEf`),
  keys: {},
});

/** https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatchlogs.html */
const logAccesses = (operation: string, { logGroupNames }: { logGroupNames?: string[] }): Access[] =>
  (logGroupNames ?? ['']).map((name) => ({
    action: `logs:${operation}`,
    resource: name === '' ? '*' : arnOf('logs', `log-group:${name}:*`),
    keys: {},
  }));

/** AWS asks for this resource where the stack is named. */
const stackAccess = (form: URLSearchParams): Access => ({
  action: `cloudformation:${form.get('Action')}`,
  resource: arnOf('cloudformation', `stack/${form.get('StackName')}/*`),
  keys: {},
});

function restAccess({ method, url = '' }: IncomingMessage, actions: Record<string, string>): Access {
  const [, action] = Object.entries(actions).find(([path]) => `${method} ${url}`.startsWith(path)) ?? [];
  if (action === undefined) throw new Error(`${method} ${url} is not known to this double`);
  return { action, resource: '*', keys: {} };
}
