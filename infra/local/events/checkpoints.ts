import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** How far each mapping has read each shard. Kept in a file, as on AWS positions survive a restart. */
export class Checkpoints {
  readonly #file: string | undefined;
  readonly #positions: Map<string, string>;

  constructor(folder: string | undefined) {
    this.#file = folder === undefined ? undefined : path.join(folder, 'stream-positions.json');
    this.#positions = new Map(Object.entries(this.#read()));
  }

  get(mapping: string, shard: string): string | undefined {
    return this.#positions.get(`${mapping} ${shard}`);
  }

  set(mapping: string, shard: string, sequenceNumber: string): void {
    this.#positions.set(`${mapping} ${shard}`, sequenceNumber);
    if (this.#file === undefined) return;
    const temporary = `${this.#file}.new`;
    writeFileSync(temporary, JSON.stringify(Object.fromEntries(this.#positions)));
    renameSync(temporary, this.#file);
  }

  #read(): Record<string, string> {
    if (this.#file === undefined) return {};
    try {
      return JSON.parse(readFileSync(this.#file, 'utf8')) as Record<string, string>;
    } catch {
      return {};
    }
  }
}
