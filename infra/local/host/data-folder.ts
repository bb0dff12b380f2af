import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartError } from './start-error.ts';

/** SQLite's code for a file that another process has locked. */
const busy = 5;
const ownFile = /^(in-use|demo-key|log|dynamodb\.sqlite(-wal|-shm)?|stream-positions\.json)$/;

/**
 * Takes the folder for one stack: two emulators on one file would destroy it. The system itself takes the lock from a
 * process that ends, however it does. Throws StartError: another stack has it, or it cannot be written.
 * @returns gives it back
 */
export function claimDataFolder(folder: string | undefined): () => void {
  if (folder === undefined) return () => {};
  try {
    makeFolder(path.resolve(folder));
    closeToOthers(folder);
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
        `${named}: another stack works there; stop it, or set RELAY_DATA to another folder`,
      );
    throw new StartError(
      `${named}, which cannot be written (${errcode === undefined ? code : `SQLite ${errcode}`})`,
    );
  }
}

/** Those of versions that left them open. A folder that has none of them may be somebody else's. */
function closeToOthers(folder: string): void {
  const files = readdirSync(folder).filter((name) => ownFile.test(name));
  for (const name of files) chmodSync(path.join(folder, name), name === 'log' ? 0o700 : 0o600);
  if (files.includes('in-use')) chmodSync(folder, 0o700);
}

/** Not by `recursive`: where the system lets nobody make a folder (`/proc`), Node then tries for ever. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = path.dirname(folder);
  if (!existsSync(parent)) makeFolder(parent);
  mkdirSync(folder, { mode: 0o700 });
}
