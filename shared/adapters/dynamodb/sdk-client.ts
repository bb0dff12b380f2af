/**
 * The calls of DynamoDB by AWS's own client: what `AWS_CLIENT=sdk` puts in the place of ours while something is wrong with it.
 * Loaded by the first call, since it is larger than a function. Numbers keep all their digits.
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

/** As `createTableClient` is, with its attempts and times. */
export function createSdkTableClient(aws: AwsAccess, more: ClientSettings = {}): TableClient {
  const { region, connectionsMax: maxSockets = 50 } = aws;
  const { connectMsMax: connectionTimeout, tryMsMax: requestTimeout } = { ...clientTimes, ...more };
  // Without throwOnRequestTimeout the SDK prints a warning and keeps waiting.
  const times = { connectionTimeout, requestTimeout, throwOnRequestTimeout: true };
  const requestHandler = { ...times, httpAgent: more.agent ?? { maxSockets }, httpsAgent: { maxSockets } };
  const customUserAgent: [string, string][] = [['relay', process.env['RELAY_VERSION'] || 'unreleased']];
  const settings = { region, credentials: credentialsOf(aws), customUserAgent, requestHandler };
  return createTableClientBy((maxAttempts) => new base.DynamoDBClient({ ...settings, maxAttempts }), more);
}

/** @param clientOf makes a client that tries so often: with the SDK that is no setting of a call */
export function createTableClientBy(
  clientOf: (attempts: number) => base.DynamoDBClient,
  more: ClientSettings = {},
): TableClient {
  const clients = new Map<number, Sender>();
  const reuseClient = (attempts: number): Sender => {
    const client = clients.get(attempts) ?? documentsOn(clientOf(attempts));
    clients.set(attempts, client);
    return client;
  };
  return {
    async call(operation, input, { attempts = more.attempts ?? clientTimes.attempts, tryMsMax } = {}) {
      const Command = commands[operation.replace(/Items?$/, 'Command')] ?? commands[`${operation}Command`];
      if (!Command) throw new Error(`The SDK has no ${operation}.`);
      const options = tryMsMax === undefined ? {} : { requestTimeout: tryMsMax };
      const values = inForm((item) => unmarshall(item, { wrapNumbers: true }), input);
      try {
        const reply = await reuseClient(attempts).send(new Command(values), options);
        more.budget?.give(0);
        return inForm(marshall, reply) as never;
      } catch (error) {
        return throwStoreError(convertError(error as SdkError));
      }
    },
  };
}

interface Sender {
  send(command: object, options: object): Promise<unknown>;
}

/** Those of the document client, and for what has no items the plain ones. */
const commands = { ...base, ...documents } as unknown as Record<
  string,
  (new (input: unknown) => object) | undefined
>;

function documentsOn(client: base.DynamoDBClient): Sender {
  // It would copy each item for a line that nobody gets.
  client.middlewareStack.remove('loggerMiddleware');
  const values = { unmarshallOptions: { wrapNumbers: true } };
  return documents.DynamoDBDocumentClient.from(client, values);
}

/** The SDK keeps credentials without an end for good; a source renews its own. */
function credentialsOf({ credentials: given }: AwsAccess) {
  if (!('current' in given)) return given;
  return async () => ({ expiration: new Date(), ...(await given.current(credentialsMsMax)) });
}

const credentialsMsMax = 10_000;

interface SdkError extends Error {
  code?: string;
  $metadata?: { httpStatusCode?: number; requestId?: string };
}

/** The error as our client throws it. Whether a call was sent the SDK does not say: only where nobody took it, it was not. */
function convertError(error: SdkError): Error {
  const { httpStatusCode: status = 0, requestId } = error.$metadata ?? {};
  const headers = { 'x-amzn-requestid': requestId };
  if (status >= 300)
    return new ServiceRefusal({ status, headers }, { ...error, message: error.message, __type: error.name });
  if (error.name === 'TimeoutError') return new NoReply('ETIMEDOUT', { sent: true });
  // Only replies are parsed: one that is no JSON was damaged on its way, or is somebody's page.
  if (error instanceof SyntaxError) return new NoReply('EBADREPLY', { sent: true, requestId });
  return error.code === undefined ? error : new NoReply(error.code, { sent: !unsent.has(error.code) });
}

const unsent: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);

const item = /^(Attributes|ExclusiveStartKey|ExpressionAttributeValues|Item|Key|LastEvaluatedKey)$/;

/** A request or reply whose items are in the other form: attributes as on the wire, or values with the SDK's own numbers. */
function inForm(convert: (attributes: Attributes) => unknown, value: unknown, name = ''): unknown {
  if (item.test(name)) return value && convert(value as Attributes);
  if (Array.isArray(value))
    return value.map((each: Attributes) =>
      /^(Items|Keys)$/.test(name) ? convert(each) : inForm(convert, each),
    );
  if (!isRecord(value) || value instanceof Date) return value;
  // The replies of a batch are items by table; those of a transaction are a list.
  const members = Object.entries(value).map(([key, each]) => [
    key,
    inForm(convert, each, name === 'Responses' ? 'Items' : key),
  ]);
  return Object.fromEntries(members);
}
