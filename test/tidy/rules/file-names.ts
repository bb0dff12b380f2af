/** Names of files that say nothing of what is in them. */
import path from 'node:path';
import { isProduct, type Source } from '../sources.ts';

const nameOf = (file: string): string => path.posix.basename(file).replace(/\.\w+$/, '');

export const drawers = (sources: Source[]): string[] =>
  sources
    .filter(isProduct)
    .filter(({ file }) => /^(index|utils?|helpers?|common|misc)$/.test(nameOf(file)))
    .map(({ file }) => file);
