import { describe, expect, it } from 'vitest';
import { csvText, parseCsv } from '../../infra/ops/cli/terminal/csv.ts';

describe('CSV', () => {
  it('is written with quotes where a cell needs them', () => {
    const cells = ['a', 'o, "3"', undefined, 3, 'two\nlines', 'a\rb', ''];
    expect(csvText([cells, ['b']])).toBe('a,"o, ""3""",,3,"two\nlines","a\rb",\nb\n');
    expect(csvText([])).toBe('');
  });

  it('is read with quoted cells, either line end, a byte order mark, blanks and empty lines', () => {
    expect(parseCsv('\uFEFFmodel, b ,c\r\n"x, ""y""", 2 ,\r\n\r\nm,1\nlast,"q"')).toEqual([
      ['model', 'b', 'c'],
      ['x, "y"', '2', ''],
      ['m', '1'],
      ['last', 'q'],
    ]);
  });

  it('is refused when a quote is not closed', () => {
    expect(() => parseCsv('"a,b\n1,2')).toThrow('this file is not readable as CSV: Quote Not Closed');
  });
});
