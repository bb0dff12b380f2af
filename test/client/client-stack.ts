import { createHash } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import OpenAI from 'openai';
import type { ClientOptions } from 'openai';
import { startLocalStack } from '../support/local-stack.ts';
import { waitUntilServed } from '../support/published.ts';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

/** The running local stack whose models come from an upstream that the test scripts. */
export interface ClientStack {
  upstream: ScriptedUpstream;
  baseUrl: string;
  dynamodbEndpoint: string;
  /** May use everything. */
  key: string;
  /** The messages of each upstream call, oldest first. */
  sentMessages(): SentMessage[][];
  /** Log lines of the functions and their runner so far. */
  log(): string;
  /** Process ids of the chat function's environments. */
  chatPids(): number[];
  /** The official client with a valid key; without retries by default. */
  client(options?: ClientOptions): OpenAI;
  stop(): Promise<void>;
}

export type SentMessage = { role: string } & Record<string, unknown>;

/** May use only the model `whitelisted`. */
export const narrowKey = 'sk-test-narrow';
export const disabledKey = 'sk-test-disabled';
/** May store responses; two keys of one account, and one of another account. */
export const storingKeys = {
  own: 'sk-test-store',
  second: 'sk-test-store-2',
  other: 'sk-test-store-3',
} as const;

/** Public names; `scripted` is called `upstream-model` at the upstream. No channel serves the last one. */
export const models = { scripted: 'scripted', slashed: 'vendor/scripted', unserved: 'unserved' } as const;

let running: Promise<ClientStack> | undefined;

/** Channels for failing upstreams. */
export const fragileModels = Array.from({ length: 24 }, (_, at) => `fragile-${at}`);

/** One stack for all files of this folder, which run one after another. */
export async function clientStack(): Promise<Omit<ClientStack, 'stop'>> {
  running ??= startClientStack({ moreModels: fragileModels });
  const stack = await running;
  stack.upstream.forget();
  const before = stack.log().length;
  return { ...stack, log: () => stack.log().slice(before) };
}

export async function stopClientStack(): Promise<void> {
  await (await running)?.stop();
}

/** `moreModels`: also served by the scripted upstream under the same names, each through its own channel. */
export async function startClientStack(options: { moreModels?: string[] } = {}): Promise<ClientStack> {
  const upstream = await startScriptedUpstream();
  const stack = await startLocalStack();
  await putRows(stack.dynamodbEndpoint, upstream.endpoint, options.moreModels ?? []);
  return {
    upstream,
    baseUrl: stack.baseUrl,
    dynamodbEndpoint: stack.dynamodbEndpoint,
    key: stack.key,
    sentMessages: () => upstream.requests.map(({ body }) => body['messages'] as SentMessage[]),
    log: () => stack.stderr(),
    chatPids: () => stack.environmentPids('chat'),
    client: (options) => new OpenAI({ baseURL: stack.baseUrl, apiKey: stack.key, maxRetries: 0, ...options }),
    stop: async () => {
      await stack.stop();
      await upstream.close();
    },
  };
}

async function putRows(
  dynamodbEndpoint: string,
  upstreamEndpoint: string,
  moreModels: string[],
): Promise<void> {
  const dynamodb = new DynamoDBClient({
    endpoint: dynamodbEndpoint,
    region: 'local',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  const documents = DynamoDBDocumentClient.from(dynamodb);
  const { Item: openai } = await documents.send(
    new GetCommand({ TableName: 'relay-channels', Key: { id: 'demo-gpt' } }),
  );
  const channel = { type: 'openai', endpoint: upstreamEndpoint, priority: 100, state: true };
  const channels = [
    {
      ...channel,
      id: 'scripted',
      models: [models.scripted, models.slashed],
      mapper: { [models.scripted]: 'upstream-model' },
    },
    {
      id: 'packed',
      type: 'azure',
      endpoint: openai?.['endpoint'] as string,
      models: ['packed'],
      mapper: { packed: 'text-embedding-3-small' },
      state: true,
    },
    ...moreModels.map((model) => ({ ...channel, id: model, priority: 90, models: [model] })),
  ];
  const keys = [
    { hash: hashed(narrowKey), account: 'test', models: ['whitelisted'] },
    { hash: hashed(disabledKey), account: 'test', enabled: false },
    { hash: hashed(storingKeys.own), account: 'test', store: true },
    { hash: hashed(storingKeys.second), account: 'test', store: true },
    { hash: hashed(storingKeys.other), account: 'other', store: true },
  ];
  await Promise.all([
    ...channels.map((Item) => documents.send(new PutCommand({ TableName: 'relay-channels', Item }))),
    ...keys.map((Item) => documents.send(new PutCommand({ TableName: 'relay-keys', Item }))),
  ]);
  dynamodb.destroy();
  await waitUntilServed(dynamodbEndpoint, [models.scripted, models.slashed, 'packed', ...moreModels]);
}

const hashed = (key: string): string => createHash('sha256').update(key).digest('hex');

/** The id that clients see for an upstream's short id, which it contains. */
export const shownId = (id: string): RegExp =>
  new RegExp(`^call_[0-9a-z]+_${Buffer.from(id).toString('base64url')}$`);
