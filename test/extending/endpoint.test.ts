import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CopiedTree } from './copied-tree.ts';

/** The product part of docs/add-an-endpoint.md, done: the diff is one folder, one registry line, one function, one test. */
const fixture = 'trial-endpoint.patch';
let tree: CopiedTree;

beforeAll(async () => {
  tree = new CopiedTree();
  await tree.apply(fixture);
});
afterAll(() => tree.remove());

it('a trial endpoint with its own key header, error form and early usage type-checks, and its calls are read, billed and replayed like any other', async () => {
  await tree.tool('tsc', '--noEmit');
  const { failed, passed } = await tree.tests('test/unit/endpoints/notes.test.ts', 'test/unit/relay/http');
  expect(failed).toEqual([]);
  expect(passed.filter((name) => name.startsWith('notes.test.ts '))).toHaveLength(4);
}, 240_000);

it('takes one folder, one line of a registry and one function', () => {
  const diff = readFileSync(path.join(import.meta.dirname, 'fixtures', fixture), 'utf8');
  const changed = [...diff.matchAll(/^\+\+\+ b\/(.+)$/gm)].map(([, file]) => file);
  expect(changed).toEqual([
    'functions/notes.ts',
    'shared/endpoints/notes/notes-endpoint.ts',
    'shared/endpoints/routes.ts',
    'test/unit/endpoints/notes.test.ts',
  ]);
  const ofRegistry = diff
    .split('diff --git ')
    .find((part) => part.startsWith('a/shared/endpoints/routes.ts'));
  expect(ofRegistry?.match(/^[+-] .*$/gm)).toHaveLength(1);
});
