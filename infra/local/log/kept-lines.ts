import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Log } from '../host/messages.ts';

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

interface LogFiles {
  newer: string;
  /** What was the newer one before it was full. */
  older: string;
  bytesMax: number;
}

/** Between two looks whether the file is still where it was. */
const lookMs = 1000;

/** Appends lines. The stack goes on when they cannot be written (a full disk) and when somebody removes the file. */
class LogFile {
  readonly #files: LogFiles;
  readonly #warn: Log;
  #file: number | undefined;
  #bytes = 0;
  #lost = 0;
  #lookedMs = -Infinity;
  #isClosed = false;

  /** Throws when it cannot be opened. */
  constructor(files: LogFiles, warn: Log) {
    this.#files = files;
    this.#warn = warn;
    this.#opened();
  }

  append(line: string): void {
    if (this.#isClosed) return;
    try {
      const file = this.#opened();
      // The line before may have been written in part.
      if (this.#lost > 0) this.#bytes += writeSync(file, `\n(${this.#lost} lines could not be written)\n`);
      this.#lost = 0;
      this.#bytes += writeSync(file, `${line}\n`);
      if (this.#bytes >= this.#files.bytesMax) this.#turnOver();
    } catch (error) {
      this.#release();
      this.#lost += 1;
      const { code } = error as NodeJS.ErrnoException;
      if (this.#lost === 1)
        this.#warn(
          `the log ${this.#files.newer} cannot be written (${code}): its lines are lost until it can`,
        );
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#release();
  }

  #opened(): number {
    if (this.#file !== undefined && performance.now() - this.#lookedMs < lookMs) return this.#file;
    this.#lookedMs = performance.now();
    const { newer } = this.#files;
    const found = statSync(newer, { throwIfNoEntry: false });
    if (this.#file !== undefined && found?.ino === fstatSync(this.#file).ino) return this.#file;
    this.#release();
    mkdirSync(path.dirname(newer), { recursive: true });
    this.#file = openSync(newer, 'a', 0o600);
    this.#bytes = found?.size ?? 0;
    return this.#file;
  }

  #turnOver(): void {
    this.#release();
    renameSync(this.#files.newer, this.#files.older);
  }

  #release(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}
