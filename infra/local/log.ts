/**
 * The log of a stack: the lines of its functions and its own, kept in a file, and CloudWatch Logs emulated on them as far as the
 * operators' tool asks it (StartQuery, GetQueryResults, DescribeLogGroups).
 */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import type { AwsCalls } from '../../shared/adapters/aws/aws-calls.ts';
import { cloneFolder } from '../ops/session/running-stack.ts';
import { localStackId } from '../../shared/adapters/dynamodb/operator-store.ts';
import { physicalNameOf } from '../../shared/tables/table-names.ts';
import { callingFunctions } from '../stack/constructs/function-descriptions.ts';
import { type Listening, listenOnFreePort, createProgramServer } from './host/loopback.ts';
import { asRecord, parseJson, textIn, valueAt } from '../../shared/wire/json.ts';
import type { StackLog } from './host/messages.ts';

/** A line of a function's log, or of the stack's own. */
interface KeptLine {
  atMs: number;
  functionName: string;
  text: string;
}

/** The log has two files; the older one is deleted when the newer one is full. */
const partBytesMax = 16 * 1024 * 1024;
/** Lines that are kept in memory too. */
const recentMax = 2_000;
/** Lambda's limit of a log event is 1 MB; lines of functions are some thousand bytes at most. */
const lineLengthMax = 64 * 1024;

export interface KeptLines {
  /** The file with the newest lines. */
  file: string;
  add(line: KeptLine): void;
  /** Oldest first. */
  all(): KeptLine[];
  /** Those from a time on, and some before it. A page that is watched asks every second: of all, that takes 0.3 s of 32 MB. */
  since(fromMs: number): KeptLine[];
  close(): void;
}

interface KeptOptions {
  /** Called when lines cannot be written. */
  warn: StackLog;
  bytesMax?: number;
}

/**
 * Goes on when lines cannot be written (a full disk) and when somebody removes the file. Throws when it cannot be opened first.
 * @param folder undefined: nothing outlives the process
 */
export function createKeptLines(
  folder: string | undefined,
  { warn, bytesMax = partBytesMax }: KeptOptions,
): KeptLines {
  const place =
    folder === undefined ? mkdtempSync(path.join(tmpdir(), 'relay-log-')) : path.join(folder, 'log');
  const newer = path.join(place, 'functions.log');
  const older = path.join(place, 'functions.1.log');
  let bytes = statSync(newer, { throwIfNoEntry: false })?.size ?? 0;
  let lost = 0;
  let isClosed = false;
  /** Opens the file for each line, which takes microseconds: a file that somebody removes is made anew. */
  const append = (text: string): void => {
    mkdirSync(place, { recursive: true });
    appendFileSync(newer, text, { mode: 0o600 });
    lost = 0;
    bytes += Buffer.byteLength(text);
    if (bytes < bytesMax) return;
    renameSync(newer, older);
    bytes = 0;
  };
  const close = (): void => {
    isClosed = true;
    if (folder === undefined) rmSync(place, { recursive: true, force: true });
  };
  append('');
  const all = (): KeptLine[] => [older, newer].flatMap(readLines);
  let recent: KeptLine[] = [];
  // Also when the process cannot wait for the end of everything.
  process.once('exit', close);
  return {
    file: newer,
    add({ atMs, functionName, text }) {
      if (isClosed) return;
      recent.push({ atMs, functionName, text: text.slice(0, lineLengthMax) });
      if (recent.length > 2 * recentMax) recent = recent.slice(-recentMax);
      // The line before may have been written in part.
      const before = lost > 0 ? `\n(${lost} lines could not be written)\n` : '';
      try {
        append(`${before}${new Date(atMs).toISOString()} ${functionName} ${text.slice(0, lineLengthMax)}\n`);
      } catch (error) {
        lost += 1;
        const { code } = error as NodeJS.ErrnoException;
        if (lost === 1) warn(`the log ${newer} cannot be written (${code}): its lines are lost until it can`);
      }
    },
    all,
    since: (fromMs) => ((recent[0]?.atMs ?? Infinity) < fromMs ? recent : all()),
    close() {
      process.off('exit', close);
      close();
    },
  };
}

/** The last line of a stack that was killed may be a part of one. */
function readLines(file: string): KeptLine[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, at = '', functionName = '', text = ''] = /^(\S+Z) (\S+) (.*)$/.exec(line) ?? [];
      const atMs = Date.parse(at);
      return Number.isNaN(atMs) ? [] : [{ atMs, functionName, text }];
    });
}

/** The stack's log: every line is kept, and goes on to `shown`. */
export const keepLines =
  (kept: KeptLines, shown: StackLog): StackLog =>
  (line) => {
    const [, functionName = 'stack', text = line] = /^\[(\w+)\] (.*)$/.exec(line) ?? [];
    kept.add({ atMs: Date.now(), functionName, text });
    shown(line);
  };

const logGroupOf = (stack: string, functionName: string): string => `${stack}-${functionName}`;

/** The functions whose lines have calls; `server` answers in their place. */
const answering: readonly string[] = [...callingFunctions, 'server'];

/** Says beside the tables where log and relay are: the operators' tool knows the tables alone. */
export async function publishAddresses(
  callAws: AwsCalls,
  stack: string,
  { log, port }: { log: string; port: number },
): Promise<void> {
  const groups = answering.map((name) => ({ S: logGroupOf(stack, name) }));
  const put = {
    TableName: physicalNameOf(stack, 'runtime'),
    Item: {
      id: { S: localStackId },
      endpoint: { S: log },
      groups: { L: groups },
      base_url: { S: `http://127.0.0.1:${port}/v1` },
      clone: { S: cloneFolder() },
    },
  };
  try {
    await callAws('PutItem', put);
  } catch (error) {
    // A template without that table has no relay whose lines are searched.
    if ((error as Error).name !== 'ResourceNotFoundException') throw error;
  }
}

interface Asked {
  logGroupNamePrefix: string;
  queryId: string;
  logGroupNames: string[];
  startTime: number;
  endTime: number;
  queryString: string;
}

export function startLogsApi(stack: string, kept: KeptLines): Promise<Listening> {
  const answer = (action: string, asked: Asked): object | undefined => {
    switch (action) {
      case 'StartQuery':
        // Its id is the query, which runs when its results are asked for.
        return queryOf(asked.queryString) && { queryId: JSON.stringify(asked) };
      case 'GetQueryResults':
        return resultsOf(JSON.parse(asked.queryId) as Asked, stack, kept);
      case 'DescribeLogGroups':
        return { logGroups: groupsOf(stack, kept.all(), asked.logGroupNamePrefix) };
      default:
        return undefined;
    }
  };
  const answerCall = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { authorization = '', 'x-amz-target': target } = request.headers;
    const asked = (await json(request)) as Asked;
    const isSigned = authorization.startsWith('AWS4-HMAC-SHA256 ');
    const body = isSigned ? answer(String(target).replace('Logs_20140328.', ''), asked) : undefined;
    response
      .writeHead(body ? 200 : 400, { 'content-type': 'application/x-amz-json-1.1' })
      .end(JSON.stringify(body ?? { __type: 'InvalidParameterException' }));
  };
  return listenOnFreePort(createProgramServer(answerCall));
}

function groupsOf(stack: string, lines: KeptLine[], prefix: string): object[] {
  const groups = Map.groupBy(lines, ({ functionName }) => logGroupOf(stack, functionName));
  return [...groups]
    .filter(([name]) => name.startsWith(prefix))
    .map(([logGroupName, own]) => ({
      logGroupName,
      storedBytes: bytesOf(own),
      creationTime: own[0]?.atMs ?? 0,
    }));
}

function resultsOf(asked: Asked, stack: string, kept: KeptLines): object | undefined {
  const query = queryOf(asked.queryString);
  const fromMs = asked.startTime * 1000;
  const scanned = kept
    .since(fromMs)
    .filter(
      ({ atMs, functionName }) =>
        atMs >= fromMs &&
        atMs <= asked.endTime * 1000 &&
        asked.logGroupNames.includes(logGroupOf(stack, functionName)),
    );
  return (
    query && {
      status: 'Complete',
      results: query(scanned),
      statistics: { bytesScanned: bytesOf(scanned) },
    }
  );
}

const bytesOf = (lines: KeptLine[]): number => lines.reduce((sum, { text }) => sum + text.length, 0);

type Fields = Readonly<Record<string, unknown>>;

/** Lines that are not of the relay's own log have no fields. */
const parseFields = (text: string): Fields => asRecord(parseJson(text));

type Results = { field: string; value: string }[][];

/** A query as the operators' tool writes it, a list or counts; undefined for any other. */
function queryOf(text: string): ((lines: KeptLine[]) => Results) | undefined {
  const [, filter = '', ...rest] =
    /^(?:fields @timestamp, @message\n\| )?filter (.+)\n\| (?:sort @timestamp desc\n\| limit (\d{1,5})|stats count\(\*\) as calls by bin\((\d{1,2}[smh])\), (\w+))$/.exec(
      text,
    ) ?? [];
  const [limit, bin = '', name = ''] = rest;
  const conditions = filter.split(/ and (?=[\w@.`-]+ (?:in|like|>|=) )/).map(conditionOf);
  if (conditions.includes(undefined)) return undefined;
  const matches = ({ text: line }: KeptLine): boolean => {
    const fields = parseFields(line);
    return conditions.every((holds) => holds?.(fields));
  };
  return (lines) =>
    limit === undefined
      ? countsOf(lines.filter(matches), bin, name)
      : lines
          .filter(matches)
          .toReversed()
          .slice(0, Number(limit))
          .map(({ atMs, text: line }) => [
            { field: '@timestamp', value: timeText(atMs) },
            { field: '@message', value: line },
          ]);
}

function countsOf(lines: KeptLine[], bin: string, field: string): Results {
  const stepMs = Number(bin.slice(0, -1)) * ({ s: 1000, m: 60_000 }[bin.slice(-1)] ?? 3_600_000);
  const startOf = (atMs: number): string => timeText(Math.floor(atMs / stepMs) * stepMs);
  const groups = Map.groupBy(
    lines,
    ({ atMs, text }) => `${startOf(atMs)}|${textIn(parseFields(text)[field]) ?? ''}`,
  );
  return [...groups].map(([key, { length }]) => {
    const [start = '', value = ''] = key.split('|');
    return [
      { field: `bin(${bin})`, value: start },
      { field, value },
      { field: 'calls', value: String(length) },
    ];
  });
}

const timeText = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');

function conditionOf(text: string): ((fields: Fields) => boolean) | undefined {
  const [, name = '', operator, operand = ''] = /^`?([\w.-]+)`? (in|>|=|like) (.+)$/.exec(text) ?? [];
  if (operator === 'in') {
    const accepted = new Set<unknown>([...operand.matchAll(/"([^"\\]*)"/g)].map(([, value]) => value));
    return (fields) => accepted.has(valueAt(fields, name.split('.')));
  }
  if (operator === '=') return ({ [name]: value }) => value === Number(operand);
  if (operator === '>') return (fields) => Number(fields[name]) > Number(operand);
  const prefix = /^\/\^([0-9a-z]+)\/$/.exec(operand)?.[1];
  if (prefix === undefined) return undefined;
  return ({ [name]: value }) => typeof value === 'string' && value.startsWith(prefix);
}
