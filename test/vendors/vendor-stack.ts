import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import OpenAI from 'openai';
import { startVendors, type Vendors } from '../../infra/local/vendors/vendors.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { startLocalStack } from '../support/local-stack.ts';
import { waitUntilServed } from '../support/published.ts';

/** The running local stack with a channel to each vendor double. */
export interface VendorStack {
  vendors: Vendors;
  baseUrl: string;
  key: string;
  /** Uses a key that may store. */
  storing: OpenAI;
  /** Uses a key of another account. */
  neighbour: OpenAI;
  dynamodbEndpoint: string;
  client: OpenAI;
  log(): string;
  stop(): Promise<void>;
}

/** A model by its public name, and the double that serves it. */
export interface ServedModel {
  /** The public name. */
  model: string;
  /** The vendor's name; by default the public one. */
  upstream?: string;
  vendor: string;
  /** Attributes of its channel besides id, models, endpoint and state. */
  row: Record<string, unknown>;
}

/** One channel for each model, so that every model has one upstream. The rows are those that an operator would write. */
export const servedModels: ServedModel[] = [
  { model: 'gpt-5.6', vendor: 'openai', row: { type: 'openai', dialect: 'responses' } },
  { model: 'gpt-4.1', vendor: 'openai', row: { type: 'openai' } },
  { model: 'gemini-3-pro-preview', vendor: 'gemini', row: { type: 'gemini' } },
  { model: 'deepseek-v4-pro', vendor: 'deepseek', row: { type: 'openai' } },
  { model: 'kimi-k2.6', vendor: 'deepseek', row: { type: 'openai' } },
  { model: 'claude-opus-5-5', vendor: 'anthropic', row: { type: 'anthropic' } },
  {
    model: 'us.anthropic.claude-opus-5-5-v1:0',
    vendor: 'bedrock',
    row: { type: 'bedrock', region: 'us-east-1' },
  },
  {
    model: 'picky',
    vendor: 'picky',
    row: { type: 'openai', params: { system: 'first', null_content: 'empty', call_ids: 'alnum9' } },
  },
];

const storingKey = 'sk-test-store';
const neighboursKey = 'sk-test-neighbour';

interface MoreRows {
  table: 'keys' | 'charges';
  row: Record<string, unknown>;
}

interface More {
  models?: ServedModel[];
  rows?: MoreRows[];
}

const added: (() => More | Promise<More>)[] = [];

/**
 * Adds to the one stack when a file is loaded, which is before the stack starts: a function that has read its
 * configuration within the last second rejects models that are newer.
 */
export const addToStack = (more: () => More | Promise<More>): void => void added.push(more);

let running: Promise<VendorStack> | undefined;

/** One stack for all files of this folder, which run one after another. A new one for a file that was loaded later. */
export async function vendorStack(): Promise<Omit<VendorStack, 'stop'>> {
  const all = await Promise.all(added.splice(0).map(async (more) => more()));
  if (running === undefined || all.length > 0) {
    await stopVendorStack();
    running = startVendorStack(
      all.flatMap(({ models = [] }) => models),
      all.flatMap(({ rows = [] }) => rows),
    );
  }
  return running;
}

export async function stopVendorStack(): Promise<void> {
  await (await running)?.stop();
}

export async function startVendorStack(
  moreModels: ServedModel[] = [],
  moreRows: MoreRows[] = [],
): Promise<VendorStack> {
  const vendors = await startVendors();
  const stack = await startLocalStack();
  await putRows(stack.dynamodbEndpoint, vendors, {
    served: [...servedModels, ...moreModels],
    rows: [
      { table: 'keys', row: { hash: keyHash(storingKey), account: 'test', store: true } },
      { table: 'keys', row: { hash: keyHash(neighboursKey), account: 'neighbour' } },
      ...moreRows,
    ],
  });
  return {
    vendors,
    baseUrl: stack.baseUrl,
    key: stack.key,
    storing: new OpenAI({ baseURL: stack.baseUrl, apiKey: storingKey, maxRetries: 0 }),
    neighbour: new OpenAI({ baseURL: stack.baseUrl, apiKey: neighboursKey, maxRetries: 0 }),
    dynamodbEndpoint: stack.dynamodbEndpoint,
    client: new OpenAI({ baseURL: stack.baseUrl, apiKey: stack.key, maxRetries: 0 }),
    log: () => stack.stderr(),
    stop: async () => {
      await stack.stop();
      await vendors.close();
    },
  };
}

async function putRows(
  endpoint: string,
  vendors: Vendors,
  { served, rows }: { served: ServedModel[]; rows: MoreRows[] },
): Promise<void> {
  const dynamodb = new DynamoDBClient({
    endpoint,
    region: 'local',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  const documents = DynamoDBDocumentClient.from(dynamodb);
  const put = (table: string, Item: Record<string, unknown>): Promise<unknown> =>
    documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));
  await Promise.all(rows.map(({ table, row }) => put(table, row)));
  await Promise.all(
    served.map(({ model, vendor, row, upstream }) =>
      put('channels', {
        id: model.replaceAll(/[^a-z0-9-]/g, '-'),
        endpoint: vendors.url(vendor),
        models: [model],
        ...(upstream !== undefined && { mapper: { [model]: upstream } }),
        state: true,
        ...row,
      }),
    ),
  );
  dynamodb.destroy();
  await waitUntilServed(
    endpoint,
    served.map(({ model }) => model),
  );
}
