import { readPage } from './pages.ts';

/** The items of a page's lists, and the rows of its tables, each in one line. */
export const linesOf = (page: string): string[] =>
  page
    .replaceAll(/\n {2,}(?=\S)/g, ' ')
    .split('\n')
    .filter((line) => /^(- |\| )/.test(line));

/** The labels of test files in a line: `[label]` without an address of its own. */
export const labelsIn = (row: string): string[] =>
  [...row.matchAll(/(?<!\])\[([a-z-]+)\](?![(:])/g)].map((match) => String(match[1]));

/** The texts in quotes of a test file: names of tests and of their cases. */
export const textsOf = (file: string): Set<string> =>
  new Set(
    [...readPage(file).matchAll(/'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)].map((match) =>
      String(match[1] ?? match[2]).replaceAll(/\\(.)/g, '$1'),
    ),
  );
