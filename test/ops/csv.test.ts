import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { formatCsv, parseCsvLines } from '../../infra/ops/csv.ts';
import { Terminal } from '../../infra/ops/cli/terminal.ts';

describe('CSV', () => {
  it('is written with quotes if a cell needs them', () => {
    const cells = ['a', 'o, "3"', undefined, 3, 'two\nlines', ''];
    expect(formatCsv([cells, ['b']])).toBe('a,"o, ""3""",,3,"two\nlines",\nb\n');
    expect(formatCsv([])).toBe('');
  });

  it('runs no formula in a spreadsheet, and keeps numbers and model names unchanged', () => {
    const harmless = ['-1.5', '+7', '@cf/meta/llama-3', '-', '2026-11-22', 'a=b'];
    expect(formatCsv([harmless])).toBe(`${harmless.join(',')}\n`);
    const formulas = '=1+1 +A1*2 -2+cmd|x!A0 @SUM(A1) \t=1 \uFF1D1+1 \uFF0B1 \uFF0D1 \uFF20A'.split(' ');
    expect(formatCsv([formulas])).toBe(`${formulas.map((each) => `'${each}`).join(',')}\n`);
    expect(formatCsv([['\n=1+1']])).toBe(`"'\n=1+1"\n`);
  });

  it('is read with quoted cells, either line end, a byte order mark, blanks and empty lines', () => {
    const lines = parseCsvLines('\uFEFFmodel, b ,c\r\n"x, ""y""", 2 ,\r\n\r\nm,1\nlast,"q"', ',');
    expect(lines.map(({ cells }) => cells)).toEqual([
      ['model', 'b', 'c'],
      ['x, "y"', '2', ''],
      ['m', '1'],
      ['last', 'q'],
    ]);
  });

  it('is rejected if a quote is not closed', () => {
    expect(() => parseCsvLines('"a,b\n1,2', ',')).toThrow(
      'csv: this is not readable as CSV: Quote Not Closed',
    );
  });
});

it('prints foreign text without characters that move the cursor, rename the window or reverse a line', () => {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const terminal = new Terminal({ input, output, errors, environment: {} });
  const note = 'a\u001b]0;owned\u0007\u001b[2Jb\u009b31m\u202Egpj\rc\td';
  const shown = String.raw`a\u001b]0;owned\u0007\u001b[2Jb\u009b31m\u202egpj\u000dc` + '\td';
  terminal.print(note);
  terminal.remark(note);
  expect(formatCsv([[note]])).toBe(`${shown}\n`);
  terminal.in('json').printJson({ note });
  const [printed, json] = (output.read() as Buffer).toString().split(/\n(?=\{)/);
  expect(printed).toBe(shown);
  expect((errors.read() as Buffer).toString()).toBe(`${printed}\n`);
  // oxlint-disable-next-line no-control-regex -- they are what must not be there
  expect(json).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  expect(JSON.parse(json ?? '')).toEqual({ note });
  terminal.printTable([
    ['ACCOUNT', 'NOTE'],
    ['acme', 'paid\nmallory  paid'],
  ]);
  expect((output.read() as Buffer).toString()).toBe('ACCOUNT  NOTE\nacme     paid mallory  paid\n');
});
