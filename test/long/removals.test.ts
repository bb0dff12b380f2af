import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CopiedTree } from '../extending/copied-tree.ts';
import { removals } from '../reliability/removals.ts';

/** One row: `REMOVAL=F4 npm run test:long -- test/long/removals.test.ts`. */
const wanted = process.env['REMOVAL'];
const chosen = removals.filter(({ rows }) => wanted === undefined || rows.includes(wanted));
let tree: CopiedTree;

beforeAll(() => {
  tree = new CopiedTree();
});
afterAll(() => tree.remove());

/** Tests of the file that do not pass. A contract is not a test file; the test file of its name runs it. */
async function failing(file: string, built: boolean, ...options: string[]): Promise<string[]> {
  if (built) await tree.node('infra/build/build-functions.ts');
  const { failed } = await tree.tests(file.replace(/(?<!\.test)\.ts$/, '.test.ts'), ...options);
  return failed;
}

/** Matches a test's name as written: a placeholder for the case, such as `%s`, matches any text. */
const patternOf = (name: string): string =>
  name.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`).replaceAll(/%[a-z]/g, '.*');

describe('without its guard', () => {
  const cases = chosen.map((removal) => ({
    ...removal,
    title: `${removal.rows.join(', ')}: ${removal.name}`,
  }));
  it.each(cases)('$title fails', async ({ file, find, replace, test, ranBy = test, name, built = false }) => {
    const restore = tree.change(file, find, replace);
    const pattern = patternOf(name);
    try {
      // Tests with other names are skipped, so they do not pass either.
      const failed = await failing(ranBy, built, '-t', pattern);
      expect(failed.filter((each) => new RegExp(pattern, 's').test(each))).not.toEqual([]);
    } finally {
      restore();
    }
  });

  const files = [...new Set(chosen.map(({ test, ranBy = test }) => ranBy))];
  it.each(files)('%s passes on the unmodified tree', async (file) => {
    const built = chosen.some((removal) => (removal.ranBy ?? removal.test) === file && removal.built);
    expect(await failing(file, built)).toEqual([]);
  });
});
