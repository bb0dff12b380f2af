import { Readable } from 'node:stream';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { localAccess } from '../unit/adapters/dynamodb/store.ts';

/** The cost of one command on one table, including indexes. */
export interface MeteredCommand {
  /** For example `UpdateItem quotas`. */
  name: string;
  units: number;
}

interface Consumed {
  TableName: string;
  CapacityUnits: number;
}

interface HttpRequest {
  headers: Record<string, string>;
  body: Uint8Array;
}

interface HttpReply {
  response: { body: AsyncIterable<Uint8Array> };
}

/** A client of the emulator that reports the cost of each command. Clients derived from it count here too. */
export function meteredClient(endpoint: string): { client: DynamoDBClient; commands: MeteredCommand[] } {
  const client = new DynamoDBClient({ ...localAccess, endpoint });
  const commands: MeteredCommand[] = [];
  const { requestHandler } = client.config;
  const handle = requestHandler.handle.bind(requestHandler);
  const metered = async (request: HttpRequest, options: never): Promise<unknown> => {
    const input = JSON.parse(new TextDecoder().decode(request.body)) as object;
    request.body = Buffer.from(JSON.stringify({ ...input, ReturnConsumedCapacity: 'INDEXES' }));
    request.headers['content-length'] = String(request.body.length);
    const reply = (await handle(request as never, options)) as unknown as HttpReply;
    const text = Buffer.concat(await Array.fromAsync(reply.response.body)).toString();
    const { ConsumedCapacity = [] } = JSON.parse(text) as { ConsumedCapacity?: Consumed | Consumed[] };
    const action = request.headers['x-amz-target']?.split('.')[1];
    for (const { TableName, CapacityUnits } of [ConsumedCapacity].flat())
      commands.push({ name: `${action} ${TableName.replace('relay-', '')}`, units: CapacityUnits });
    return { ...reply, response: Object.assign(reply.response, { body: Readable.from([text]) }) };
  };
  Object.assign(requestHandler, { handle: metered });
  return { client, commands };
}
