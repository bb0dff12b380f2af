/** Reads the tree into sources: what each file holds, and which files and packages it imports. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { tokensOf, type Token } from './tokens.ts';

export interface Source {
  /** From the root, with slashes: `shared/wire/account.ts`. */
  file: string;
  folder: string;
  text: string;
  tokens: Token[];
  /** As they are written: `../wire/account.ts`, `zod/mini`. */
  imports: string[];
  /** Those of them that are files of the repository, from the root. */
  uses: string[];
}

const importShape = /(?:^(?:import|export)\b[^'";]*?\bfrom\s*|^import\s*|\bimport\(\s*)'([^']+)'/gm;

export function sourceOf(file: string, text: string): Source {
  const tokens = tokensOf(text);
  const statements = tokens
    .filter(({ kind }) => kind === 'code' || kind === 'string')
    .map((token) => token.text)
    .join('');
  const imports = [...statements.matchAll(importShape)].map((match) => String(match[1]));
  const uses = imports
    .filter((name) => name.startsWith('.'))
    .map((name) => path.posix.join(path.posix.dirname(file), name));
  return { file, folder: path.posix.dirname(file), text, tokens, imports, uses: [...new Set(uses)] };
}

/** Every source of the folders, from the root of the repository. */
export function readSources(root: string, folders: string[]): Source[] {
  return folders
    .flatMap((folder) =>
      readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        path.posix.join(folder, name),
      ),
    )
    .filter((file) => /\.(ts|mjs|cjs)$/.test(file))
    .toSorted()
    .map((file) => sourceOf(file, readFileSync(path.join(root, file), 'utf8')));
}

export const isProduct = ({ file }: Source): boolean => !file.startsWith('test/');

/** Whether a folder is another one or lies in it. */
export const within = (folder: string, name: string): boolean =>
  folder === name || folder.startsWith(`${name}/`);

/** The code without comments and texts, as one string. */
export const codeOf = ({ tokens }: Source): string =>
  tokens.map(({ kind, text }) => (kind === 'code' ? text : "''")).join('');
