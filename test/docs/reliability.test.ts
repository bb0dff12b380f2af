import { describe, expect, it } from 'vitest';
import { removals } from '../reliability/removals.ts';
import { linesOf, referencesIn, textsOf } from './named-tests.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/reliability.md');
const files = new Map(
  [...page.matchAll(/^\[([a-z-]+)\]: \.\.\/(\S+)$/gm)].map((match) => [String(match[1]), String(match[2])]),
);
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

  it('names tests that exist', () => {
    const named = rows.flatMap(referencesIn);
    const missing = named.flatMap(({ file, names }) => {
      const texts = textsOf(files.get(file) ?? '');
      return names.filter((name) => !texts.has(name)).map((name) => `${file}: ${name}`);
    });
    expect(missing).toEqual([]);
    expect([...new Set(named.map(({ file }) => file))].toSorted()).toEqual([...files.keys()].toSorted());
  });

  it('has for each row that is held a test, and a guard whose removal that test notices', () => {
    const held = rows.filter((row) => !waiting.has(idOf(row)));
    const removed = new Set(removals.flatMap((removal) => removal.rows));
    expect(held.filter((row) => referencesIn(row).length === 0).map(idOf)).toEqual([]);
    expect(held.map(idOf).filter((id) => !removed.has(id))).toEqual([]);
    const unnamed = removals.filter(({ rows: ids, test, name }) => {
      const references = rows.filter((row) => ids.includes(idOf(row))).flatMap(referencesIn);
      return !references.some(({ file, names }) => files.get(file) === test && names.includes(name));
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
