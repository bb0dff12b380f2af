import { paginateScan, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { ConfigRows } from '../../config/config-rows.ts';
import { storeCall } from './dynamo-client.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';

/** All rows of the four tables that operators edit, read consistently. Throws StoreUnavailable, or the SDK's error. */
export function scanConfigTables(client: DynamoDBDocumentClient, stack: string): Promise<ConfigRows> {
  const scan = async (table: TableName): Promise<unknown[]> => {
    const rows: unknown[] = [];
    const input = { TableName: physicalTableName(stack, table), ConsistentRead: true };
    for await (const page of paginateScan({ client }, input)) rows.push(...(page.Items ?? []));
    return rows;
  };
  return storeCall(async () => {
    const [channels, charges, plans, settings] = await Promise.all([
      scan('channels'),
      scan('charges'),
      scan('plans'),
      scan('settings'),
    ]);
    return { channels, charges, plans, settings };
  });
}
