import { describe, expect, it } from 'vitest';
import { removals } from '../reliability/removals.ts';
import { labelsIn, linesOf, testFileOf, textsOf } from './named-tests.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/reliability.md');
const rows = linesOf(page).filter((line) => /^- [FS]\d+ /.test(line));
const idOf = (row: string): string => String(/^- ([FS]\d+) /.exec(row)?.[1]);
const numbered = (letter: string, last: number): string[] =>
  Array.from({ length: last }, (_, index) => `${letter}${index + 1}`);
/** Rows that no test of this repository can show yet; the page says why. */
const waiting = new Set(rows.filter((row) => row.includes('**not yet**')).map(idOf));

describe('docs/reliability.md', () => {
  it('has a row for each fault and each threat', () => {
    expect(rows.map(idOf)).toEqual([...numbered('F', 26), ...numbered('S', 35)]);
  });

  it('names test files that exist', () => {
    const files = rows.flatMap(labelsIn).map(testFileOf);
    expect(files.filter((file) => textsOf(file).size === 0)).toEqual([]);
  });

  it('has for each row that is held a test, and a guard whose removal that test notices', () => {
    const held = rows.filter((row) => !waiting.has(idOf(row)));
    const removed = new Set(removals.flatMap((removal) => removal.rows));
    expect(held.filter((row) => labelsIn(row).length === 0).map(idOf)).toEqual([]);
    expect(held.map(idOf).filter((id) => !removed.has(id))).toEqual([]);
    const unnamed = removals.filter(({ rows: ids, test }) => {
      const labels = rows.filter((row) => ids.includes(idOf(row))).flatMap(labelsIn);
      return !labels.some((label) => testFileOf(label) === test);
    });
    expect(unnamed.map(({ rows: ids, name }) => `${ids.join()}: ${name}`)).toEqual([]);
  });
});

describe('the removal of a guard', () => {
  it.each(removals)('still fits: $file: $find', ({ file, find, replace, test, name }) => {
    expect(readPage(file).split(find)).toHaveLength(2);
    expect(replace).not.toBe(find);
    expect(textsOf(test)).toContain(name);
  });
});
