import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CreateTableCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  createStreamCalls,
  startEmulator,
  type Emulator,
  tendStreamRecords,
} from '../../infra/local/host/emulator.ts';
import { openCheckpoints, startMapping, type Mapping } from '../../infra/local/event-source-mapping.ts';
import type { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import { emulatorClient } from '../support/emulator.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'relay-stream-records-'));
/** The emulator's temporary folders are created here, separate from those of other tests. */
const temporary = mkdtempSync(path.join(tmpdir(), 'relay-stream-records-'));
const file = path.join(folder, 'dynamodb.sqlite');
const daySeconds = 86_400;
let emulator: Emulator | undefined;

beforeEach(() => {
  vi.stubEnv('TMPDIR', temporary);
});
afterAll(() => rmSync(temporary, { recursive: true }));
afterEach(async () => {
  vi.unstubAllEnvs();
  await emulator?.stop();
  emulator = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const start = async (dataFolder: string | undefined): Promise<Emulator> =>
  (emulator = await startEmulator({ dataFolder }));

const createTable = (endpoint: string, name = 'things') =>
  emulatorClient(endpoint).send(
    new CreateTableCommand({
      TableName: name,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
      StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
    }),
  );

const put = (endpoint: string, id: string) =>
  emulatorClient(endpoint).send(new PutItemCommand({ TableName: 'things', Item: { id: { S: id } } }));

/** Queries the emulator's file. */
function query(statement: string): Record<string, unknown>[] {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return database.prepare(statement).all();
  } finally {
    database.close();
  }
}

const mappingOf = (EventSourceArn: string, take: (event: unknown) => void): Mapping => ({
  id: 'mapping',
  properties: {
    EventSourceArn,
    StartingPosition: 'TRIM_HORIZON',
    BatchSize: 10,
    BisectBatchOnFunctionError: true,
    MaximumRetryAttempts: 1,
    FunctionResponseTypes: ['ReportBatchItemFailures'],
  },
  target: {
    settings: { name: 'reader' },
    call: async (event: unknown) => take(event),
  } as unknown as LocalFunction,
});

const recordsOf = (...ids: string[]) => ({
  Records: ids.map((id) => ({ dynamodb: { NewImage: { id: { S: id } } } })),
});

function hasRoomInMemory(): boolean {
  if (!existsSync('/dev/shm')) return false;
  const { bavail, bsize } = statfsSync('/dev/shm');
  return bavail * bsize >= 1024 ** 3;
}

/** Undefined for a file that was closed meanwhile. */
function readOpenFile(descriptor: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return undefined;
  }
}

const unkept = () => readdirSync(temporary);

const numbers = () =>
  query('SELECT sequence_number FROM _stream_records ORDER BY id').map((row) => row['sequence_number']);

describe('stream records of the emulator', () => {
  it.each([
    [
      'the next number, which each write needs',
      `SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = 'things'`,
    ],
    [
      'the next records, which each poll reads',
      `SELECT new_image FROM _stream_records WHERE table_name = 'things' AND shard_id = 'a'
       AND CAST(sequence_number AS INTEGER) > 5 ORDER BY CAST(sequence_number AS INTEGER) ASC LIMIT 10`,
    ],
    [
      'the ends of a shard, which each search for new shards reads',
      `SELECT MIN(sequence_number), MAX(sequence_number) FROM _stream_records
       WHERE table_name = 'things' AND shard_id = 'a'`,
    ],
  ])('are found by an index: %s', async (_what, statement) => {
    await start(folder);
    const plan = query(`EXPLAIN QUERY PLAN ${statement}`).map((row) => String(row['detail']));
    expect(plan.join()).toMatch(
      /SEARCH _stream_records USING (COVERING )?INDEX relay_stream_\w+ \(table_name=\?/,
    );
    expect(plan.join()).not.toContain('TEMP B-TREE');
  });

  it('are deleted after a day, but the numbers continue', async () => {
    const { endpoint } = await start(folder);
    await createTable(endpoint);
    for (const id of ['a', 'b', 'c']) await put(endpoint, id);
    const now = Math.floor(Date.now() / 1000);
    tendStreamRecords(file, now + daySeconds - 60);
    expect(numbers()).toHaveLength(3);
    const last = numbers().at(-1);
    tendStreamRecords(file, now + daySeconds + 60);
    expect(numbers()).toEqual([last]);
    await put(endpoint, 'd');
    expect(numbers()).toEqual([last, String(Number(last) + 1)]);
  });

  it.each([folder, undefined])('are numbered by table, without reading the stream: %s', async (kept) => {
    const { endpoint, newestRecord } = await start(kept);
    await Promise.all([createTable(endpoint), createTable(endpoint, 'others')]);
    const newest = () => ['things', 'others'].map((table) => newestRecord?.(table));
    expect(newest()).toEqual([null, null]);
    await put(endpoint, 'a');
    expect(newest()).toEqual([1, null]);
    await put(endpoint, 'b');
    expect(newest()).toEqual([2, null]);
  });

  it('are read again only after a new one', async () => {
    const { endpoint } = await start(undefined);
    const StreamArn = (await createTable(endpoint)).TableDescription?.LatestStreamArn ?? '';
    const call = vi.fn(createStreamCalls(endpoint));
    /** Number of reads before each request for the newest record. */
    const reads: number[] = [];
    const asked = Promise.withResolvers<void>();
    const events: unknown[] = [];
    let newest = 0;
    const stop = await startMapping(
      mappingOf(StreamArn, (event) => void events.push(event)),
      {
        callAws: call,
        checkpoints: openCheckpoints(undefined),
        log: () => {},
        newestRecord(table) {
          expect(table).toBe('things');
          reads.push(call.mock.calls.filter(([operation]) => operation === 'GetRecords').length);
          if (reads.length === 4) void put(endpoint, 'a').then(() => (newest = 1));
          if (events.length === 1 && reads.slice(-3).every((count) => count === 2)) asked.resolve();
          return newest;
        },
      },
    );
    await asked.promise;
    expect(events).toMatchObject([{ Records: [{ eventName: 'INSERT' }] }]);
    expect(reads.slice(0, 4)).toEqual([0, 1, 1, 1]);
    await stop();
  });

  it('that come within the batching window of a mapping are delivered together', async () => {
    const { endpoint } = await start(undefined);
    const StreamArn = (await createTable(endpoint)).TableDescription?.LatestStreamArn ?? '';
    const callAws = createStreamCalls(endpoint);
    const delivered = Promise.withResolvers<unknown>();
    const mapping = mappingOf(StreamArn, delivered.resolve);
    let reads = 0;
    await put(endpoint, 'a');
    const stop = await startMapping(
      { ...mapping, properties: { ...mapping.properties, MaximumBatchingWindowInSeconds: 0.01 } },
      {
        async callAws(operation, input) {
          const answer = await callAws(operation, input);
          if (operation === 'GetRecords' && (reads += 1) === 1) await put(endpoint, 'b');
          return answer;
        },
        checkpoints: openCheckpoints(undefined),
        log: () => {},
      },
    );
    expect(await delivered.promise).toMatchObject(recordsOf('a', 'b'));
    await stop();
  });

  it('that a run of the function has covered are not delivered', async () => {
    const { endpoint, newestRecord } = await start(undefined);
    const StreamArn = (await createTable(endpoint)).TableDescription?.LatestStreamArn ?? '';
    for (const id of ['a', 'b']) await put(endpoint, id);
    const lastCoveredRecord = Number(newestRecord?.('things'));
    await put(endpoint, 'c');
    const delivered = Promise.withResolvers<unknown>();
    const stop = await startMapping(
      { ...mappingOf(StreamArn, delivered.resolve), lastCoveredRecord },
      { callAws: createStreamCalls(endpoint), checkpoints: openCheckpoints(undefined), log: () => {} },
    );
    expect(await delivered.promise).toMatchObject(recordsOf('c'));
    await stop();
  });

  it.runIf(hasRoomInMemory())('of temporary tables are in memory, unless TMPDIR is set', async () => {
    vi.stubEnv('TMPDIR', undefined);
    await start(undefined);
    const opened = readdirSync('/proc/self/fd').flatMap((name) => readOpenFile(name) ?? []);
    expect(opened).toContainEqual(expect.stringMatching(/^\/dev\/shm\/relay-tables-\w+\/dynamodb\.sqlite$/));
    expect(unkept()).toEqual([]);
  });

  it('of temporary tables are deleted with the emulator', async () => {
    const before = new Set(unkept());
    await start(undefined);
    const [mine, ...more] = unkept().filter((name) => !before.has(name));
    expect([mine, more]).toEqual([expect.any(String), []]);
    await emulator?.stop();
    expect(unkept()).not.toContain(mine);
  });
});
