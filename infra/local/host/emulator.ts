/**
 * Starts the DynamoDB emulator on a hidden port, calls it, keeps its data in the data folder, and removes expired stream
 * records. Must not import the SDK: loading and warming it up took a third of the start of the local stack.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, constants, mkdirSync, mkdtempSync, existsSync, statfsSync, statSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { createAwsCalls, dynamodb, type AwsCalls } from '../../../shared/adapters/aws/aws-calls.ts';
import { findFreePort } from './loopback.ts';
import { localAccess, type LocalOptions } from './local-options.ts';
import { StartError } from './messages.ts';
import { request } from '../../../shared/adapters/system/node-http.ts';

/** A running DynamoDB at `endpoint`. `ended` resolves when it stops unexpectedly. */
export interface Emulator {
  endpoint: string;
  ended: Promise<string>;
  /** Returns the number of a table's newest stream record. Undefined if the emulator's file can't be read. */
  newestRecord?: ((table: string) => unknown) | undefined;
  stop(): Promise<void>;
}

/**
 * Runs a program and kills it when stdin closes, so that the emulator ends with the local stack even after
 * `kill -9`. SIGKILL loses no data, because the emulator's store is a write-ahead log. Afterwards it removes the folder
 * of tables that are not to be kept. It has its own process group: a Ctrl-C would reach the shell before any trap is set.
 */
const endsWithStdin = `
  exec 3<&0
  unkept=$1
  shift
  "$@" </dev/null 3<&- &
  program=$!
  { read -r _ <&3; kill -9 $program; } 2>/dev/null &
  watch=$!
  wait $program
  code=$?
  kill $watch 2>/dev/null
  if [ -n "$unkept" ]; then rm -rf "$unkept"; fi
  exit $code`;

const startTimeoutMs = 10_000;
const missing =
  'no DynamoDB emulator for this system: put dynoxide (https://github.com/nubo-db/dynoxide) on the PATH, ' +
  'or set DYNAMODB_ENDPOINT to a running DynamoDB Local';

/** Starts dynoxide, or uses the configured endpoint. Throws StartError: no emulator found. */
export async function startEmulator(
  options: Pick<LocalOptions, 'dataFolder' | 'dynamodbEndpoint'>,
): Promise<Emulator> {
  if (options.dynamodbEndpoint !== undefined)
    return { endpoint: options.dynamodbEndpoint, ended: new Promise(() => {}), stop: async () => {} };
  const binary = findBinary();
  if (binary === undefined) throw new StartError(missing);
  for (let attempt = 1; ; attempt += 1) {
    const place = await chooseHiddenPlace();
    try {
      return await launch(binary, place, options.dataFolder);
    } catch (error) {
      // Another process may take the free port first.
      if (attempt === 3) throw error;
    }
  }
}

interface Place {
  host: string;
  port: number;
}

/**
 * The emulator answers every page of every site, so it listens where none finds it: at one of 16 million addresses of this
 * machine, on one of 28,000 ports. Where only 127.0.0.1 is an address (macOS), the port alone hides it.
 */
async function chooseHiddenPlace(): Promise<Place> {
  const host = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
  try {
    return { host, port: await findFreePort(host) };
  } catch {
    return { host: '127.0.0.1', port: await findFreePort('127.0.0.1') };
  }
}

async function launch(
  binary: string,
  { host, port }: Place,
  dataFolder: string | undefined,
): Promise<Emulator> {
  if (dataFolder !== undefined) mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
  // A file in any case: the emulator's memory cannot be given the indexes that keep its writes fast.
  const unkept =
    dataFolder === undefined ? mkdtempSync(path.join(chooseUnkeptFolder(), 'relay-tables-')) : '';
  const file = path.join(dataFolder ?? unkept, 'dynamodb.sqlite');
  const serve = ['serve', '--host', host, '--port', String(port), '--db-path', file];
  const child = spawn('/bin/sh', ['-c', endsWithStdin, 'sh', unkept, binary, ...serve], {
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true,
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2000);
  });
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(errors.trim() || `exit ${signal ?? code}`));
  });
  const endpoint = `http://${host}:${port}`;
  let records: DatabaseSync | undefined;
  const stop = async () => {
    records?.[Symbol.dispose]();
    child.stdin.destroy();
    await exited;
  };
  const failed = exited.then((reason) => {
    throw new StartError(`the DynamoDB emulator did not start: ${reason}`);
  });
  try {
    await Promise.race([failed, waitUntilAnswering(endpoint)]);
    records = tryToTend(file);
  } catch (error) {
    await stop();
    throw error;
  }
  failed.catch(() => {});
  return { endpoint, ended: exited, newestRecord: records && createRecordWatch(records), stop };
}

const memoryFolder = '/dev/shm';
/** A container has only 64 MB there by default, which a long test run fills. */
const memoryBytesMin = 1024 ** 3;

/** Prefers memory, because writing to a disk took a quarter of the emulator's processor time. `TMPDIR` overrides it. */
function chooseUnkeptFolder(): string {
  if (process.env['TMPDIR'] !== undefined || !existsSync(memoryFolder)) return tmpdir();
  const { bavail, bsize } = statfsSync(memoryFolder);
  return bavail * bsize < memoryBytesMin ? tmpdir() : memoryFolder;
}

/** Another release of the emulator may store stream records differently. Then the stack is only slower. */
function tryToTend(file: string): DatabaseSync | undefined {
  try {
    tendStreamRecords(file, Math.floor(Date.now() / 1000));
    return new DatabaseSync(file, { readOnly: true, timeout: busyTimeoutMs });
  } catch {
    return undefined;
  }
}

/** A query takes 3 µs, a read of the stream 1 ms: 44 reads a second kept an idle stack at 6 % of a processor. */
function createRecordWatch(records: DatabaseSync): (table: string) => unknown {
  const newest = records.prepare(
    'SELECT MAX(CAST(sequence_number AS INTEGER)) AS number FROM _stream_records WHERE table_name = ?',
  );
  return (table) => newest.get(table)?.['number'];
}

async function waitUntilAnswering(endpoint: string): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  for (;;) {
    try {
      // Not `fetch`: its first call takes 20 ms of processor time.
      const asked = request(endpoint, { timeout: 1000 }).on('timeout', () => asked.destroy());
      const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage];
      answer.resume();
      return;
    } catch {
      if (Date.now() > deadline)
        throw new StartError(`the DynamoDB emulator does not respond at ${endpoint}`);
      await sleep(10);
    }
  }
}

function findBinary(): string | undefined {
  const installed = path.resolve(import.meta.dirname, '../../../node_modules/@dynoxide/linux-x64/dynoxide');
  const onPath = (process.env['PATH'] ?? '')
    .split(path.delimiter)
    .map((folder) => path.join(folder, 'dynoxide'));
  const forThisSystem = process.platform === 'linux' && process.arch === 'x64' ? [installed] : [];
  return [...forThisSystem, ...onPath].find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** DynamoDB keeps stream records for 24 hours. */
const keptSeconds = 24 * 60 * 60;
/** How long a statement waits while the emulator writes. */
const busyTimeoutMs = 5_000;

/**
 * The emulator numbers each stream record by the largest number of its table, which it looks for among all records:
 * without an index a write takes 0.5 ms longer for each 1,000 records, and so does each read. It never deletes records
 * either. To be called on the emulator's file when the emulator has created it.
 * The newest record of each table stays, because the next number follows from it.
 * @throws an error of SQLite: the file is one of an emulator whose tables have other names
 */
export function tendStreamRecords(file: string, nowSeconds: number): void {
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  try {
    database.exec(`
      CREATE INDEX IF NOT EXISTS relay_stream_order
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
      CREATE INDEX IF NOT EXISTS relay_stream_ends
        ON _stream_records (table_name, shard_id, sequence_number)`);
    database
      .prepare(
        `DELETE FROM _stream_records
         WHERE created_at < ? AND id NOT IN (SELECT MAX(id) FROM _stream_records GROUP BY table_name)`,
      )
      .run(nowSeconds - keptSeconds);
  } finally {
    database.close();
  }
}

/** SQLite's code for a file that another process has locked. */
const busy = 5;

/**
 * Takes the folder for one stack: two emulators on one file would destroy it. The system itself takes the lock from a
 * process that ends, however it does. Throws StartError: another stack has it, or it cannot be written.
 * @returns gives it back
 */
export function claimDataFolder(folder: string | undefined): () => void {
  if (folder === undefined) return () => {};
  try {
    makeFolder(path.resolve(folder));
    accessSync(folder, constants.W_OK);
    const lock = new DatabaseSync(path.join(folder, 'in-use'), { timeout: 0 });
    try {
      lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      lock.close();
      throw error;
    }
    return () => lock.close();
  } catch (error) {
    const { code, errcode } = error as NodeJS.ErrnoException & { errcode?: number };
    const named = `RELAY_DATA is ${folder}`;
    if (errcode === busy)
      throw new StartError(
        `${named}, which another stack is using: stop it, or set RELAY_DATA to another folder`,
      );
    throw new StartError(
      `${named}, which cannot be written (${errcode === undefined ? code : `SQLite ${errcode}`})`,
    );
  }
}

/** Not by `recursive`: where the system lets nobody make a folder (`/proc`), Node then tries for ever. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = path.dirname(folder);
  if (!existsSync(parent)) makeFolder(parent);
  mkdirSync(folder, { mode: 0o700 });
}

/** The emulator is on the same machine, which may be busy. */
const times = { attempts: 4, connectMsMax: 10_000, tryMsMax: 30_000 };

export const createTableCalls = (endpoint: string): AwsCalls =>
  createAwsCalls({ service: dynamodb, aws: localAccess, endpoint, ...times });

/** Returns records in the format of Lambda's events, with bytes in base64. */
export const createStreamCalls = (endpoint: string): AwsCalls =>
  createAwsCalls({
    service: { ...dynamodb, target: 'DynamoDBStreams_20120810' },
    aws: localAccess,
    endpoint,
    ...times,
  });
