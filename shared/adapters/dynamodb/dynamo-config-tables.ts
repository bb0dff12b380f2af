/** Reads the four tables that make up the configuration. */
import { paginateScan, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { ConfigTables } from '../../relay/ports/stores/config-store.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import { storeCall } from './dynamo-client.ts';

export function dynamoConfigTables(client: DynamoDBDocumentClient, stack: string): ConfigTables {
  const scan = async (table: TableName): Promise<unknown[]> => {
    const rows: unknown[] = [];
    const input = { TableName: physicalTableName(stack, table), ConsistentRead: true };
    for await (const page of paginateScan({ client }, input)) rows.push(...(page.Items ?? []));
    return rows;
  };
  return {
    rows: () =>
      storeCall(async () => {
        const [channels, charges, plans, settings] = await Promise.all([
          scan('channels'),
          scan('charges'),
          scan('plans'),
          scan('settings'),
        ]);
        return { channels, charges, plans, settings };
      }),
  };
}
