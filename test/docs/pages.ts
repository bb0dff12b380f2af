import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.join(import.meta.dirname, '../..');

/** A page of the repository, named from its root: `docs/tables.md`. */
export const readPage = (name: string): string => readFileSync(path.join(root, name), 'utf8');

/** The README, AGENTS.md and every page below `docs`. */
export const pages: string[] = [
  'README.md',
  'AGENTS.md',
  ...readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.join('docs', name)),
];

export interface Fence {
  language: string;
  code: string;
}

/** The fenced code of a page, in order. */
export const fencesOf = (page: string): Fence[] =>
  [...readPage(page).matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, code]) => ({
    language: String(language),
    code: String(code),
  }));

/** A page without its code, where brackets and hashes mean something else. */
export const proseOf = (page: string): string =>
  readPage(page)
    .replaceAll(/^```.*?^```$/gms, '')
    .replaceAll(/^ {4}.*$/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]]/g, ' '));
