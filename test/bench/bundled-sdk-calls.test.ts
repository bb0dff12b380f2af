import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as dynamodb from '@aws-sdk/client-dynamodb';
import * as secretsManager from '@aws-sdk/client-secrets-manager';
import * as ssm from '@aws-sdk/client-ssm';
import * as documents from '@aws-sdk/lib-dynamodb';
import { NormalizedSchema } from '@smithy/core/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildFunctions } from '../../infra/build/build-functions.ts';
import { jsonOperations } from '../../infra/build/json-operations.ts';
import type { JsonOperation } from '../../shared/adapters/dynamodb/plain-json-protocol.ts';

const source = `
export { BatchGetItemCommand, ConditionalCheckFailedException, DynamoDBClient, GetItemCommand, PutItemCommand,
  QueryCommand, ScanCommand, TransactGetItemsCommand, TransactionCanceledException, TransactWriteItemsCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
export { DynamoDBDocumentClient, GetCommand, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
export { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
export { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
`;
type Sdk = Record<string, new (settings: object) => { send: (command: object) => Promise<object> }> &
  Pick<typeof dynamodb, (typeof errorClasses)[number]> &
  Pick<typeof documents, 'DynamoDBDocumentClient'>;

const errorClasses = ['ConditionalCheckFailedException', 'TransactionCanceledException'] as const;

/** A thing of every kind, and names that mean something elsewhere. */
const item = {
  id: { S: 'ä "quoted" \u{1F600} \\ \n \u0001 \uD800' },
  N: { N: '123456789012345678901234567890.000000001' },
  B: { B: Uint8Array.from([0, 1, 254, 255]) },
  BS: { BS: [Uint8Array.from([1]), Buffer.from('two')] },
  sets: { SS: ['a', 'b'] },
  numbers: { NS: ['1', '2.5'] },
  nested: { M: { B: { L: [{ NULL: true }, { BOOL: false }, { M: { BS: { S: 'text' } } }, { M: {} }] } } },
  empty: { L: [] },
};
const wireItem = JSON.stringify(item, (_, value: unknown) =>
  value !== null && typeof value === 'object' && ('buffer' in value || 'data' in value)
    ? Buffer.from('data' in value ? (value.data as number[]) : (value as Uint8Array)).toString('base64')
    : value,
);
const key = { id: { S: 'a' } };
const table = 'BS';

interface Call {
  command: string;
  client?: string;
  input: object;
  reply?: string;
}

const calls: Call[] = [
  {
    command: 'GetItemCommand',
    input: { TableName: table, Key: key, ConsistentRead: true, ProjectionExpression: undefined },
    reply: `{"Item":${wireItem},"ConsumedCapacity":{"TableName":"B","CapacityUnits":0.5}}`,
  },
  { command: 'GetItemCommand', input: { TableName: table, Key: { id: item.B } }, reply: '{}' },
  {
    command: 'PutItemCommand',
    input: { TableName: table, Item: item, ConditionExpression: 'attribute_not_exists(id)' },
    reply: '',
  },
  {
    command: 'UpdateItemCommand',
    input: {
      TableName: table,
      Key: key,
      UpdateExpression: 'SET #a = :a, #b = :b',
      ExpressionAttributeNames: { '#a': 'a', '#b': 'b' },
      ExpressionAttributeValues: { ':a': item.B, ':b': item.nested, ':none': undefined, ':null': null },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
    reply: `{"Attributes":${wireItem}}`,
  },
  {
    command: 'BatchGetItemCommand',
    input: { RequestItems: { B: { Keys: [key], ConsistentRead: true }, BS: { Keys: [key, key] } } },
    reply: `{"Responses":{"B":[${wireItem}],"BS":[${wireItem},{}]},"UnprocessedKeys":{"B":{"Keys":[${wireItem}]}}}`,
  },
  {
    command: 'QueryCommand',
    input: { TableName: table, KeyConditionExpression: 'id = :id', ExclusiveStartKey: key, Limit: 3 },
    reply: `{"Items":[${wireItem}],"Count":1,"ScannedCount":1,"LastEvaluatedKey":${wireItem}}`,
  },
  {
    command: 'ScanCommand',
    input: { TableName: table, Segment: 0, TotalSegments: 2 },
    reply: `{"Items":[],"Count":0,"ScannedCount":0}`,
  },
  {
    command: 'TransactGetItemsCommand',
    input: {
      TransactItems: [{ Get: { TableName: table, Key: key } }, { Get: { TableName: table, Key: key } }],
    },
    reply: `{"Responses":[{"Item":${wireItem}},{}]}`,
  },
  {
    command: 'TransactWriteItemsCommand',
    input: {
      TransactItems: [{ Put: { TableName: table, Item: item } }, { Update: { TableName: table, Key: key } }],
    },
    reply: '{}',
  },
  {
    command: 'TransactWriteItemsCommand',
    input: { ClientRequestToken: 'mine', TransactItems: [{ Delete: { TableName: table, Key: key } }] },
    reply: '{}',
  },
  {
    command: 'GetCommand',
    client: 'documents',
    input: { TableName: table, Key: { id: 'a' } },
    reply: `{"Item":${wireItem}}`,
  },
  {
    command: 'PutCommand',
    client: 'documents',
    input: { TableName: table, Item: { id: 'a', n: 1, list: [null, true, { b: Buffer.from('x') }] } },
    reply: '{}',
  },
  {
    command: 'UpdateCommand',
    client: 'documents',
    input: { TableName: table, Key: { id: 'a' }, ExpressionAttributeValues: { ':a': new Set(['x']) } },
    reply: `{"Attributes":${wireItem}}`,
  },
  {
    command: 'GetParameterCommand',
    client: 'SSMClient',
    input: { Name: '/relay/a', WithDecryption: true },
    reply: `{"Parameter":{"Name":"/relay/a","Type":"SecureString","Value":"sk","Version":3}}`,
  },
  {
    command: 'GetSecretValueCommand',
    client: 'SecretsManagerClient',
    input: { SecretId: 'relay/a' },
    reply: `{"Name":"relay/a","SecretString":"sk","VersionStages":["AWSCURRENT"]}`,
  },
];

const failures: { status: number; body: string; headers?: Record<string, string> }[] = [
  {
    status: 400,
    body: `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":${wireItem}}`,
  },
  {
    status: 400,
    body: `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"off","CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Item":${wireItem},"Message":"no"}]}`,
  },
  {
    status: 400,
    body: '{"__type":"com.amazonaws.dynamodb.v20120810#ReplicatedWriteConflictException","message":"both"}',
  },
  { status: 400, body: '{"__type":"com.amazon.coral.validate#ValidationException","message":"bad"}' },
  { status: 400, body: '{"__type":"a#ProvisionedThroughputExceededException","message":"slow"}' },
  { status: 400, body: '{"__type":"a#ExpiredTokenException","Message":"old"}' },
  { status: 400, body: '{"code":"ThrottlingException:http://a/","message":"slow"}' },
  { status: 400, body: '{}', headers: { 'x-amzn-errortype': 'RequestLimitExceeded,other' } },
  { status: 400, body: '{"__type":"constructor"}' },
  { status: 403, body: '' },
  {
    status: 500,
    body: '{"__type":"a#InternalServerError","message":"oh"}',
    headers: { 'x-amzn-requestid': 'r' },
  },
  { status: 503, body: '<html>busy</html>' },
  { status: 200, body: '{"Item":' },
  { status: 503, body: '{}', headers: { 'retry-after': 'Mon, 05 Jan 2026 10:00:00 GMT' } },
  { status: 503, body: '{}', headers: { 'retry-after': 'whenever GMT' } },
];

let root: string;
let bundled: Sdk;
let server: Server;
let answer: { status: number; body: string; headers?: Record<string, string> };
let received: { url: string | undefined; headers: IncomingHttpHeaders; body: string }[];

const version = /\d+\.\d+\.\d+/g;

/** Does the call; what went up, and what came of it. */
async function outcome(sdk: Sdk, { command, client = 'DynamoDBClient', input }: Call): Promise<object> {
  received = [];
  const { port } = server.address() as AddressInfo;
  const settings = {
    region: 'eu-west-1',
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'token' },
    maxAttempts: 2,
  };
  const Client = sdk[client === 'documents' ? 'DynamoDBClient' : client];
  const Command = sdk[command];
  if (Client === undefined || Command === undefined) throw new Error(`${client} or ${command} is missing`);
  const raw = new Client(settings);
  const sender = client === 'documents' ? sdk.DynamoDBDocumentClient.from(raw as never) : raw;
  const result = await (sender.send as (command: object) => Promise<object>)(new Command(input)).catch(
    (error: Error) => ({
      ...(error as object),
      name: error.name,
      message: error.message,
      classes: errorClasses.filter((name) => error instanceof sdk[name]),
    }),
  );
  const requests = received.map(({ url, headers, body }) => ({
    url,
    headers: {
      ...headers,
      'user-agent': headers['user-agent']?.replaceAll(version, 'version'),
      'x-amz-user-agent': String(headers['x-amz-user-agent']).replaceAll(version, 'version'),
      // The members of the body may be in another order.
      'x-amz-content-sha256':
        headers['x-amz-content-sha256'] === createHash('sha256').update(body).digest('hex'),
      authorization: headers.authorization?.replace(/Signature=.*/, ''),
      'x-amz-date': 'checked by the store',
      'amz-sdk-invocation-id': headers['amz-sdk-invocation-id']?.length,
    },
    body: JSON.parse(body, (name, value: unknown) =>
      name === 'ClientRequestToken' && value !== 'mine' ? 'an id' : value,
    ) as unknown,
  }));
  const { $metadata } = result as { $metadata?: object };
  return { requests, result: { ...result, $metadata: { ...$metadata, totalRetryDelay: 0 } } };
}

/** What JSON does not say about an operation: members that it makes, and those that are not as they look. */
function unsaid(schema: NormalizedSchema, seen = new Set<string>()): string[] {
  if (seen.has(schema.getName(true) ?? '')) return [];
  if (schema.isListSchema() || schema.isMapSchema()) return unsaid(schema.getValueSchema(), seen);
  if (!schema.isStructSchema()) return [];
  const name = schema.getName(true) ?? '';
  const isItem = name.endsWith('#AttributeValue');
  seen.add(name);
  return [...schema.structIterator()].flatMap(([member, of]) => {
    const value = of.isListSchema() ? of.getValueSchema() : of;
    const isBytes = value.isBlobSchema() && !(isItem && /^BS?$/.test(member));
    const isOdd = isBytes || value.isTimestampSchema() || of.isIdempotencyToken() || of.isStreaming();
    const clashes = !isItem && /^BS?$/.test(member);
    return isOdd || clashes ? [member] : unsaid(of, seen);
  });
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'relay-sdk-calls-'));
  mkdirSync(join(root, 'functions'));
  writeFileSync(join(root, 'functions', 'clients.ts'), source);
  await buildFunctions({ functionsFolder: join(root, 'functions'), outputFolder: join(root, 'dist') });
  bundled = (await import(pathToFileURL(join(root, 'dist', 'clients', 'index.mjs')).href)) as Sdk;
  server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      received.push({
        url: `${request.method} ${request.url}`,
        headers: request.headers,
        body: Buffer.concat(pieces).toString(),
      });
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
});

afterAll(() => {
  server.close();
  rmSync(root, { recursive: true });
});

const whole = { ...documents, ...ssm, ...secretsManager, ...dynamodb } as unknown as Sdk;

describe('a call of the SDK in a bundle', () => {
  test.each(calls)('$command sends and returns what the whole SDK does', async (call) => {
    answer = { status: 200, body: call.reply ?? '', headers: { 'x-amzn-requestid': 'request' } };
    const expected = await outcome(whole, call);
    expect(await outcome(bundled, call)).toEqual(expected);
    expect(expected).toMatchObject({ requests: [{}] });
  });

  test.each(failures)('fails as the whole SDK does after $status $body', async (failure) => {
    answer = failure;
    const call = { command: 'GetItemCommand', input: { TableName: table, Key: key } };
    expect(await outcome(bundled, call)).toEqual(await outcome(whole, call));
  });

  test('leaves out times and bytes that no function reads, rather than returning them in another type', async () => {
    answer = { status: 200, body: '{"Parameter":{"Value":"sk","LastModifiedDate":1.7e9}}' };
    const call = { command: 'GetParameterCommand', client: 'SSMClient', input: { Name: 'a' } };
    expect(await outcome(bundled, call)).toMatchObject({ result: { Parameter: { Value: 'sk' } } });
    expect(JSON.stringify(await outcome(bundled, call))).not.toContain('LastModifiedDate');
  });

  const clients: Record<string, object> = {
    'client-dynamodb': dynamodb,
    'client-ssm': ssm,
    'client-secrets-manager': secretsManager,
  };
  const operations = Object.entries(jsonOperations).flatMap(([client, each]) =>
    Object.entries(each).map(([name, operation]) => ({ client, name, operation })),
  );
  test.each(operations)('$name has nothing but JSON in its schema, and what is listed', (one) => {
    const { client, name, operation }: { client: string; name: string; operation: JsonOperation } = one;
    const schema = (clients[client] as Record<string, unknown>)[`${name}$`] as unknown[];
    const [input, output] = [schema[4], schema[5]].map((each) => unsaid(NormalizedSchema.of(each as never)));
    expect(input).toEqual(operation.token === undefined ? [] : [operation.token]);
    expect(output?.toSorted()).toEqual(operation.unread ?? []);
  });
});
