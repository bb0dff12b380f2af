import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { buildPages } from '../../../../infra/pages/built-pages.ts';
import * as served from '../../../../shared/relay/page/built-pages.ts';

const root = path.resolve(import.meta.dirname, '../../../..');

it('the build produces every file that the pages are served with', async () => {
  const built = await buildPages();
  expect(Object.values(built).filter((value) => value === '')).toEqual([]);
  expect(built).toEqual({ ...served });
});

it('the scripts of the pages use only browser types', async () => {
  const tsc = path.join(root, 'node_modules/.bin/tsc');
  const checked = promisify(execFile)(process.execPath, [tsc, '--noEmit', '-p', 'infra/pages/browser'], {
    cwd: root,
  });
  await expect(checked).resolves.toMatchObject({ stdout: '' });
});
