/** Reads the tree into sources: what each file holds, and which files and packages it imports. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { importsIn, placesOf, type Place } from './syntax.ts';
import { tokensOf, type Token } from './tokens.ts';

export interface Source {
  /** From the root, with slashes: `shared/wire/public-api.ts`. */
  file: string;
  folder: string;
  text: string;
  tokens: Token[];
  /** The syntax tree. */
  places: Place[];
  /** As they are written: `../wire/account.ts`, `zod/mini`. */
  imports: string[];
  /** Those of them that are files of the repository, from the root. */
  uses: string[];
}

export function sourceOf(file: string, text: string): Source {
  const folder = path.posix.dirname(file);
  let places: Place[] | undefined;
  let imports: string[] | undefined;
  // Parsed only when a rule asks: few rules look into tests.
  return {
    file,
    folder,
    text,
    tokens: tokensOf(text),
    get places() {
      return (places ??= placesOf(text));
    },
    get imports() {
      return (imports ??= importsIn(this.places));
    },
    get uses() {
      const files = this.imports.filter((name) => name.startsWith('.'));
      return [...new Set(files.map((name) => path.posix.join(folder, name)))];
    },
  };
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

export const isProduct = ({ file }: Pick<Source, 'file'>): boolean => !file.startsWith('test/');

/** Whether a folder is another one or lies in it. */
export const within = (folder: string, name: string): boolean =>
  folder === name || folder.startsWith(`${name}/`);

/** The code without comments and texts, as one string. */
export const codeOf = ({ tokens }: Source): string =>
  tokens.map(({ kind, text }) => (kind === 'code' ? text : "''")).join('');

/** Texts of a source: quoted ones and the parts of templates. */
export const textsOf = ({ tokens }: Source): string[] =>
  tokens
    .filter(({ kind }) => kind === 'string' || kind === 'template')
    .map(({ kind, text }) => (kind === 'string' ? text.slice(1, -1) : text));
