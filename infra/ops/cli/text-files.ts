/** Files that commands read and write. Messages name the file and never quote it. */
import { mkdir, open, readFile, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { Failure, usageFailure } from '../../../shared/operate/plan.ts';
import type { PriceSource } from '../../../shared/operate/prices/price-list.ts';
import { parsePriceList } from '../csv.ts';

const repository = fileURLToPath(new URL('../../..', import.meta.url));

export const resolveInRepository = (name: string): string => path.join(repository, name);

const explainUnreadable = (path: string) => usageFailure(`cannot read the file ${path}`);

const readBytes = (path: string): Promise<Buffer> =>
  readFile(path).catch(() => {
    throw explainUnreadable(path);
  });

export const readTextFile = async (path: string): Promise<string> => (await readBytes(path)).toString();

/** As spreadsheets write it too: UTF-16 with its mark, or GB 18030. */
export async function readSheetFile(path: string): Promise<string> {
  const bytes = await readBytes(path);
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('gb18030').decode(bytes);
  }
}

export const readTextFileIfAny = async (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw explainUnreadable(path);
  });

/** Overwrites an existing file, and makes the folder where there is none. */
export const writeTextFile = (file: string, text: string): Promise<void> =>
  writeInFolder(file, () => writeFile(file, text));

/** Replaces a file in one step: a kill leaves the old file or the new one. Only its owner may read it. */
export const replaceFile = (file: string, text: string): Promise<void> =>
  writeInFolder(file, async () => {
    await writeFile(`${file}.new`, text, { mode: 0o600, flush: true });
    await rename(`${file}.new`, file);
  });

/**
 * As they come; under its name once it is whole. What broke off stays beside, in `<path>.part`. What is no file, such as a folder or a
 * device, is not replaced.
 */
export async function writeLines(file: string, lines: AsyncIterable<string>): Promise<void> {
  const part = await writeInFolder(file, async () => {
    const there = await stat(file).catch(() => undefined);
    if (file === '' || there?.isFile() === false) throw new Error('not a file');
    return open(`${file}.part`, 'w');
  });
  await pipeline(lines, part.createWriteStream()).catch((error: unknown) => {
    const { code, syscall } = error as NodeJS.ErrnoException;
    throw syscall === 'write' ? new Failure(`cannot write to the file ${file}.part: ${code}`) : error;
  });
  await rename(`${file}.part`, file);
}

const writeInFolder = <Written>(file: string, write: () => Promise<Written>): Promise<Written> =>
  mkdir(path.dirname(file), { recursive: true })
    .then(write)
    .catch(() => {
      throw new Failure(`cannot write the file ${file}`);
    });

export const readListFile = async (path: string): Promise<PriceSource> =>
  parsePriceList(await readSheetFile(path));
