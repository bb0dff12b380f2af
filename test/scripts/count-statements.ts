/**
 * Counts the statements of the product's code, layer by layer: of the working tree, or of the given commits side by side.
 *
 *     node test/scripts/count-statements.ts [git-ref...]
 *
 * Every statement and declaration of the syntax tree counts one, types included; so do class members, and the value
 * of an arrow function without a block, which is a return by another spelling. Imports, exports of other files,
 * blocks, comments and blank lines count nothing, so neither formatting nor moving code changes the sum.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAst } from 'vitest/node';

const projectFolder = resolve(import.meta.dirname, '..', '..');
const productFolders = ['shared', 'functions', 'infra'];
const uncounted = new Set([
  'BlockStatement',
  'EmptyStatement',
  'ImportDeclaration',
  'ExportAllDeclaration',
  'ExportDefaultDeclaration',
  'ExportNamedDeclaration',
]);

function statementsOf(node: unknown): number {
  if (Array.isArray(node)) return node.reduce((sum: number, item) => sum + statementsOf(item), 0);
  if (typeof node !== 'object' || node === null) return 0;
  const { type = '', body } = node as { type?: string; body?: { type?: string } };
  const isStatement = /(Statement|Declaration|MethodDefinition|PropertyDefinition)$/.test(type);
  const isValue = type === 'ArrowFunctionExpression' && body?.type !== 'BlockStatement';
  const own = (isStatement && !uncounted.has(type)) || isValue ? 1 : 0;
  return own + statementsOf(Object.values(node));
}

const git = (...parameters: string[]): string =>
  execFileSync('git', parameters, { cwd: projectFolder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });

interface Source {
  path: string;
  text: string;
}

function sourcesOf(ref: string | undefined): Source[] {
  const listed =
    ref === undefined
      ? git('ls-files', '--cached', '--others', '--exclude-standard', ...productFolders)
      : git('ls-tree', '-r', '--name-only', ref, ...productFolders);
  const paths = listed.split('\n').filter((path) => /\.(ts|mjs|cjs)$/.test(path));
  if (ref !== undefined) return paths.map((path) => ({ path, text: git('show', `${ref}:${path}`) }));
  // A deleted file is listed until the deletion is committed.
  const present = paths
    .map((path) => ({ path, file: join(projectFolder, path) }))
    .filter(({ file }) => existsSync(file));
  return present.map(({ path, file }) => ({ path, text: readFileSync(file, 'utf8') }));
}

/** `shared/relay/call/read.ts` belongs to `shared/relay`. */
const layerOf = (path: string): string => path.split('/').slice(0, -1).slice(0, 2).join('/');

function countLayers(ref: string | undefined): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { path, text } of sourcesOf(ref)) {
    const statements = statementsOf(parseAst(text, { lang: 'ts' }));
    for (const name of [layerOf(path), 'total']) counts.set(name, (counts.get(name) ?? 0) + statements);
  }
  return counts;
}

const refs = process.argv.length > 2 ? process.argv.slice(2) : [undefined];
const columns = refs.map(countLayers);
const layers = new Set(columns.flatMap((column) => [...column.keys()]));
layers.delete('total');
const print = (name: string, columns: unknown[]): void =>
  console.log(name.padEnd(24) + columns.map((column) => String(column).padStart(12)).join(''));

print(
  'layer',
  refs.map((ref) => ref ?? 'work tree'),
);
for (const name of [...[...layers].toSorted(), 'total'])
  print(
    name,
    columns.map((column) => column.get(name) ?? 0),
  );
