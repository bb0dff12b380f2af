/** Files that commands read and write. Messages name the file and never quote it. */
import { readFile, writeFile } from 'node:fs/promises';
import { Failure, usageFailure } from '../../../../shared/operate/operator-failure.ts';

export async function readTextFile(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw usageFailure(`the file ${path} cannot be read`);
  });
}

/** Undefined: there is no such file. */
export const readTextFileIfAny = async (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw usageFailure(`the file ${path} cannot be read`);
  });

/** Overwrites an existing file. */
export async function writeTextFile(path: string, text: string): Promise<void> {
  await writeFile(path, text).catch(() => {
    throw new Failure(`the file ${path} cannot be written`);
  });
}
