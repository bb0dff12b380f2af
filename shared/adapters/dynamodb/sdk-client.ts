/**
 * Calls DynamoDB by AWS's own client, which `AWS_CLIENT=sdk` selects while ours has a problem. Loaded by its first call,
 * since it is larger than a function. Numbers keep all digits.
 */
import * as base from '@aws-sdk/client-dynamodb';
import * as documents from '@aws-sdk/lib-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { isRecord } from '../../wire/json.ts';
import { NoReply, ServiceRefusal } from '../aws/aws-calls.ts';
import type { AwsAccess } from '../system/environment.ts';
import {
  clientTimes,
  throwStoreError,
  type Attributes,
  type ClientSettings,
  type TableClient,
} from './table-client.ts';

export function createSdkTableClient(aws: AwsAccess, more: ClientSettings = {}): TableClient {
  const { region, connectionsMax: maxSockets = 50 } = aws;
  const { connectMsMax: connectionTimeout, tryMsMax: requestTimeout } = { ...clientTimes, ...more };
  // Otherwise the SDK prints a warning and keeps waiting.
  const times = { connectionTimeout, requestTimeout, throwOnRequestTimeout: true };
  const requestHandler = { ...times, httpAgent: more.agent ?? { maxSockets }, httpsAgent: { maxSockets } };
  const customUserAgent: [string, string][] = [['relay', process.env['RELAY_VERSION'] || 'unreleased']];
  const settings = { region, credentials: credentialsOf(aws), customUserAgent, requestHandler };
  return createTableClientBy((maxAttempts) => new base.DynamoDBClient({ ...settings, maxAttempts }), more);
}

/** @param clientOf creates a client with so many attempts, which the SDK cannot set for one call */
export function createTableClientBy(
  clientOf: (attempts: number) => base.DynamoDBClient,
  more: ClientSettings = {},
): TableClient {
  const clients = new Map<number, Sender>();
  const reuseClient = (attempts: number): Sender => {
    const client = clients.get(attempts) ?? createDocumentClient(clientOf(attempts));
    clients.set(attempts, client);
    return client;
  };
  return {
    async call(operation, input, { attempts = more.attempts ?? clientTimes.attempts, tryMsMax } = {}) {
      const Command = commands[operation.replace(/Items?$/, 'Command')] ?? commands[`${operation}Command`];
      if (!Command) throw new Error(`The SDK has no ${operation}.`);
      const options = tryMsMax === undefined ? {} : { requestTimeout: tryMsMax };
      const values = convertItems((item) => unmarshall(item, { wrapNumbers: true }), input);
      try {
        const reply = await reuseClient(attempts).send(new Command(values), options);
        more.budget?.give(0);
        return convertItems(marshall, reply) as never;
      } catch (error) {
        return throwStoreError(convertError(error as SdkError));
      }
    },
  };
}

interface Sender {
  send(command: object, options: object): Promise<unknown>;
}

/** The document client's commands, and plain ones for operations without items. */
const commands = { ...base, ...documents } as unknown as Record<
  string,
  (new (input: unknown) => object) | undefined
>;

function createDocumentClient(client: base.DynamoDBClient): Sender {
  // The logger would copy each item for nobody.
  client.middlewareStack.remove('loggerMiddleware');
  const values = { unmarshallOptions: { wrapNumbers: true } };
  return documents.DynamoDBDocumentClient.from(client, values);
}

/** The SDK never renews credentials without an expiry. */
function credentialsOf({ credentials: given }: AwsAccess) {
  if (!('current' in given)) return given;
  return async () => ({ expiration: new Date(), ...(await given.current(credentialsMsMax)) });
}

const credentialsMsMax = 10_000;

interface SdkError extends Error {
  code?: string;
  $metadata?: { httpStatusCode?: number; requestId?: string };
}

/**
 * Converts to our client's errors. The SDK does not say whether a call was sent, so only refused connections count as unsent.
 */
function convertError(error: SdkError): Error {
  const { httpStatusCode: status = 0, requestId } = error.$metadata ?? {};
  const headers = { 'x-amzn-requestid': requestId };
  if (status >= 300)
    return new ServiceRefusal({ status, headers }, { ...error, message: error.message, __type: error.name });
  if (error.name === 'TimeoutError') return new NoReply('ETIMEDOUT', { sent: true });
  // Only replies are parsed, so this one was damaged or is a proxy's page.
  if (error instanceof SyntaxError) return new NoReply('EBADREPLY', { sent: true, requestId });
  return error.code === undefined ? error : new NoReply(error.code, { sent: !unsent.has(error.code) });
}

const unsent: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);

const item = /^(Attributes|ExclusiveStartKey|ExpressionAttributeValues|Item|Key|LastEvaluatedKey)$/;

/** Converts the items of a request or reply: attributes as on the wire, or values with the SDK's numbers. */
function convertItems(convert: (attributes: Attributes) => unknown, value: unknown, name = ''): unknown {
  if (item.test(name)) return value && convert(value as Attributes);
  if (Array.isArray(value))
    return value.map((each: Attributes) =>
      /^(Items|Keys)$/.test(name) ? convert(each) : convertItems(convert, each),
    );
  if (!isRecord(value) || value instanceof Date) return value;
  // A batch replies with items by table, a transaction with a list.
  const members = Object.entries(value).map(([key, each]) => [
    key,
    convertItems(convert, each, name === 'Responses' ? 'Items' : key),
  ]);
  return Object.fromEntries(members);
}
