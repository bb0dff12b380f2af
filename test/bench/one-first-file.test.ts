import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Metafile } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildFunctions, locateMetaFile } from '../../infra/build/build-functions.ts';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { firstLoadBytes } from './size.ts';

const files = {
  'shared.ts': `export class Shared { static made = 0; constructor() { Shared.made += 1; } }
    export const more = 'more';`,
  'both.ts': `import { Shared } from './shared.ts'; export const both = () => new Shared();`,
  'later.ts': `import { Shared, more } from './shared.ts'; import { other } from './other.ts';
    export const made = () => { new Shared(); return [Shared.made, more, other, Shared]; };`,
  'other.ts': `export const other = 'other';`,
  'latest.ts': `import { other } from './other.ts'; export const text = 'latest ' + other;`,
  'functions/joined.ts': `import { both } from '../both.ts'; import { Shared } from '../shared.ts';
    export const handler = async () => {
      both();
      const { made } = await import('../later.ts');
      const { text } = await import('../latest.ts');
      const again = await import('../both.ts');
      const [count, more, other, Class] = made();
      return [count, more, other, Class === Shared, text, again.both === both];
    };`,
};

let root: string;
const folders = (): { functionsFolder: string; outputFolder: string } => ({
  functionsFolder: join(root, 'functions'),
  outputFolder: join(root, 'dist'),
});
const write = (name: string, text: string): void => writeFileSync(join(root, name), text);

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'relay-joined-'));
  mkdirSync(join(root, 'functions'));
  for (const [name, text] of Object.entries(files)) write(name, text);
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

describe('the files of a bundle', () => {
  test('that are loaded later share classes and values with the first one', async () => {
    await buildFunctions(folders());
    const { handler } = (await import(pathToFileURL(join(root, 'dist', 'joined', 'index.mjs')).href)) as {
      handler: () => Promise<unknown>;
    };
    expect(await handler()).toEqual([2, 'more', 'other', true, 'latest other', true]);
  });

  test('are one at the start of each function', () => {
    for (const name of functionNames) {
      const path = locateMetaFile(join(import.meta.dirname, '..', '..', 'dist'), name);
      const metafile = JSON.parse(readFileSync(path, 'utf8')) as Metafile;
      const { 'index.mjs': index, 'main.mjs': main } = metafile.outputs;
      // A function with `prepare` has one more small file that awaits it.
      const one = (main?.bytes ?? 0) + (index?.bytes ?? 0);
      expect(firstLoadBytes(metafile).first).toBe(one);
      if (main) expect(index?.bytes).toBeLessThan(100);
    }
  });

  test('that are loaded while `prepare` is awaited get shared values from the second file', async () => {
    write(
      'functions/joined.ts',
      `import { Shared } from '../shared.ts'; let made = [];
      export const prepare = async () => { new Shared(); made = (await import('../later.ts')).made(); };
      export const handler = async () => made;`,
    );
    await buildFunctions(folders());
    const url = pathToFileURL(join(root, 'dist', 'joined', 'index.mjs')).href;
    const { handler } = (await import(`${url}?prepared`)) as { handler: () => Promise<unknown[]> };
    expect((await handler()).slice(0, 3)).toEqual([2, 'more', 'other']);
  });

  test('cannot wait for each other: a top-level await fails the build', async () => {
    write('functions/joined.ts', `export const { made } = await import('../later.ts');`);
    await expect(buildFunctions(folders())).rejects.toThrow('Top-level await is not available');
  });
});
