import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { PutItemCommand, ResourceNotFoundException } from '@aws-sdk/client-dynamodb';
import { localStackId } from '../../../shared/adapters/dynamodb/operator-client.ts';
import { physicalTableName } from '../../../shared/tables/table-names.ts';
import type { Log } from '../host/log.ts';
import type { KeptLines } from './kept-lines.ts';
import { logGroupOf } from './logs-api.ts';

/** The functions whose lines have calls; `server` answers in their place. */
const answering = ['chat', 'responses', 'background', 'server'];

/** The stack's log: every line is kept, and goes on to `shown`. */
export const keepingLines =
  (kept: KeptLines, shown: Log): Log =>
  (line) => {
    const [, functionName = 'stack', text = line] = /^\[(\w+)\] (.*)$/.exec(line) ?? [];
    kept.add({ atMs: Date.now(), functionName, text });
    shown(line);
  };

/** Says beside the tables where log and relay are: the operators' tool knows the tables alone. */
export async function publishAddresses(
  client: DynamoDBClient,
  stack: string,
  { log, port }: { log: string; port: number },
): Promise<void> {
  const groups = answering.map((name) => ({ S: logGroupOf(stack, name) }));
  const put = new PutItemCommand({
    TableName: physicalTableName(stack, 'runtime'),
    Item: {
      id: { S: localStackId },
      endpoint: { S: log },
      groups: { L: groups },
      base_url: { S: `http://127.0.0.1:${port}/v1` },
    },
  });
  try {
    await client.send(put);
  } catch (error) {
    // A template without that table has no relay whose lines are searched.
    if (!(error instanceof ResourceNotFoundException)) throw error;
  }
}
