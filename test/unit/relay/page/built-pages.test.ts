import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { builtPages } from '../../../../infra/pages/built-pages.ts';

const root = path.resolve(import.meta.dirname, '../../../..');

it('the committed pages are what their sources make: else run node infra/pages/write-pages.ts', async () => {
  const built = await builtPages();
  const committed = Object.keys(built).map((file) => [file, readFileSync(path.join(root, file), 'utf8')]);
  expect(Object.fromEntries(committed)).toEqual(built);
});

it("the pages' scripts keep to the types of a browser", async () => {
  const tsc = path.join(root, 'node_modules/.bin/tsc');
  const checked = promisify(execFile)(process.execPath, [tsc, '--noEmit', '-p', 'infra/pages/browser'], {
    cwd: root,
  });
  await expect(checked).resolves.toMatchObject({ stdout: '' });
});
