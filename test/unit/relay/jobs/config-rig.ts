import { DeleteCommand, GetCommand } from '@aws-sdk/lib-dynamodb';
import type { TableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { createConfigPublisher } from '../../../../shared/relay/jobs/config-publisher.ts';
import { createConfigTables, createRowMarks } from '../../../../shared/adapters/dynamodb/row-tables.ts';
import type { Pointer, SnapshotStore, SecretCheck } from '../../../../shared/relay/ports/config-store.ts';
import { createSnapshotStore } from '../../../../shared/adapters/dynamodb/config-store.ts';
import { createLearnedFactsReader } from '../../../../shared/adapters/dynamodb/runtime-source.ts';
import { tableSchemas } from '../../../../shared/tables/table-schemas.ts';
import { physicalNameOf, type TableName } from '../../../../shared/tables/table-names.ts';
import type { ConfigRows } from '../../../../shared/config/rows/read-table.ts';
import { recordedLog, type RecordedLog } from '../../adapters/telemetry/recorded-log.ts';
import { countedClient, type CountedClient } from '../../adapters/dynamodb/store.ts';

export interface CompilerOptions {
  /** Wraps the compiler's tables. */
  tables?: (real: TableClient) => TableClient;
  /** Wraps the compiler's snapshots. */
  snapshots?: (real: SnapshotStore) => SnapshotStore;
  /** Runs after the tables were scanned. */
  afterScan?: (rows: ConfigRows) => Promise<void>;
  /** Absent: every secret can be used. */
  secretCheck?: SecretCheck;
  /** Loopback addresses are allowed. */
  local?: boolean;
}

export interface Compiler {
  compile(): Promise<Pointer>;
  store: CountedClient;
  snapshots: SnapshotStore;
  log: RecordedLog;
  /** The counts that the metrics were given. */
  counted: object[];
  pauses: number;
}

/** Starts a compiler on the test's emulator, like another environment of the function. */
export function startCompiler(options: CompilerOptions = {}): Compiler {
  const store = countedClient();
  const tables = options.tables?.(store.tables) ?? store.tables;
  const log = recordedLog();
  const clock = { now: () => Date.now() };
  const real = createSnapshotStore(tables, 'relay', clock);
  const snapshots = options.snapshots?.(real) ?? real;
  const counted: object[] = [];
  const compiler: Compiler = { compile: () => keep(), store, snapshots, log, counted, pauses: 0 };
  const keep = createConfigPublisher({
    clock: {
      ...clock,
      sleep: async () => {
        compiler.pauses += 1;
      },
    },
    random: { next: () => 0.5 },
    log,
    metrics: {
      compiled: (counts) => void counted.push(counts),
      badRows: (count) => void counted.push({ count }),
      failed: () => void counted.push({ failed: true }),
    },
    local: options.local ?? false,
    envSecrets: undefined,
    snapshots,
    learned: createLearnedFactsReader({ client: tables, clock, stack: 'relay' }),
    tables: {
      async rows() {
        const rows = await createConfigTables(tables, 'relay').rows();
        await options.afterScan?.(rows);
        return rows;
      },
    },
    marks: createRowMarks({ client: tables, stack: 'relay', log }),
    secretCheck: options.secretCheck ?? { unusable: async () => new Map() },
  });
  return compiler;
}

const keyOf = (table: TableName, key: string | number) => ({
  TableName: physicalNameOf('relay', table),
  Key: { [tableSchemas[table].partitionKey.name]: key },
});

export const readRow = async ({ client }: CountedClient, table: TableName, key: string | number) =>
  (await client.send(new GetCommand({ ...keyOf(table, key), ConsistentRead: true }))).Item;

export const deleteRow = async ({ client }: CountedClient, table: TableName, key: string | number) => {
  await client.send(new DeleteCommand(keyOf(table, key)));
};

export const channelRow = (attributes: Record<string, unknown> = {}) => ({
  id: 'main',
  endpoint: 'https://api.example.com/v1',
  models: ['gpt-4o'],
  state: true,
  ...attributes,
});

export const chargeRow = { id: 1, type: 'token-billing', models: ['gpt-4o'], input: 0.01, output: 0.02 };
