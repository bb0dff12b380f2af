import { setTimeout as pause } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, ScanCommand } from '@aws-sdk/lib-dynamodb';
import { OpenAIEmbeddings } from '@langchain/openai';
import { cosineSimilarity, embed, embedMany } from 'ai';
import type OpenAI from 'openai';
import { NotFoundError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aiSdks } from '../support/ai-sdks.ts';
import { clientStack } from './client-stack.ts';

/** Vectors of an upstream that returns numbers, and of OpenAI's double, which returns bytes as Azure. */
const models = ['demo-embedding', 'packed'];
let stack: Awaited<ReturnType<typeof clientStack>>;
let documents: DynamoDBDocumentClient;
let client: OpenAI;

beforeAll(async () => {
  stack = await clientStack();
  client = stack.client();
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  documents = DynamoDBDocumentClient.from(
    new DynamoDBClient({ endpoint: stack.dynamodbEndpoint, region: 'local', credentials }),
  );
}, 60_000);
afterAll(() => documents?.destroy());

const input = ['the cat sat on the mat', 'a cat on a mat', 'quarterly interest rates'];

describe.each(models)('the official client with %s', (model) => {
  test('decodes the requested bytes to the same numbers', async () => {
    const packed = await client.embeddings.create({ model, input });
    const plain = await client.embeddings.create({ model, input, encoding_format: 'float' });
    expect(packed.data.map(({ index }) => index)).toEqual([0, 1, 2]);
    for (const [at, { embedding }] of packed.data.entries())
      expect(embedding.map(Math.fround)).toEqual(plain.data[at]?.embedding.map(Math.fround));
    expect(packed.model).toBe(model);
    expect(packed.usage).toEqual({ prompt_tokens: 16, total_tokens: 16 });
  });

  test('gets vectors of the requested length, for text and for tokens', async () => {
    const text = await client.embeddings.create({ model, input: 'cat', dimensions: 8 });
    expect(text.data.map(({ embedding }) => embedding.length)).toEqual([8]);
    const tokens = await client.embeddings.create({ model, input: [[1, 2, 3], [4]], dimensions: 8 });
    expect(tokens.data).toHaveLength(2);
    expect(tokens.usage.prompt_tokens).toBe(4);
  });
});

test('2,048 texts are answered with 2,048 vectors of 1,536 numbers', async () => {
  const texts = Array.from({ length: 2048 }, (_, at) => `text number ${at}`);
  const { data } = await client.embeddings.create({ model: 'packed', input: texts });
  expect(data).toHaveLength(2048);
  expect(data.every(({ embedding }, at) => embedding.length === 1536 && data[at]?.index === at)).toBe(true);
  const one = await client.embeddings.create({ model: 'packed', input: texts[2047] ?? '' });
  expect(one.data[0]?.embedding).toEqual(data[2047]?.embedding);
}, 60_000);

test('300,000 tokens are one request', async () => {
  const tokens = Array.from({ length: 300 }, () => Array.from({ length: 1000 }, () => 7));
  const { usage } = await client.embeddings.create({ model: 'packed', input: tokens, dimensions: 2 });
  expect(usage.prompt_tokens).toBe(300_000);
});

test('a call of embeddings writes one ledger row with only input', async () => {
  const { _request_id: id } = (await client.embeddings.create({
    model: 'demo-embedding',
    input,
  })) as unknown as { _request_id: string };
  const rowOf = async () => {
    const { Items = [] } = await documents.send(new ScanCommand({ TableName: 'relay-ledger' }));
    return Items.filter((item) => item['id'] === id);
  };
  let rows = await rowOf();
  while (rows.length === 0) {
    await pause(100);
    rows = await rowOf();
  }
  expect(rows).toMatchObject([
    {
      endpoint: 'embeddings',
      model: 'demo-embedding',
      prompt_tokens: 16,
      completion_tokens: 0,
      charge: 0.000008,
    },
  ]);
}, 30_000);

test('an embeddings model rejects conversations', async () => {
  const messages = [{ role: 'user' as const, content: 'hello' }];
  const refused = client.chat.completions.create({ model: 'demo-embedding', messages });
  await expect(refused).rejects.toThrow(NotFoundError);
});

describe.each(aiSdks)('AI SDK $version', (sdk) => {
  test('embeds one value and many', async () => {
    const model = sdk
      .createOpenAI({ baseURL: stack.baseUrl, apiKey: stack.key })
      .embedding('demo-embedding') as Parameters<typeof embed>[0]['model'];
    const { embeddings, usage } = await embedMany({ model, values: input, maxRetries: 0 });
    const [first = [], second = [], third = []] = embeddings;
    expect(cosineSimilarity(first, second)).toBeGreaterThan(cosineSimilarity(first, third));
    expect(usage.tokens).toBe(16);
    const { embedding } = await embed({ model, value: input[0] ?? '', maxRetries: 0 });
    expect(embedding).toEqual(first);
  });
});

test('LangChain embeds documents and queries', async () => {
  const configuration = { baseURL: stack.baseUrl };
  const embeddings = new OpenAIEmbeddings({
    model: 'packed',
    apiKey: stack.key,
    configuration,
    maxRetries: 0,
  });
  const [first] = await embeddings.embedDocuments(input);
  expect(first).toHaveLength(1536);
  expect(await embeddings.embedQuery(input[0] ?? '')).toEqual(first);
});
