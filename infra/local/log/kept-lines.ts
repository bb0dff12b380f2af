import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Log } from '../host/log.ts';
import { LogFile } from './log-file.ts';

/** A line of a function's log, or of the stack's own. */
export interface KeptLine {
  atMs: number;
  functionName: string;
  text: string;
}

/** Of each of two parts; the older one goes when the newer one is full. */
const partBytesMax = 16 * 1024 * 1024;
/** Lambda's limit of a log event is 1 MB; lines of functions are some thousand bytes at most. */
const lineLengthMax = 64 * 1024;

export interface KeptLines {
  /** Where the newest are. */
  file: string;
  add(line: KeptLine): void;
  /** Oldest first. */
  all(): KeptLine[];
  close(): void;
}

interface KeptOptions {
  /** Called when lines cannot be written. */
  warn: Log;
  bytesMax?: number;
}

/** @param folder undefined: nothing outlives the process. Throws when it cannot be written. */
export function keptLines(
  folder: string | undefined,
  { warn, bytesMax = partBytesMax }: KeptOptions,
): KeptLines {
  const place =
    folder === undefined ? mkdtempSync(path.join(tmpdir(), 'relay-log-')) : path.join(folder, 'log');
  const newer = path.join(place, 'functions.log');
  const older = path.join(place, 'functions.1.log');
  const file = new LogFile({ newer, older, bytesMax }, warn);
  const close = (): void => {
    file.close();
    if (folder === undefined) rmSync(place, { recursive: true, force: true });
  };
  // Also when the process cannot wait for the end of everything.
  process.once('exit', close);
  return {
    file: newer,
    add({ atMs, functionName, text }) {
      file.append(`${new Date(atMs).toISOString()} ${functionName} ${text.slice(0, lineLengthMax)}`);
    },
    all: () => [older, newer].flatMap(linesIn),
    close() {
      process.off('exit', close);
      close();
    },
  };
}

/** The last line of a stack that was killed may be a part of one. */
function linesIn(file: string): KeptLine[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, at = '', functionName = '', text = ''] = /^(\S+Z) (\S+) (.*)$/.exec(line) ?? [];
      const atMs = Date.parse(at);
      return Number.isNaN(atMs) ? [] : [{ atMs, functionName, text }];
    });
}
