import { readdirSync } from 'node:fs';
import path from 'node:path';
import { readPage, root } from './pages.ts';

/** The items of a page's lists, and the rows of its tables, each in one line. */
export const linesOf = (page: string): string[] =>
  page
    .replaceAll(/\n {2,}(?=\S)/g, ' ')
    .split('\n')
    .filter((line) => /^(- |\| )/.test(line));

/** The labels of test files in a line: `[label]` without an address of its own. */
export const labelsIn = (row: string): string[] =>
  [...row.matchAll(/\[([a-z-]+(?:[/.][a-z-]+)*)\](?![(:])/g)].map((match) => String(match[1]));

const testFiles = readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' }).map((name) =>
  path.join('test', name),
);

/** `client/chat` names `test/client/chat.test.ts`, and `quota-store.ts` the only file of that name. Throws unless it names one file. */
export function testFileOf(label: string): string {
  const ending = `/${label.endsWith('.ts') ? label : `${label}.test.ts`}`;
  const [file, ...others] = testFiles.filter((name) => `/${name}`.endsWith(ending));
  if (file === undefined || others.length > 0) throw new Error(`[${label}] does not name one test file`);
  return file;
}

/** The texts in quotes of a test file: names of tests and of their cases. */
export const textsOf = (file: string): Set<string> =>
  new Set(
    [...readPage(file).matchAll(/'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)].map((match) =>
      String(match[1] ?? match[2]).replaceAll(/\\(.)/g, '$1'),
    ),
  );
