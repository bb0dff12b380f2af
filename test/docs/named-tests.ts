import { readPage } from './pages.ts';

/** The items of a page's lists, and the rows of its tables, each in one line. */
export const linesOf = (page: string): string[] =>
  page
    .replaceAll(/\n {2,}(?=\S)/g, ' ')
    .split('\n')
    .filter((line) => /^(- |\| )/.test(line));

/** `[file] "a test", "another"` in a row, one entry per file. */
export const referencesIn = (row: string): { file: string; names: string[] }[] =>
  [...row.matchAll(/\[([a-z-]+)\] ("[^"]+"(?:, "[^"]+")*)/g)].map((match) => ({
    file: String(match[1]),
    names: [...String(match[2]).matchAll(/"([^"]+)"/g)].map((name) => String(name[1])),
  }));

/** The texts in quotes of a test file: names of tests and of their cases. */
export const textsOf = (file: string): Set<string> =>
  new Set(
    [...readPage(file).matchAll(/'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)].map((match) =>
      String(match[1] ?? match[2]).replaceAll(/\\(.)/g, '$1'),
    ),
  );
