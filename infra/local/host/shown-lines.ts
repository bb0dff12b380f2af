import type { Log } from './log.ts';

/** Of these a person must know; everything is in the log. */
const stackTrouble =
  /^environment \S+ pid \d+ ended|timed out after|^event lost|^schedule \S+ failed|reading the stream failed|^the log |FATAL ERROR/;
const functionTrouble = /^\[(\w+)\] \{.*"level":"(?:ERROR|FATAL)"/;

/** In a minute: a store that is down has a line for each call. */
const shownMax = 4;
const minuteMs = 60_000;

interface Screen {
  write: Log;
  columns: () => number;
  nowMs: () => number;
  /** The folder of the tables if its disk has no room left, which the store answers with a fault of its own. */
  fullFolder: () => string | undefined;
}

/**
 * Shows a person what is wrong, each on one line of the terminal and few of them.
 * @param logFile where the others are, once that is known
 */
export function shownTrouble(screen: Screen, logFile: () => string): Log {
  let sinceMs = -Infinity;
  let shown = 0;
  return (line) => {
    const words = troubleIn(line, screen);
    if (words === undefined) return;
    if (screen.nowMs() - sinceMs > minuteMs) [sinceMs, shown] = [screen.nowMs(), 0];
    shown += 1;
    if (shown <= shownMax) screen.write(cut(words, screen.columns()));
    else if (shown === shownMax + 1) screen.write(`more is in ${logFile()}`);
  };
}

function troubleIn(line: string, { fullFolder }: Screen): string | undefined {
  if (stackTrouble.test(line)) return line;
  const [, name] = functionTrouble.exec(line) ?? [];
  if (name === undefined) return undefined;
  const [, message = 'an error'] = /"(?:message|errorMessage)":"([^"\\]*)/.exec(line) ?? [];
  if (message !== 'fault') return `${name}: ${message}`;
  const folder = fullFolder();
  if (folder !== undefined) return `${name}: the disk of ${folder} is full: make room, then call again`;
  const [, error = 'an error'] = /"error":"([^"\\]*)/.exec(line) ?? [];
  return `${name}: a call failed by a fault of the relay or of its tables (${error})`;
}

const cut = (words: string, columns: number): string =>
  words.length <= columns ? words : `${words.slice(0, Math.max(columns - 3, 20))}...`;
