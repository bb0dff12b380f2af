/** Pages and batches of operators' reads, and rows of them that may be unreadable. */
import { BatchGetItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Reading } from '../../../operate/sum-reader.ts';
import { StoreBusy } from '../../../relay/ports/stores/store-errors.ts';
import { physicalTableName, type TableName } from '../../../tables/table-names.ts';
import type { Attributes } from '../attributes.ts';
import type { Store } from '../operator-client.ts';

export async function* pages(
  paginator: AsyncIterator<{ Items?: Attributes[] | undefined }>,
  explained: Store['explained'],
): AsyncGenerator<Attributes[]> {
  for (;;) {
    const next = await explained(paginator.next());
    if (next.done) return;
    yield next.value.Items ?? [];
  }
}

/** DynamoDB's limit. */
const keysMax = 100;
const triesMax = 5;

/** The items with these keys, each named once, in no order and with consistent reads: 100 for each request. */
export const itemsOf = ({ client, explained, target }: Store, table: TableName, keys: Attributes[]) =>
  explained(batches(client, physicalTableName(target.stack, table), keys));

async function batches(client: DynamoDBClient, TableName: string, keys: Attributes[]): Promise<Attributes[]> {
  const found: Attributes[] = [];
  let left = keys;
  for (let unread = 0; left.length > 0;) {
    const Keys = left.slice(0, keysMax);
    const RequestItems = { [TableName]: { Keys, ConsistentRead: true } };
    const { Responses, UnprocessedKeys } = await client.send(new BatchGetItemCommand({ RequestItems }));
    found.push(...(Responses?.[TableName] ?? []));
    const again = UnprocessedKeys?.[TableName]?.Keys ?? [];
    if (again.length === Keys.length && (unread += 1) === triesMax)
      throw new StoreBusy('not all items were read');
    left = [...again, ...left.slice(keysMax)];
  }
  return found;
}

export function reading<Row>(item: Attributes, key: string, read: (item: Attributes) => Row): Reading<Row> {
  try {
    return { row: read(item) };
  } catch (error) {
    return { key, problem: error instanceof Error ? error.message : String(error) };
  }
}
