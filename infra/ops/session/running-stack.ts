/**
 * How the command line finds the stack of its own clone: `npm start` writes the address of its tables into the data folder, and the
 * folder of its clone beside the stack's addresses in `runtime`. Two clones on one machine so never write into each other's tables.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const usualTables = 'http://127.0.0.1:8000';
export const usualDataFolder = '.relay';

/** The folder of the clone that this code runs in. */
export const cloneFolder = (): string => path.resolve(import.meta.dirname, '../../..');

const locateRunningFile = (dataFolder: string): string => path.join(dataFolder, 'running.json');

/** @returns removes what it wrote */
export function writeRunning(dataFolder: string | undefined, tables: string): () => void {
  if (dataFolder === undefined) return () => {};
  const file = locateRunningFile(dataFolder);
  writeFileSync(file, `${JSON.stringify({ tables })}\n`, { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/** The tables of this clone's stack, as far as its data folder knows; else those of a stack that was started without options. */
export function findRunningTables(environment: NodeJS.ProcessEnv): string {
  const folder = path.resolve(cloneFolder(), environment['RELAY_DATA'] || usualDataFolder);
  try {
    const { tables } = JSON.parse(readFileSync(locateRunningFile(folder), 'utf8')) as { tables?: unknown };
    return typeof tables === 'string' ? tables : usualTables;
  } catch {
    return usualTables;
  }
}
