import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { zlibInflate } from '../../../../shared/adapters/system/node-ports.ts';
import { inflatedMax, pdfSize } from '../../../../shared/billing/estimate/pdf-size.ts';
import {
  catalog,
  numbers,
  objectStream,
  packed,
  page,
  pdfOf,
  printed,
  savedAgain,
  tree,
} from '../../../support/pdf-files.ts';

const sizeOf = (file: string) => pdfSize(file, zlibInflate, inflatedMax).size;
const shows = (text: string): string => `BT (${text}) Tj ET`;
const filled = 'x'.repeat(50_000);
const on = (contents: string, more = ''): string => `<< /Type /Page /Contents ${contents} ${more} >>`;
const forms = (names: string): string => `/Resources << /XObject << ${names} >> >>`;
const form = (data: string, more = ''): string => packed(`/Subtype /Form ${more}`, data);
/** Five signs for four bytes. */
const ascii85 = (text: string): string => {
  const bytes = Buffer.from(text.padEnd(Math.ceil(text.length / 4) * 4, '\0'), 'latin1');
  let signs = '';
  for (let at = 0; at < bytes.length; at += 4) {
    let group = bytes.readUInt32BE(at);
    let five = '';
    for (let sign = 0; sign < 5; sign += 1) {
      five = String.fromCharCode((group % 85) + 33) + five;
      group = Math.floor(group / 85);
    }
    signs += five;
  }
  return `${signs}~>`;
};

describe('the size of a PDF', () => {
  it.each<[string, string, number, number]>([
    ['plain', pdfOf({ 1: catalog, 2: tree([3, 4]), 3: page, 4: page }), 2, 6_000],
    ['with compressed structure and text', printed(3, 'words '.repeat(400)), 3, 9_000],
    [
      'whose page has more text than usual',
      pdfOf({ 1: catalog, 2: tree([3]), 3: on('4 0 R'), 4: packed('', shows(filled)) }),
      1,
      50_000,
    ],
    ['saved again, with all pages but one in a stream of objects', savedAgain(600), 600, 1_800_000],
    [
      'with one page many times',
      pdfOf({ 1: catalog, 2: tree(Array<number>(300).fill(3)), 3: page }),
      300,
      900_000,
    ],
    [
      'with nodes many times',
      pdfOf({ 1: catalog, 2: tree([5, 5, 5, 5]), 5: tree([6, 6, 6, 6]), 6: tree([3, 3, 3, 3]), 3: page }),
      64,
      192_000,
    ],
    [
      'whose pages share one text',
      pdfOf({
        1: catalog,
        2: tree([3, 4]),
        3: on('5 0 R'),
        4: on('[5 0 R 5 0 R]'),
        5: packed('', shows(filled)),
      }),
      2,
      150_000,
    ],
    [
      'that draws one text many times',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R', forms('/T 5 0 R')),
        4: packed('', '/T Do '.repeat(20)),
        5: form(shows(filled)),
      }),
      1,
      1_000_000,
    ],
    [
      'that draws what draws',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R', forms('/A 5 0 R')),
        4: packed('', '/A Do '.repeat(10)),
        5: form('/B Do '.repeat(10), forms('/B 6 0 R')),
        6: form(shows(filled)),
      }),
      1,
      5_000_000,
    ],
    [
      'whose forms draw each other',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R', forms('/A 5 0 R /B 6 0 R')),
        4: packed('', `/A Do ${'/B Do '.repeat(20)}`),
        5: form(`${shows(filled)} /B Do`),
        6: form('/A Do'),
      }),
      1,
      1_050_000,
    ],
    [
      'whose forms call what they draw by the same names',
      pdfOf({
        1: catalog,
        2: tree(numbers(100, 50)),
        ...Object.fromEntries(numbers(100, 50).map((at) => [at, on('4 0 R', forms(`/F ${at + 100} 0 R`))])),
        ...Object.fromEntries(numbers(200, 50).map((at) => [at, form('/F Do', forms(`/F ${at + 100} 0 R`))])),
        ...Object.fromEntries(numbers(300, 50).map((at) => [at, form(shows('x'.repeat(4_000)))])),
        4: packed('', '/F Do'),
      }),
      50,
      200_000,
    ],
    [
      'whose font says many letters for each code',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R', '/Resources << /Font << /F 6 0 R >> >>'),
        4: packed('', shows(filled)),
        6: `<< /Type /Font /Encoding << /Differences [97 /${'a_'.repeat(29)}uni0041] >> >>`,
      }),
      1,
      500_000,
    ],
    [
      'that draws behind the data of a picture',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R', forms('/T 5 0 R')),
        4: packed('', `BI ID ( EI ${'/T Do '.repeat(20)}`),
        5: form(shows(filled)),
      }),
      1,
      1_000_123,
    ],
    [
      'whose font says a word for each code',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R', '/Resources << /Font << /F 6 0 R >> >>'),
        4: packed('', shows(filled)),
        6: '<< /Type /Font /ToUnicode 7 0 R >>',
        7: packed('', `1 beginbfchar <01> <${'0041'.repeat(30)}> endbfchar`),
      }),
      1,
      500_000,
    ],
    [
      'in hex digits and ASCII85',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R'),
        4: `<< /Filter /ASCII85Decode /Length 9 >> stream\n${ascii85(`<${'41'.repeat(20_000)}> Tj`)}\nendstream`,
      }),
      1,
      20_000,
    ],
    [
      'whose names are written in codes',
      pdfOf({
        1: '<< /Type /Catalog /P#61ges 2 0 R >>',
        2: tree([3, 3]).replace('/Kids', '/K#69ds'),
        3: page,
      }),
      2,
      6_000,
    ],
    [
      'with a version that nobody asked for',
      pdfOf({ 1: catalog, 2: tree([3, 3, 3]), 3: page }, `2 0 obj ${tree([3])} endobj\n`),
      3,
      9_000,
    ],
    [
      'whose count is a lie',
      pdfOf({ 1: catalog, 2: tree([3, 3]).replace('/Count 2', '/Count 1'), 3: page }),
      2,
      6_000,
    ],
  ])('%s', (_name, file, pages, characters) => {
    expect(sizeOf(file)).toEqual({ pages, characters });
  });

  it.each([
    ['no page tree', '%PDF-1.7 nothing'],
    ['encrypted', printed(3, 'x').replace('/Root', '/Encrypt 9 0 R /Root')],
    ['encrypted in other letters', printed(3, 'x').replace('/Root', '/Encr#79pt 9 0 R /Root')],
    [
      'a stream of objects that only some find',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: page,
        9: objectStream({ 2: tree([3, 3]) }).replace('stream\r', 'stream \r'),
      }),
    ],
    [
      'a page tree without a number',
      pdfOf({ 1: catalog, 2: tree([3]), 3: page }, `1 0 obj << /Pages ${tree([3, 3])} >> endobj\n`),
    ],
    [
      'marks that say what to read instead',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on('4 0 R', '/Resources << /Properties << /P 5 0 R >> >>'),
        4: packed('', '/Span /P BDC (x) Tj EMC '.repeat(50)),
        9: objectStream({ 5: `<< /ActualText (${filled}) >>` }),
      }),
    ],
    ['a page that is nowhere', pdfOf({ 1: catalog, 2: tree([3, 4]), 3: page })],
    ['pages that lead to themselves', pdfOf({ 1: catalog, 2: tree([2]) })],
    [
      'another filter',
      pdfOf({ 1: catalog, 2: tree([3]), 3: on('4 0 R'), 4: '<< /Filter /LZWDecode >> stream\nx\nendstream' }),
    ],
    [
      'a predictor',
      pdfOf({ 1: catalog, 2: tree([3]), 3: on('4 0 R'), 4: packed('/DecodeParms << /Predictor 12 >>', 'x') }),
    ],
    [
      'damaged',
      pdfOf({ 1: catalog, 2: tree([3]), 3: on('4 0 R'), 4: packed('', shows(filled)).slice(0, 90) }),
    ],
    [
      'more than may be inflated',
      pdfOf({ 1: catalog, 2: tree([3]), 3: on('4 0 R'), 4: packed('', ' '.repeat(inflatedMax + 1)) }),
    ],
    ['a key twice', pdfOf({ 1: catalog, 2: tree([3]).replace('>>', '/Kids [3 0 R 3 0 R] >>'), 3: page })],
    [
      'an object that is not found as others are',
      pdfOf({ 1: catalog, 2: tree([3]), 3: page }, '2 % \n 0 obj << >> endobj\n'),
    ],
    ['nested without end', pdfOf({ 1: catalog, 2: tree([3]), 3: '['.repeat(100_000) })],
    [
      'a chain of nodes without end',
      pdfOf({
        1: catalog,
        9: objectStream(Object.fromEntries(numbers(2, 30_000).map((at) => [at, tree([at + 1])]))),
      }),
    ],
  ])('is unknown of one with %s, and nothing more is inflated for its call', (_name, file) => {
    expect(pdfSize(file, zlibInflate, inflatedMax)).toEqual({ size: undefined, inflated: inflatedMax });
  });

  /** What takes long if anything is read more often than once. */
  it.each<[string, string]>([
    [
      'names',
      pdfOf({
        1: catalog,
        2: tree([3]),
        3: on(
          '4 0 R',
          forms(
            numbers(1, 40_000)
              .map((name) => `/N${name} 5 0 R`)
              .join(' '),
          ),
        ),
        4: packed(
          '',
          numbers(1, 40_000)
            .map((name) => `/N${name} Do `)
            .join('')
            .repeat(10),
        ),
        5: form('x'),
      }),
    ],
    ['streams', printed(600, 'x')],
    [
      'versions of one object that many ask for',
      pdfOf(
        { 1: catalog, 2: tree(numbers(1_000, 20_000)) },
        '8 0 obj [] '.repeat(100_000) +
          numbers(1_000, 20_000)
            .map((at) => `${at} 0 obj << /Contents 8 0 R /XObject << /F 8 0 R >> >>`)
            .join('\n'),
      ),
    ],
    ['objects', '%PDF'.padEnd(7_000_000, ' 1 0 obj 1')],
    [
      'signs that open',
      pdfOf({ 1: catalog, 2: tree([3]), 3: on('4 0 R'), 4: packed('', '(<[/'.repeat(1_000_000)) }),
    ],
    [
      'blanks and comments',
      pdfOf({ 1: catalog, 2: tree([3]), 3: `${' '.repeat(1_000_000)}${'%\n'.repeat(500_000)}${page}` }),
    ],
  ])('is known, or known to be unknown, of many %s', (_name, file) => {
    const { size, inflated } = pdfSize(file, zlibInflate, inflatedMax);
    expect(inflated).toBeLessThan(2 * inflatedMax);
    expect(size === undefined || size.pages > 0).toBe(true);
  });

  it('is the same whatever bytes stand behind a stream', () => {
    const data = deflateSync(Buffer.from(shows(filled))).toString('latin1');
    const file = `<< /Filter /FlateDecode /Length 3 >> stream\n${data} endstream`;
    expect(sizeOf(pdfOf({ 1: catalog, 2: tree([3]), 3: on('4 0 R'), 4: file }))?.characters).toBe(50_000);
  });
});
