/** The text that `npm start` prints: what is ready, what to try, and trouble that a person must see. */
import type { Readable } from 'node:stream';
import { usualDataFolder, usualTables } from '../../ops/session/running-stack.ts';

/** The log goes to stderr, because stdout is reserved for the report of `npm start` when it is ready. */
export type StackLog = (line: string) => void;

export const logToStderr: StackLog = (line) => {
  process.stderr.write(`${line}\n`);
};

/** Logs the output of a process line by line. The last line may have no line break. */
export function logLines(stream: Readable, log: StackLog): void {
  let rest = '';
  stream
    .setEncoding('utf8')
    .on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) log(line);
    })
    .on('end', () => {
      if (rest !== '') log(rest);
    });
}

/** A start error that the caller can fix. It is shown as one line without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export interface Started {
  /** Address of the emulated front door: `http://127.0.0.1:8787`. */
  origin: string;
  dynamodbEndpoint: string;
  /** The log of the functions and of the stack itself. */
  logFile: string;
  /** The demo key; undefined when nothing was seeded. */
  key: string | undefined;
  /** People log in to the console at `/console/`. */
  hasConsole: boolean;
}

const tool = 'npx --no relay-ops';

/**
 * Prints six or eight lines, which fit a small terminal. Programs read the tables, the key, and the last line, which reports readiness.
 * @param dataFolder undefined: nothing is kept
 */
export function writeReadyText(
  { origin, dynamodbEndpoint, logFile, key, hasConsole }: Started,
  dataFolder: string | undefined,
  console: string | undefined,
): string {
  const body = '{"model":"demo-chat","stream":true,"messages":[{"role":"user","content":"Hello!"}]}';
  const isFound = dynamodbEndpoint === usualTables || dataFolder === usualDataFolder;
  const tables = isFound ? '' : `AWS_ENDPOINT_URL_DYNAMODB=${dynamodbEndpoint} `;
  const trials =
    key === undefined
      ? [`no keys yet, create one: ${tables}${tool} key new me`, `models and prices ${origin}/`]
      : [
          `key ${key}`,
          `curl -N ${origin}/v1/chat/completions -H 'Authorization: Bearer ${key}' ` +
            `-H 'Content-Type: application/json' -d '${body}'`,
          `${tables}${tool} customer show demo`,
          `account page ${origin}/account#${key}`,
        ];
  return [
    `tables ${dynamodbEndpoint}`,
    ...trials,
    ...(hasConsole ? [`operator console ${origin}/console/ (choose a user)`] : []),
    ...(console === undefined ? [] : [`operator console ${console}`]),
    `press Ctrl-C to stop; ${describeKeptData(dataFolder)}; log ${logFile}`,
    `relay ready on ${origin}/v1`,
    '',
  ].join('\n');
}

const slowStepMs = 3000;

/** Reports a startup step that takes over 3 s, and again every 3 s until the next step, so that it does not look like a hang. */
export function showSlowSteps(write: StackLog): { begin: (doing: string) => void; end: () => void } {
  let step = { doing: 'starting', sinceMs: performance.now() };
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - step.sinceMs) / 1000);
    if (seconds * 1000 >= slowStepMs) write(`${step.doing}, ${seconds} s`);
  }, slowStepMs);
  return {
    begin: (doing) => void (step = { doing, sinceMs: performance.now() }),
    end: () => clearInterval(timer),
  };
}

export const describeKeptData = (dataFolder: string | undefined): string =>
  dataFolder === undefined ? 'data is not saved' : `data is saved in ${dataFolder}`;

/** Lines that a person must see; all lines are in the log. */
const stackTrouble =
  /^environment \S+ pid \d+ ended|timed out after|^event lost|^schedule \S+ failed|reading the stream failed|^the log |FATAL ERROR/;
const functionTrouble = /^\[(\w+)\] \{.*"level":"(?:ERROR|FATAL)"/;

/** In a minute: a store that is down has a line for each call. */
const shownMax = 4;
const minuteMs = 60_000;

interface Screen {
  write: StackLog;
  columns: () => number;
  nowMs: () => number;
  /** The folder of the tables if its disk has no room left, which the store answers with a fault of its own. */
  fullFolder: () => string | undefined;
}

/**
 * Shows a person what is wrong, each on one line of the terminal and few of them.
 * @param logFile where the others are, once that is known
 */
export function showTrouble(screen: Screen, logFile: () => string): StackLog {
  let sinceMs = -Infinity;
  let shown = 0;
  return (line) => {
    const words = findTrouble(line, screen);
    if (words === undefined) return;
    if (screen.nowMs() - sinceMs > minuteMs) [sinceMs, shown] = [screen.nowMs(), 0];
    shown += 1;
    if (shown <= shownMax) screen.write(cut(words, screen.columns()));
    else if (shown === shownMax + 1) screen.write(`see ${logFile()} for more`);
  };
}

function findTrouble(line: string, { fullFolder }: Screen): string | undefined {
  if (stackTrouble.test(line)) return line;
  const [, name] = functionTrouble.exec(line) ?? [];
  if (name === undefined) return undefined;
  const [, message = 'an error'] = /"(?:message|errorMessage)":"([^"\\]*)/.exec(line) ?? [];
  if (message !== 'fault') return `${name}: ${message}`;
  const folder = fullFolder();
  if (folder !== undefined) return `${name}: the disk of ${folder} is full: free some space and try again`;
  const [, error = 'an error'] = /"error":"([^"\\]*)/.exec(line) ?? [];
  return `${name}: a call failed because of an error in the relay or its tables (${error})`;
}

const cut = (words: string, columns: number): string =>
  words.length <= columns ? words : `${words.slice(0, Math.max(columns - 3, 20))}...`;
