/** The actions, resources and condition keys for which AWS would check a signed request. */
import type { IncomingMessage } from 'node:http';
import { tableNames, tableSchemas } from '../../shared/tables/table-schemas.ts';
import { arnOf } from './template-policies.ts';
import type { Access } from './policy-document.ts';

type Key = Record<string, { S?: string; N?: string }>;
/** The fields of request bodies that determine the checked access. */
interface Body {
  TableName?: string;
  SourceTableName?: string;
  TargetTableName?: string;
  IndexName?: string;
  Key?: Key;
  Item?: Key;
  RequestItems?: Record<string, { Keys: Key[] } & BatchWrite[]>;
  TransactItems?: Record<string, Body>[];
  Name?: string;
  SettingId?: string;
  SecretId?: string;
  logGroupNames?: string[];
}

interface BatchWrite {
  DeleteRequest?: { Key: Key };
  PutRequest?: { Item: Key };
}

export interface Requested {
  /** The access key that signed it. */
  accessKey: string;
  service: string;
  accesses: Access[];
}

const signature =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/[a-z0-9-]+\/([a-z]+)\/aws4_request, SignedHeaders=[^,]+, Signature=[0-9a-f]{64}$/;

/** Throws if the request is not signed for its service or is unknown to this double. */
export function requestedAccess(request: IncomingMessage, body: Buffer): Requested {
  const { authorization = '', 'x-amz-target': target = '' } = request.headers;
  const [, accessKey = '', service = ''] = signature.exec(authorization) ?? [];
  const reader = readers[service];
  if (!reader) throw new Error(`a request is signed for no service of this double: ${authorization}`);
  const [prefix, operation = ''] = String(target).split('.');
  if (reader.target !== undefined && prefix !== reader.target)
    throw new Error(`a request signed for ${service} is for ${String(target)}`);
  const text = body.toString();
  const parsed = (reader.target === undefined ? {} : JSON.parse(text)) as Body;
  return { accessKey, service, accesses: reader.read({ operation, body: parsed, text, request }) };
}

interface Asked {
  operation: string;
  body: Body;
  text: string;
  request: IncomingMessage;
}

/** `target`: the prefix of the header x-amz-target, for services that use it with JSON bodies. */
const readers: Readonly<Record<string, { target?: string; read: (asked: Asked) => Access[] }>> = {
  // GetCallerIdentity needs no permission.
  sts: { read: () => [] },
  // https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
  dynamodb: { target: 'DynamoDB_20120810', read: tableAccesses },
  ssm: {
    target: 'AmazonSSM',
    read: ({ operation, body: { Name = '', SettingId } }) =>
      access('ssm', operation, SettingId === undefined ? `parameter${Name}` : `servicesetting${SettingId}`),
  },
  secretsmanager: {
    target: 'secretsmanager',
    // It adds six characters to a name.
    read: ({ operation, body: { Name, SecretId } }) =>
      access('secretsmanager', operation, `secret:${Name ?? SecretId ?? ''}-AbCdEf`),
  },
  // https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatchlogs.html
  logs: {
    target: 'Logs_20140328',
    read: ({ operation, body: { logGroupNames } }) =>
      logGroupNames?.flatMap((name) => access('logs', operation, `log-group:${name}:*`)) ??
      access('logs', operation),
  },
  cloudformation: {
    read({ text }) {
      const form = new URLSearchParams(text);
      // AWS checks this resource if the request names the stack.
      return access('cloudformation', String(form.get('Action')), `stack/${form.get('StackName')}/*`);
    },
  },
  lambda: { read: restAccess },
  bedrock: { read: restAccess },
};

/** Without a resource, because AWS defines none for this action. */
const access = (service: string, operation: string, resource?: string, keys = {}): Access[] => [
  {
    action: `${service}:${operation}`,
    resource: resource === undefined ? '*' : arnOf(service, resource),
    keys,
  },
];

const copying = 'PutItem UpdateItem DeleteItem GetItem Query Scan BatchWriteItem'.split(' ');

function tableAccesses({ operation, body }: { operation: string; body: Body }): Access[] {
  const { TableName = '', IndexName, RequestItems, TransactItems } = body;
  // Transactions need the actions of their items.
  if (TransactItems)
    return TransactItems.flatMap((item) =>
      Object.entries(item).flatMap(([kind, write]) =>
        tableAccesses({
          operation: kind === 'ConditionCheck' ? 'ConditionCheckItem' : `${kind}Item`,
          body: write,
        }),
      ),
    );
  // DynamoDB writes the copy with the caller's permissions, so it checks them:
  // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/backuprestore_IAM.html
  if (operation === 'RestoreTableToPointInTime')
    return [
      ...access('dynamodb', operation, `table/${body.SourceTableName}`),
      ...copying.flatMap((each) => access('dynamodb', each, `table/${body.TargetTableName}`)),
    ];
  if (operation === 'DescribeLimits') return access('dynamodb', operation);
  const keysOf = (table: string, keys: readonly Key[]) => ({
    'dynamodb:LeadingKeys': keys.map((key) => leadingKey(table, key)),
  });
  if (RequestItems)
    return Object.entries(RequestItems).flatMap(([table, asked]) => {
      const keys =
        asked.Keys ??
        asked.map(({ DeleteRequest, PutRequest }) => DeleteRequest?.Key ?? PutRequest?.Item ?? {});
      return access('dynamodb', operation, `table/${table}`, keysOf(table, keys));
    });
  const resource = `table/${TableName}${IndexName === undefined ? '' : `/index/${IndexName}`}`;
  const key = body.Key ?? body.Item;
  return access('dynamodb', operation, resource, key && keysOf(TableName, [key]));
}

function leadingKey(table: string, key: Key): string {
  const name = tableNames.find((each) => table.endsWith(`-${each}`));
  const value = key[name ? tableSchemas[name].partitionKey.name : ''];
  return value?.S ?? value?.N ?? '';
}

const restActions: Readonly<Record<string, readonly [service: string, operation: string]>> = {
  'GET /2016-08-19/account-settings': ['lambda', 'GetAccountSettings'],
  'GET /foundation-models': ['bedrock', 'ListFoundationModels'],
  'GET /foundation-model-availability': ['bedrock', 'GetFoundationModelAvailability'],
};

function restAccess({ request: { method, url = '' } }: Asked): Access[] {
  const [, asked] = Object.entries(restActions).find(([path]) => `${method} ${url}`.startsWith(path)) ?? [];
  if (asked === undefined) throw new Error(`${method} ${url} is not known to this double`);
  return access(...asked);
}
