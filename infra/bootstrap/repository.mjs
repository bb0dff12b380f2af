/** Paths in the repository, and functions that read and hash its files. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
export const inRoot = (...names) => path.join(root, ...names);
export const bin = inRoot('node_modules', '.bin');

export const digest = (content) => createHash('sha256').update(content).digest('hex');

/** Undefined when the file cannot be read. */
export function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
