import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, PutCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts';
import type { TableName } from '../../shared/tables/table-names.ts';
import { emulatorClient, startEmulator } from './emulator.ts';
import { startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts';

export type Row = Record<string, unknown>;

/**
 * The start configuration of a stack with a failing store: tables behind a fault proxy, and a scripted upstream with
 * one model.
 */
export interface FaultedTables {
  store: FaultProxy;
  upstream: ScriptedUpstream;
  /** The store without faults. */
  endpoint: string;
  client: DynamoDBClient;
  put: (table: TableName, row: object) => Promise<unknown>;
  rows: (table: TableName) => Promise<Row[]>;
  stop: () => Promise<void>;
}

/** @param seed seed of the faults */
export async function startFaultedTables(seed: number): Promise<FaultedTables> {
  await using started = new AsyncDisposableStack();
  const emulator = started.adopt(await startEmulator(), (running) => running.stop());
  const upstream = started.adopt(await startScriptedUpstream(), (running) => running.close());
  const proxy = await startFaultProxy({ upstream: emulator.endpoint, seed });
  const store = started.adopt(proxy, (running) => running.close());
  const client = started.adopt(emulatorClient(emulator.endpoint), (running) => running.destroy());
  const documents = DynamoDBDocumentClient.from(client);
  const put = (table: TableName, row: object) =>
    documents.send(new PutCommand({ TableName: `relay-${table}`, Item: row as Row }));
  await put('channels', { id: 'main', endpoint: upstream.endpoint, models: ['m'], state: true });
  const running = started.move();
  return {
    store,
    upstream,
    endpoint: emulator.endpoint,
    client,
    put,
    rows: async (table) => {
      const found: Row[] = [];
      let from: Row | undefined;
      do {
        const page = { TableName: `relay-${table}`, ConsistentRead: true, ExclusiveStartKey: from };
        const { Items = [], LastEvaluatedKey } = await documents.send(new ScanCommand(page));
        found.push(...Items);
        from = LastEvaluatedKey;
      } while (from);
      return found;
    },
    stop: () => running.disposeAsync(),
  };
}

export const sumOf = (rows: Row[], name: string): number =>
  rows.reduce((total, row) => total + Number(row[name] ?? 0), 0);

/** The test's own time-out limits it. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50));
}
