/** Reads a call of AWS's JSON protocol as far as rules of faults look at it. */
import type { IncomingHttpHeaders } from 'node:http';
import type { FaultedCall, FaultService } from './fault-rules.ts';

export interface JsonCall extends FaultedCall {
  body: Record<string, unknown>;
  contentType: string;
}

const services: Record<string, FaultService> = {
  DynamoDB_20120810: 'dynamodb',
  DynamoDBStreams_20120810: 'streams',
  AmazonSSM: 'ssm',
  secretsmanager: 'secretsmanager',
};

/** The call of a request; one that is not of this protocol has the operation ''. */
export function callOf(headers: IncomingHttpHeaders, bytes: Buffer): JsonCall {
  const [prefix = '', operation = ''] = String(headers['x-amz-target'] ?? '').split('.');
  const service = services[prefix] ?? 'dynamodb';
  const body = operation === '' ? {} : (JSON.parse(bytes.toString()) as Record<string, unknown>);
  const contentType = headers['content-type'] ?? 'application/x-amz-json-1.0';
  return { service, operation, tables: tablesOf(body), body, contentType };
}

function tablesOf({ TableName, RequestItems, TransactItems, Name, SecretId }: JsonCall['body']): string[] {
  const named = TableName ?? Name ?? SecretId;
  if (typeof named === 'string') return [named];
  if (RequestItems) return Object.keys(RequestItems);
  const actions = (TransactItems ?? []) as Record<string, { TableName?: string }>[];
  return [
    ...new Set(actions.flatMap((action) => Object.values(action).map(({ TableName: name }) => name ?? ''))),
  ];
}

/** What the service itself says when it is called too often. */
export function throttleErrorOf({ service, operation }: FaultedCall): string {
  if (service !== 'dynamodb') return 'ThrottlingException';
  const ofTable = operation.startsWith('Transact')
    ? 'ThrottlingException'
    : 'ProvisionedThroughputExceededException';
  return `com.amazonaws.dynamodb.v20120810#${ofTable}`;
}

const withoutCapacity = /^(Create|Delete|Describe|List|UpdateT|Tag|Untag)/;

/** The call's body, asking for its capacity units. */
export const withCapacity = ({ service, operation, body }: JsonCall, bytes: Buffer): Buffer =>
  service !== 'dynamodb' || operation === '' || withoutCapacity.test(operation)
    ? bytes
    : Buffer.from(JSON.stringify({ ...body, ReturnConsumedCapacity: 'TOTAL' }));
