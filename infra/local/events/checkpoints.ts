import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The read position of each mapping in each shard: the sequence number of the last record. */
export interface Checkpoints {
  get(mapping: string, shard: string): string | undefined;
  set(mapping: string, shard: string, sequenceNumber: string): void;
}

/** Stores positions in a file, because on AWS they survive a restart. No folder: nothing is stored. */
export function openCheckpoints(folder: string | undefined): Checkpoints {
  const file = folder === undefined ? undefined : path.join(folder, 'stream-positions.json');
  const positions = new Map(Object.entries(file === undefined ? {} : readPositions(file)));
  return {
    get: (mapping, shard) => positions.get(`${mapping} ${shard}`),
    set(mapping, shard, sequenceNumber) {
      positions.set(`${mapping} ${shard}`, sequenceNumber);
      if (file === undefined) return;
      writeFileSync(`${file}.new`, JSON.stringify(Object.fromEntries(positions)));
      renameSync(`${file}.new`, file);
    },
  };
}

function readPositions(file: string): Record<string, string> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  } catch {
    return {};
  }
}
