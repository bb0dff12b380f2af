import { PutCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { documentClient } from '../../../support/sdk-tables.ts';
import { connectTables } from '../../../../functions/compose/late-adapters.ts';
import type { TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import type { AwsAccess } from '../../../../shared/adapters/system/environment.ts';
import { physicalNameOf, type TableName } from '../../../../shared/tables/table-names.ts';

export const localAccess = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
} satisfies AwsAccess;

/**
 * The client of answering functions, by their setting; a hundred parallel calls may take longer than a caller would
 * wait.
 * @param awsClient `sdk`: AWS's own
 */
export const hotClient = (awsClient?: 'sdk'): TableClient =>
  connectTables({ aws: localAccess, awsClient }, { connectMsMax: 30_000, tryMsMax: 30_000 });

export interface CountedClient {
  client: DynamoDBDocumentClient;
  /** The product's client, for stores without middlewares on their calls. */
  tables: TableClient;
  /** The calls so far, as `GetItem relay-keys`; those of a batch by their tables. */
  calls: string[];
  put(table: TableName, row: Record<string, unknown>): Promise<void>;
}

/** The functions' own client, on the endpoint in `AWS_ENDPOINT_URL_DYNAMODB`, with its calls counted. */
export function countedClient(): CountedClient {
  const client = documentClient(localAccess);
  const calls: string[] = [];
  const count = (operation: string, input: object): void => {
    const { TableName, RequestItems = {} } = input as { TableName?: string; RequestItems?: object };
    calls.push(`${operation} ${TableName ?? Object.keys(RequestItems).join(' ')}`);
  };
  client.middlewareStack.add(
    (next, context) => (args) => {
      count(String(context['commandName']).replace('Command', ''), args.input);
      return next(args);
    },
    { step: 'initialize' },
  );
  const hot = hotClient();
  const tables: TableClient = {
    call(operation, input, options) {
      count(operation, input);
      return hot.call(operation, input, options);
    },
  };
  const put = async (table: TableName, Item: Record<string, unknown>) => {
    await client.send(new PutCommand({ TableName: physicalNameOf('relay', table), Item }));
    calls.pop();
  };
  return { client, tables, calls, put };
}
