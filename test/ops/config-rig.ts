import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DeleteCommand, DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { systemClock } from '../../shared/adapters/system/node-ports.ts';
import { createConfigPublisher } from '../../shared/relay/jobs/config-publisher.ts';
import { createConfigTables, createRowMarks } from '../../shared/adapters/dynamodb/row-tables.ts';
import { createSnapshotStore } from '../../shared/adapters/dynamodb/config-store.ts';
import { emulatorClient, emulatorTables, startEmulator, type Emulator } from '../support/emulator.ts';
import { runOps, type OpsRun, type Words } from './run-ops.ts';

type Row = Record<string, unknown>;

/** Tables on an emulator, with the relay's own configuration compiler and the operators' tool. */
export class ConfigRig {
  readonly #emulator: Emulator;
  readonly #documents: DynamoDBDocumentClient;
  readonly #folder = mkdtempSync(join(tmpdir(), 'relay-config-'));
  /** Runs the compiler once, as a stream or the schedule would. */
  readonly compile: () => Promise<unknown>;

  private constructor(emulator: Emulator) {
    this.#emulator = emulator;
    const documents = DynamoDBDocumentClient.from(emulatorClient(emulator.endpoint));
    this.#documents = documents;
    const tables = emulatorTables(emulator.endpoint);
    const log = { request: () => undefined, event: () => undefined, fault: () => undefined };
    this.compile = createConfigPublisher({
      clock: systemClock,
      random: { next: () => 0.5 },
      log,
      metrics: { compiled: () => undefined, badRows: () => undefined, failed: () => undefined },
      local: true,
      envSecrets: ['*'],
      snapshots: createSnapshotStore(tables, 'relay', systemClock),
      learned: { all: async () => [] },
      tables: createConfigTables(tables, 'relay'),
      marks: createRowMarks({ client: tables, stack: 'relay', log }),
      secretCheck: { unusable: async () => new Map() },
    });
  }

  static async start(emulator?: Emulator): Promise<ConfigRig> {
    return new ConfigRig(emulator ?? (await startEmulator()));
  }

  get endpoint(): string {
    return this.#emulator.endpoint;
  }

  async stop(): Promise<void> {
    this.#documents.destroy();
    rmSync(this.#folder, { recursive: true });
    await this.#emulator.stop();
  }

  async ops(words: Words, input?: string, environment: Record<string, string> = {}): Promise<OpsRun> {
    return runOps(words, { AWS_ENDPOINT_URL_DYNAMODB: this.endpoint, ...environment }, input);
  }

  /** Runs a command while the compiler runs repeatedly, as it does after edits. */
  async opsWithCompiler(words: Words): Promise<OpsRun> {
    const running = { command: true };
    const run = this.ops(words).finally(() => {
      running.command = false;
    });
    while (running.command) await this.compile();
    return run;
  }

  async put(table: string, ...rows: Row[]): Promise<void> {
    for (const Item of rows)
      await this.#documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));
  }

  async row(table: string, Key: Row): Promise<Row | undefined> {
    const command = new GetCommand({ TableName: `relay-${table}`, Key, ConsistentRead: true });
    return (await this.#documents.send(command)).Item;
  }

  async remove(table: string, Key: Row): Promise<void> {
    await this.#documents.send(new DeleteCommand({ TableName: `relay-${table}`, Key }));
  }

  /** Writes a file with this content. Returns its path. */
  file(name: string, content?: unknown): string {
    const path = join(this.#folder, name);
    if (content !== undefined)
      writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  }

  readFile = (name: string): string => readFileSync(this.file(name), 'utf8');
}
