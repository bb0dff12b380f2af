import { closeSync, fstatSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import path from 'node:path';
import type { Log } from '../host/log.ts';

export interface LogFiles {
  newer: string;
  /** What was the newer one before it was full. */
  older: string;
  bytesMax: number;
}

/** Between two looks whether the file is still where it was. */
const lookMs = 1000;

/** Appends lines. The stack goes on when they cannot be written (a full disk) and when somebody removes the file. */
export class LogFile {
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
