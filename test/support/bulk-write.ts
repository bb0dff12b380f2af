import type { AttributeValue, DynamoDBClient } from '@aws-sdk/client-dynamodb';

type Item = Record<string, AttributeValue>;

const writesAtOnce = 25;
const lanes = 6;

/**
 * Writes thousands of items to the emulator of this client. The SDK takes longer to encode an item than the emulator to
 * write it, so items are already encoded; none may contain binary values.
 */
export async function bulkWrite(client: DynamoDBClient, table: string, items: Item[]): Promise<void> {
  const endpoint = await client.config.endpoint?.();
  if (endpoint === undefined) throw new Error('a client of the emulator has an endpoint');
  const url = `${endpoint.protocol}//${endpoint.hostname}:${endpoint.port}/`;
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const part = items.slice(next, (next += writesAtOnce));
      await post(url, { RequestItems: { [table]: part.map((Item) => ({ PutRequest: { Item } })) } });
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function post(url: string, body: object): Promise<void> {
  const reply = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-date': '20260101T000000Z',
      'x-amz-target': 'DynamoDB_20120810.BatchWriteItem',
      // The emulator checks the form of a signature, but not the signature itself.
      authorization:
        'AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
    },
    body: JSON.stringify(body),
  });
  const text = await reply.text();
  const { UnprocessedItems = {} } = (reply.ok ? JSON.parse(text) : {}) as { UnprocessedItems?: object };
  if (!reply.ok || Object.keys(UnprocessedItems).length > 0) throw new Error(`not written: ${text}`);
}
